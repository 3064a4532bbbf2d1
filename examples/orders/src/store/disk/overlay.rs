//! A file that is read, and not written: what the engine writes to it stays in memory. So a store can be
//! checked or copied that was not closed, and that the engine would repair.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

use super::{Disk, StoreError, file};

const BLOCK: u64 = 4_096;

type Block = [u8; BLOCK as usize];

#[derive(Debug)]
pub(super) struct Overlay {
    file: File,
    changed: Mutex<Changed>,
}

#[derive(Debug)]
struct Changed {
    length: u64,
    /// From here on nothing is of the file.
    end_of_file: u64,
    blocks: HashMap<u64, Box<Block>>,
}

impl Overlay {
    /// Opens the file of a store, or that in a directory.
    pub(super) fn of_store(path: &Path) -> std::result::Result<Self, StoreError> {
        let path = if path.is_dir() { Disk::file(path) } else { path.to_owned() };
        let opened = Self::open(&path)?;
        // The engine would make a store of an empty one.
        if opened.changed().length == 0 { Err(file::refused("is empty")) } else { Ok(opened) }
    }

    /// Opens a file that no other process writes.
    fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Error::new(ErrorKind::ResourceBusy, "another process has it open"),
            TryLockError::Error(error) => error,
        })?;
        let length = file.metadata()?.len();
        let changed = Changed { length, end_of_file: length, blocks: HashMap::new() };
        Ok(Self { file, changed: Mutex::new(changed) })
    }

    fn changed(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `each` for the blocks of a range, with the part of the block and the part of the range.
    fn blocks(
        offset: u64,
        length: usize,
        mut each: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let (number, from) = (at / BLOCK, (at % BLOCK) as usize);
            let part = (BLOCK as usize - from).min(length - done);
            each(number, from..from + part, done..done + part)?;
            done += part;
        }
        Ok(())
    }

    fn block(&self, number: u64, changed: &Changed) -> Result<Box<Block>> {
        if let Some(block) = changed.blocks.get(&number) {
            return Ok(block.clone());
        }
        let mut block = Box::new([0; BLOCK as usize]);
        let of_file = changed.end_of_file.saturating_sub(number * BLOCK).min(BLOCK) as usize;
        self.file.read_exact_at(&mut block[..of_file], number * BLOCK)?;
        Ok(block)
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> Result<u64> {
        Ok(self.changed().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let changed = self.changed();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > changed.length) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Self::blocks(offset, out.len(), |number, of_block, of_out| {
            out[of_out].copy_from_slice(&self.block(number, &changed)?[of_block]);
            Ok(())
        })
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let mut changed = self.changed();
        if length < changed.length {
            let mut last = self.block(length / BLOCK, &changed)?;
            last[(length % BLOCK) as usize..].fill(0);
            changed.blocks.retain(|&number, _| number < length / BLOCK);
            changed.blocks.insert(length / BLOCK, last);
            changed.end_of_file = changed.end_of_file.min(length);
        }
        changed.length = length;
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut changed = self.changed();
        Self::blocks(offset, data.len(), |number, of_block, of_data| {
            let mut block = self.block(number, &changed)?;
            block[of_block].copy_from_slice(&data[of_data]);
            changed.blocks.insert(number, block);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The overlay reads as memory does to which the same was done, and the file stays as it is.
    #[test]
    fn it_reads_what_was_written_and_the_file_stays() {
        let path = std::env::temp_dir().join(format!("orders-overlay-{}", std::process::id()));
        let mut rng = fastrand::Rng::with_seed(7);
        let original = (0..20_000).map(|_| rng.u8(..)).collect::<Vec<_>>();
        std::fs::write(&path, &original).unwrap();
        let (overlay, mut model) = (Overlay::open(&path).unwrap(), original.clone());
        assert_eq!(Overlay::open(&path).unwrap_err().kind(), ErrorKind::ResourceBusy);
        for _ in 0..2_000 {
            if rng.u8(..) < 32 {
                let length = rng.usize(0..40_000);
                overlay.set_len(length as u64).unwrap();
                model.resize(length, 0);
            }
            let from = rng.usize(0..=model.len());
            let length = rng.usize(0..=(model.len() - from).min(9_000));
            let mut read = vec![0; length];
            overlay.read(from as u64, &mut read).unwrap();
            assert_eq!(read, model[from..from + length]);
            read.fill(rng.u8(..));
            overlay.write(from as u64, &read).unwrap();
            model[from..from + length].copy_from_slice(&read);
        }
        assert!(overlay.read(model.len() as u64, &mut [0]).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), original);
        std::fs::remove_file(path).unwrap();
    }
}

//! The file of the store: how it is made, so that it is there whole or not at all, and whether it can grow.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use redb::{DatabaseError, StorageError};

use super::StoreError;

/// The file within the directory.
const FILE: &str = "orders.redb";
/// Its name until it is made.
const NEW: &str = "orders.redb.new";
/// A file that shows whether there is room.
const ROOM: &str = "orders.room";
/// Room that commits shall find, in bytes: that of the longest body.
const SPARE: usize = 1 << 20;

/// The store's file in a directory. If there is none, or a blank one, it is made under another name first:
/// without room there is a file that is no store.
pub(super) fn find_or_make(
    directory: &Path,
    make: impl FnOnce(&Path) -> Result<(), StoreError>,
) -> Result<PathBuf, StoreError> {
    fs::create_dir_all(directory)?;
    let path = directory.join(FILE);
    if is_there(&path)? {
        return Ok(path);
    }
    // Held until the store is there: another process may begin as well.
    let (lock, new) = (File::open(directory)?, directory.join(NEW));
    lock.lock()?;
    if !is_there(&path)? {
        fs::write(&new, [])?;
        make(&new)?;
        fs::rename(&new, &path)?;
        lock.sync_all()?;
    }
    Ok(path)
}

fn is_there(path: &Path) -> io::Result<bool> {
    Ok(path.exists() && !is_blank(path)?)
}

/// Writes a file of twice the store's length, which is how a store grows, and removes it.
pub(super) fn try_room(directory: &Path) -> Result<(), StoreError> {
    let (store, room) = (directory.join(FILE), directory.join(ROOM));
    let end = 2 * fs::metadata(store)?.len();
    let tried = File::create(&room).and_then(|file| {
        file.write_all_at(&vec![1; SPARE], end)?;
        file.sync_all()
    });
    // One that could not be made need not be removed.
    let removed = fs::remove_file(&room);
    tried?;
    Ok(removed?)
}

/// Whether a file is what remains of a first start without room: the engine writes its name, at the very
/// beginning, when all else of a new store is there. So nothing is in it beyond a page of settings.
fn is_blank(path: &Path) -> io::Result<bool> {
    const NAME: usize = 9;
    let mut file = File::open(path)?;
    let mut page = [0; 4_096];
    let mut part = page.len();
    let mut first = true;
    while part > 0 {
        part = file.read(&mut page)?;
        let blank = if first { NAME.min(part) } else { part };
        if page[..blank].iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        first = false;
    }
    Ok(true)
}

/// Says what to do about a file of another kind.
pub(super) fn no_store(error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
            StoreError::Io(io::Error::new(
                ErrorKind::InvalidData,
                format!(
                    "the file {FILE} holds something, but its beginning is no store of orders ({error}). Put a copy \
                     in its place, or move it away: then the shop begins anew"
                ),
            ))
        }
        error => error.into(),
    }
}

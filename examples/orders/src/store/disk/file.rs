//! The file of the store: how it is made, so that it is there whole or not at all, and whether it can grow.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use redb::{DatabaseError, StorageError};

use super::StoreError;

/// The file within the directory.
pub(super) const FILE: &str = "orders.redb";
/// Its name until it is made.
const NEW: &str = "orders.redb.new";
/// What follows the name of a store in that of a copy that is checked.
const CHECKED: &str = ".check";
/// A file that shows whether there is room.
const ROOM: &str = "orders.room";
/// Room that commits shall find, in bytes: that of the longest body.
const SPARE: usize = 1 << 20;

/// The store's file in a directory. If there is none, it is made under another name first: without room
/// there is a file that is no store. One that is there is never made anew, whatever it holds.
pub(super) fn find_or_make(
    directory: &Path,
    make: impl FnOnce(&Path) -> Result<(), StoreError>,
) -> Result<PathBuf, StoreError> {
    fs::create_dir_all(directory)?;
    let path = directory.join(FILE);
    if path.exists() {
        return Ok(path);
    }
    // Held until the store is there: another process may begin as well.
    let (lock, new) = (File::open(directory)?, directory.join(NEW));
    lock.lock()?;
    if !path.exists() {
        fs::write(&new, [])?;
        make(&new)?;
        fs::rename(&new, &path)?;
        lock.sync_all()?;
        say!("{}: there was no store; the shop begins without orders", path.display());
    }
    Ok(path)
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

/// A copy of a store's file, beside it. It is removed when this is dropped.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Copies the file of a store that no other process has open, or that in a directory.
    pub(super) fn of_store(path: &Path) -> Result<Self, StoreError> {
        let path = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        let file = File::open(&path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                io::Error::new(ErrorKind::ResourceBusy, "another process has it open")
            }
            TryLockError::Error(error) => error,
        })?;
        let mut name = path.clone().into_os_string();
        name.push(CHECKED);
        let scratch = Self(name.into());
        fs::copy(path, scratch.path())?;
        Ok(scratch)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // One that could not be made need not be removed.
        let _ = fs::remove_file(&self.0);
    }
}

/// Says what to do about a file of another kind.
pub(super) fn no_store(error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
            refused(&format!("is no store of orders ({error})"))
        }
        error => error.into(),
    }
}

/// Says what to do about a store that this version cannot read.
pub(super) fn other_version() -> StoreError {
    refused("was made by another program, or by another version of this one, which has no checksums")
}

/// Says what to do about a file that is no store.
pub(super) fn refused(why: &str) -> StoreError {
    StoreError::Io(io::Error::new(
        ErrorKind::InvalidData,
        format!(
            "the file {FILE} {why}. Put a copy in its place, or move it away: then the shop begins anew, without orders"
        ),
    ))
}

//! The file of the store: how it is made, so that it is there whole or not at all, and whether it can grow.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use redb::{DatabaseError, StorageError};

use super::StoreError;

/// The file within the directory.
pub(super) const FILE: &str = "orders.redb";
/// Its name until it is made.
const NEW: &str = "orders.redb.new";
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

/// Says what to do about a file of another kind.
pub(super) fn no_store(error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
            refused(&format!("is no store of orders ({error})"))
        }
        error => error.into(),
    }
}

/// Says what to do about a store of another program.
pub(super) fn other_tables(error: StoreError) -> StoreError {
    match error {
        StoreError::Engine(error) => refused(&format!("is no store of orders ({error})")),
        error => error,
    }
}

fn refused(why: &str) -> StoreError {
    let text = format!("the file {FILE} {why}. Move it away: then the shop begins anew, without orders");
    StoreError::Io(io::Error::new(ErrorKind::InvalidData, text))
}

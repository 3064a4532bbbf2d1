//! A copy of a store, as it was at one instant.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use redb::{Builder, ReadTransaction, ReadableTable};

use super::{CACHE, StoreError, TABLES, guard, unseal};

/// A store as a commit left it. While it is kept, what later commits replace stays in the file.
pub struct Snapshot(ReadTransaction);

/// What a copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Records of all kinds.
    pub records: u64,
    /// How many of them are damaged; they are copied as they are.
    pub damaged: u64,
    /// The length of the file.
    pub bytes: u64,
}

impl Snapshot {
    pub(super) fn of(transaction: ReadTransaction) -> Self {
        Self(transaction)
    }

    /// Writes a copy. It has its name when it is whole and synced, and replaces a file of that name.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or was closed; or the copy cannot be written: then there is none.
    pub fn copy_to(self, to: &Path) -> Result<Copied, StoreError> {
        let new = with_ending(to, ".new");
        let copied = guard(|| {
            let copied = self.write(&new)?;
            fs::rename(&new, to)?;
            let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
            Ok(copied)
        });
        if copied.is_err() {
            // It may not have been made.
            let _ = fs::remove_file(&new);
        }
        copied
    }

    fn write(&self, new: &Path) -> Result<Copied, StoreError> {
        fs::write(new, [])?;
        let database = Builder::new().set_cache_size(CACHE).create(new)?;
        let transaction = database.begin_write()?;
        let mut copied = Copied { records: 0, damaged: 0, bytes: 0 };
        for definition in TABLES {
            let mut table = transaction.open_table(definition)?;
            for entry in self.0.open_table(definition)?.iter()? {
                let (key, value) = entry?;
                table.insert(key.value(), value.value())?;
                copied.records += 1;
                copied.damaged += u64::from(unseal(key.value(), value.value()).is_none());
            }
        }
        transaction.commit()?;
        drop(database);
        let file = File::open(new)?;
        file.sync_all()?;
        copied.bytes = file.metadata()?.len();
        Ok(copied)
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

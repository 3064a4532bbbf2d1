//! The engine's errors as the store's.

use std::io::{self, ErrorKind};

use redb::{CommitError, DatabaseError, StorageError, TableError, TransactionError};

use super::StoreError;

impl From<StorageError> for StoreError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Io(error) => error.into(),
            StorageError::Corrupted(reason) => Self::Broken { reason },
            error => Self::Engine(Box::new(error)),
        }
    }
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Storage(error) => error.into(),
            DatabaseError::DatabaseAlreadyOpen => {
                Self::Io(io::Error::new(ErrorKind::ResourceBusy, "another process has it open"))
            }
            error => Self::Engine(Box::new(error)),
        }
    }
}

macro_rules! of_the_storage {
    ($($error:ident),*) => {$(
        impl From<$error> for StoreError {
            fn from(error: $error) -> Self {
                match error {
                    $error::Storage(error) => error.into(),
                    error => Self::Engine(Box::new(error)),
                }
            }
        }
    )*};
}

of_the_storage!(TransactionError, TableError, CommitError);

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

impl From<TransactionError> for StoreError {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Storage(error) => error.into(),
            error => Self::Engine(Box::new(error)),
        }
    }
}

impl From<TableError> for StoreError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Storage(error) => error.into(),
            error => Self::Engine(Box::new(error)),
        }
    }
}

impl From<CommitError> for StoreError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Storage(error) => error.into(),
            error => Self::Engine(Box::new(error)),
        }
    }
}

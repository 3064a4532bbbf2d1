//! What survives the process: two small traits, and the records that stand behind them.
//!
//! The deciding code (`serve/books.rs`) knows [`Store`] alone: one writer, whole commits, look-ups by
//! key, and pending orders part by part, by the time of the check. [`Disk`] implements it with an embedded
//! store; `cluster/memory.rs` does with a message broker's log. [`History`] is what the readers of one
//! machine ask beside that.
//!
//! A commit is durable when [`Store::commit`] returns, and it is there whole or not at all after a
//! crash at any instant. A reader sees a commit only when it is durable.

mod disk;
mod record;

use std::error::Error;
use std::fmt;
use std::io;
use std::ops::Range;

pub use disk::Disk;
pub(crate) use record::{DIGEST, digest};
pub use record::{EndState, Ended, Known, Open, Outcome, Payment, content, open_key};

/// What one commit changes.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The shop's time, in ms. The time after a restart does not begin before it.
    pub now: u64,
    /// Orders that are pending: new, or with another payment.
    pub open: Vec<Open>,
    /// Orders that have ended. Each was open before, in this commit or in an earlier one.
    pub ended: Vec<Ended>,
    /// Payments that were counted.
    pub payments: Vec<Payment>,
    /// Items with the units that are sold, in all.
    pub sold: Vec<(String, u64)>,
}

impl Changes {
    /// Whether there is nothing but the time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.ended.is_empty() && self.payments.is_empty() && self.sold.is_empty()
    }
}

/// What a restart begins with.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The time of the last commit, in ms; 0 if there was none.
    pub now: u64,
    /// The number of the last outcome; 0 if there was none.
    pub last_seq: u64,
    /// The number of pending orders that [`Store::pending`] reads.
    pub pending: usize,
    /// The pending orders, from a store whose [`Store::pending`] has none.
    pub open: Vec<Open>,
    /// Items with the units that are sold.
    pub sold: Vec<(String, u64)>,
    /// Items with the units that are reserved for the orders that [`Store::pending`] reads.
    pub reserved: Vec<(String, u64)>,
}

/// Pending orders, sorted by [`Open::key`].
#[derive(Debug, Default)]
pub struct Part {
    /// The orders.
    pub orders: Vec<Open>,
    /// The key at which the next part begins; `None` if this is the last one.
    pub next: Option<u128>,
}

/// A store with one writer.
pub trait Store: Send + Sync {
    /// Reads what the books begin with.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or holds what it cannot have written.
    fn recover(&self) -> Result<Recovered, StoreError>;

    /// Makes changes durable, all of them or none.
    ///
    /// # Errors
    ///
    /// They may be durable or not. The store has to be opened again to find out.
    fn commit(&self, changes: &Changes) -> Result<(), StoreError>;

    /// Reads pending orders with keys in a range, `limit` of them at most. The last commit may be missing
    /// until [`commit`](Self::commit) returns.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn pending(&self, keys: Range<u128>, limit: usize) -> Result<Part, StoreError>;

    /// Returns one of the orders that [`pending`](Self::pending) reads.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn open(&self, order_id: u64) -> Result<Option<Open>, StoreError>;

    /// Returns what is known of an order that has ended, or that [`open`](Self::open) returns.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn known(&self, order_id: u64) -> Result<Option<Known>, StoreError>;

    /// Returns the [content](Payment::content) of a payment that was counted.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn payment(&self, payment_id: &str) -> Result<Option<u64>, StoreError>;
}

/// A store that keeps what has ended, for readers.
pub trait History: Store {
    /// Returns an order that has ended.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn ended(&self, order_id: u64) -> Result<Option<Ended>, StoreError>;

    /// Returns up to `limit` outcomes that come after number `after`.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn outcomes(&self, after: u64, limit: usize) -> Result<Vec<Outcome>, StoreError>;
}

/// The reason why a store failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk, or the process's share of it, is full.
    Full(io::Error),
    /// The system refused to read or write.
    Io(io::Error),
    /// The store's file is damaged, so that the store cannot go on.
    Broken {
        /// What was found.
        reason: String,
    },
    /// The store's own engine failed.
    Engine(Box<dyn Error + Send + Sync>),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full(error),
            _ => Self::Io(error),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(error) => write!(f, "there is no room for the data: {error}"),
            Self::Io(error) => write!(f, "the data cannot be read or written: {error}"),
            Self::Broken { reason } => {
                write!(f, "orders.redb is damaged ({reason}): end the server, and put a copy in its place")
            }
            Self::Engine(error) => write!(f, "the store failed: {error}"),
        }
    }
}

impl Error for StoreError {}

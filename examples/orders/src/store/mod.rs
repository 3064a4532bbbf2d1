//! What survives the process: a small trait, and the records that stand behind it.
//!
//! The deciding code (`serve/books.rs`) knows [`Store`] alone: one writer, whole commits, look-ups by
//! key, and pending orders part by part, by the time of the check. [`Disk`] implements it with an embedded
//! store, and keeps what has ended for readers; `cluster/memory.rs` does with a message broker's log.
//!
//! A commit is durable when [`Store::commit`] returns, and it is there whole or not at all after a
//! crash at any instant. A reader sees a commit only when it is durable.

mod disk;
mod record;

use std::ops::Range;

pub use disk::Disk;
pub(crate) use record::{DIGEST, digest};
pub use record::{EndState, Ended, Known, Open, Outcome, Payment, content, open_key};
/// The reason why a store failed: what the engine says.
pub use redb::Error as StoreError;

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

/// A store with one writer. It fails if it cannot be read or written, or holds what it cannot have written.
pub trait Store: Send + Sync {
    /// Reads what the books begin with.
    fn recover(&self) -> Result<Recovered, StoreError>;

    /// Makes changes durable, all of them or none. After an error they may be durable or not: the store has
    /// to be opened again to find out.
    fn commit(&self, changes: &Changes) -> Result<(), StoreError>;

    /// Reads pending orders with keys in a range, `limit` of them at most. The last commit may be missing
    /// until [`commit`](Self::commit) returns.
    fn pending(&self, keys: Range<u128>, limit: usize) -> Result<Part, StoreError>;

    /// Returns one of the orders that [`pending`](Self::pending) reads.
    fn open(&self, order_id: u64) -> Result<Option<Open>, StoreError>;

    /// Returns what is known of an order that has ended, or that [`open`](Self::open) returns.
    fn known(&self, order_id: u64) -> Result<Option<Known>, StoreError>;

    /// Returns the [content](Payment::content) of a payment that was counted.
    fn payment(&self, payment_id: &str) -> Result<Option<u64>, StoreError>;
}

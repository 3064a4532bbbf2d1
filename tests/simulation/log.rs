//! The log of a simulation, printed where one seed is replayed, hashed always; and its result.

use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

pub(crate) struct Log {
    hasher: DefaultHasher,
    is_printed: bool,
}

impl Log {
    pub(crate) fn new(is_printed: bool) -> Self {
        Self { hasher: DefaultHasher::new(), is_printed }
    }

    pub(crate) fn add(&mut self, event: impl Debug + Hash) {
        event.hash(&mut self.hasher);
        if self.is_printed {
            println!("{event:?}");
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hasher.finish()
    }
}

/// The result of a simulation.
pub(crate) struct Played {
    /// Virtual seconds.
    pub(crate) seconds: u64,
    pub(crate) fired: u64,
    /// The hash of its log.
    pub(crate) hash: u64,
}

//! The books of one timer: what was done, counted by those who did it, and what they found wrong.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Complaints that are kept; one leads to many.
const KEPT: usize = 20;

#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The greatest of many.
#[derive(Default)]
pub(crate) struct Most(AtomicU64);

impl Most {
    pub(crate) fn note(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub(crate) struct Books {
    /// Accounts opened, and those looked over at their end.
    pub(crate) opened: Count,
    pub(crate) closed: Count,
    /// Callbacks that the timer did not take.
    pub(crate) refused: Count,
    /// Callbacks called by the timer, and jobs that its executor dropped instead.
    pub(crate) runs: Count,
    pub(crate) unrun: Count,
    /// How late one was that fires once, in nanoseconds. (One that recurs and makes up for what it has missed is as
    /// late as that.)
    pub(crate) latest: Most,
    /// Calls of `cancel` that succeeded, and those of them that met a recurring timer whose callback was out.
    pub(crate) cancelled: Count,
    pub(crate) stopped: Count,
    /// Reschedules that succeeded.
    pub(crate) moved: Count,
    /// Keys of timers that had ended, tried once more.
    pub(crate) stale: Count,
    /// Panics made, and those that the timer's hook was told of.
    pub(crate) panics: Count,
    pub(crate) told: Count,
    pub(crate) slow: Count,
    /// Wakers woken because their time had come, and those woken by the shutdown.
    pub(crate) wakes: Count,
    pub(crate) last_wakes: Count,
    /// Futures polled, and those that were ready.
    pub(crate) polls: Count,
    pub(crate) ready: Count,
    /// Payloads that came back from the shutdown.
    pub(crate) handed_back: Count,
    pub(crate) drops: Count,
    complaints: Mutex<Vec<String>>,
}

impl Books {
    /// Accounts that are not closed yet.
    pub(crate) fn open(&self) -> u64 {
        let closed = self.closed.get();
        self.opened.get().saturating_sub(closed)
    }

    /// Notes that something is wrong.
    #[cold]
    pub(crate) fn complain(&self, what: fmt::Arguments<'_>) {
        let mut complaints = self.complaints();
        if complaints.len() < KEPT {
            complaints.push(what.to_string());
        }
    }

    /// Complains unless it holds.
    pub(crate) fn expect(&self, holds: bool, what: fmt::Arguments<'_>) {
        if !holds {
            self.complain(what);
        }
    }

    pub(crate) fn complaints(&self) -> MutexGuard<'_, Vec<String>> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

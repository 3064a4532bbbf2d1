//! The counts of one timer, by the threads and callbacks that acted, and the failures that they
//! found.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::Count;

/// Failures that are kept; one leads to many.
const KEPT: usize = 20;

#[derive(Default)]
pub(crate) struct Books {
    /// Accounts opened, and accounts checked at their end.
    pub(crate) opened: Count,
    pub(crate) closed: Count,
    /// Callbacks that the timer called, and jobs that its executor dropped.
    pub(crate) runs: Count,
    pub(crate) unrun: Count,
    /// Successful calls of `cancel`, and those of them that met a recurring timer whose callback
    /// was out.
    pub(crate) cancelled: Count,
    pub(crate) stopped: Count,
    /// Deliberate panics, and panics that the timer's hook got.
    pub(crate) panics: Count,
    pub(crate) told: Count,
    /// Wakers woken at their time, and wakers woken by the shutdown.
    pub(crate) wakes: Count,
    pub(crate) last_wakes: Count,
    /// Payloads that the shutdown returned.
    pub(crate) handed_back: Count,
    pub(crate) drops: Count,
    complaints: Mutex<Vec<String>>,
}

impl Books {
    /// Accounts that are not closed yet.
    pub(crate) fn open(&self) -> usize {
        let closed = self.closed.get();
        self.opened.get().saturating_sub(closed)
    }

    /// Notes a failure unless `holds`.
    pub(crate) fn expect(&self, holds: bool, what: fmt::Arguments<'_>) {
        if !holds && self.complaints().len() < KEPT {
            self.complaints().push(what.to_string());
        }
    }

    pub(crate) fn complaints(&self) -> MutexGuard<'_, Vec<String>> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

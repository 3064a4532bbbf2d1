//! How far a worker or a driver is, and how a shutdown waits for it to go on.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::clock::unpoisoned;

/// How far a worker or a driver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    AtWork,
    /// It does no work any more. A worker's advancer is in the slot for good, unless a shutdown has
    /// taken it. It may still drop an executor.
    Left,
    /// It runs nothing any more.
    Ended,
}

/// The phase, and the condition variable on which a shutdown waits for a change. Written by the
/// worker or the driver, and by the thread that runs a worker.
pub(crate) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy)]
struct State {
    phase: Phase,
    /// Grows with each change that a shutdown may wait for.
    version: u64,
}

/// The state as a shutdown has seen it.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) phase: Phase,
    version: u64,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let state = Mutex::new(State { phase: Phase::AtWork, version: 0 });
        Self { state, changed: Condvar::new() }
    }

    /// Returns how far it is; for [`wait`](Self::wait).
    pub(crate) fn look(&self) -> Seen {
        let State { phase, version } = *self.state();
        Seen { phase, version }
    }

    /// Waits until the state has changed since `seen`, or until `limit` has passed.
    pub(crate) fn wait(&self, seen: Seen, limit: Option<Duration>) {
        let is_old = |state: &mut State| state.version == seen.version;
        let state = self.state();
        match limit {
            None => drop(unpoisoned(self.changed.wait_while(state, is_old))),
            Some(limit) => drop(unpoisoned(self.changed.wait_timeout_while(state, limit, is_old))),
        }
    }

    /// Enters a phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.note(|state| state.phase = phase);
    }

    /// Makes a waiting shutdown look again.
    pub(crate) fn note_change(&self) {
        self.note(|_| ());
    }

    fn note(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.version += 1;
        drop(state);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        unpoisoned(self.state.lock())
    }
}

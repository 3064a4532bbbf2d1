//! Where a shard's advancer lies while user code runs, and how a shutdown takes it from there.
//!
//! A worker owns its advancer, except while user code runs: a callback, a waker, a drop, an
//! executor, a user's clock. Then the advancer lies in the *slot*, where a shutdown may take it. A
//! worker that finds the slot empty afterwards has been shut down, and ends. A worker that ends for
//! another reason leaves its advancer in the slot for good.
//!
//! A shutdown takes the advancer when the worker has ended, or earlier where the shutdown must not
//! wait: see [`drive`](super::drive). What it must know for that is stored here too: whether the
//! user code is an executor (a mark on the box), and how far the worker is (`state`).
//!
//! # Who writes what
//!
//! | field | written by |
//! |---|---|
//! | `slot` | the worker puts the advancer in; the worker or a shutdown takes it out |
//! | `stopping` | a shutdown |
//! | `state` | the worker; a manual clock's driver notes a change there |
//!
//! # Visibility
//!
//! A worker puts the advancer in, then checks whether the shard is stopping. If it is, the worker
//! announces the advancer (`note`). A shutdown marks the shard as stopping, then looks into the
//! slot, and waits only for what comes after. All four steps are SeqCst (those on the slot in
//! [`MarkedBox`]): either the worker sees the mark, or the shutdown sees the advancer. So a waiting
//! shutdown also learns of each later piece of user code.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::clock::unpoisoned;
use crate::fallible::MarkedBox;
use crate::sync::{AtomicBool, Ordering};

/// The user code for which an advancer lies in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Code for which a shutdown waits.
    Own,
    /// Code for which no shutdown waits.
    Executor,
}

/// How far a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    AtWork,
    /// The advancer is in the slot for good, unless a shutdown has taken it. The worker may still
    /// drop an executor.
    Left,
    /// The worker runs nothing any more.
    Ended,
}

pub(crate) struct AdvancerSlot<T> {
    /// Marked while an executor runs.
    slot: MarkedBox<T>,
    stopping: AtomicBool,
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

impl<T> AdvancerSlot<T> {
    pub(crate) fn new() -> Self {
        Self {
            slot: MarkedBox::empty(),
            stopping: AtomicBool::new(false),
            state: Mutex::new(State { phase: Phase::AtWork, version: 0 }),
            changed: Condvar::new(),
        }
    }

    /// Whether the shard is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        // Ordering: Relaxed. The worker is woken after the store. A thread that finds its timer
        // gone because the shard has ended is ordered by the fence in `close`.
        self.stopping.load(Ordering::Relaxed)
    }

    /// Marks the shard as stopping; false if it was marked before.
    pub(crate) fn stop(&self) -> bool {
        // Ordering: SeqCst, see *Visibility*.
        !self.stopping.swap(true, Ordering::SeqCst)
    }

    /// Puts the advancer into the slot; for the worker, before user code.
    pub(crate) fn put(&self, advancer: Box<T>, code: Code) {
        let former = self.slot.put(advancer, code == Code::Executor);
        debug_assert!(former.is_none(), "there is one advancer");
        // Ordering: SeqCst, see *Visibility*.
        if self.stopping.load(Ordering::SeqCst) {
            self.note(|_| ());
        }
    }

    /// Takes the advancer out of the slot, if it is there.
    pub(crate) fn take(&self) -> Option<Box<T>> {
        self.slot.take()
    }

    /// Takes the advancer out of the slot, if it is there and an executor runs. Against the worker:
    /// exactly one of the two gets the advancer.
    pub(crate) fn take_from_executor(&self) -> Option<Box<T>> {
        self.slot.take_if_marked()
    }

    /// Returns how far the worker is; for [`wait`](Self::wait).
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

    /// Enters a phase; for the worker.
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

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_taken_once() {
        let advancer_slot = AdvancerSlot::new();
        assert!(advancer_slot.take().is_none());
        for code in [Code::Own, Code::Executor] {
            advancer_slot.put(Box::new(7_u64), code);
            assert_eq!((advancer_slot.take(), advancer_slot.take()), (Some(Box::new(7)), None));
        }
    }

    #[test]
    fn an_executor_alone_is_not_waited_for() {
        let advancer_slot = AdvancerSlot::new();
        advancer_slot.put(Box::new(7_u64), Code::Own);
        assert_eq!((advancer_slot.take_from_executor(), advancer_slot.take()), (None, Some(Box::new(7))));
        advancer_slot.put(Box::new(8), Code::Executor);
        assert_eq!((advancer_slot.take_from_executor(), advancer_slot.take()), (Some(Box::new(8)), None));
    }

    #[test]
    fn who_waits_hears_of_what_comes_after_the_stop() {
        let advancer_slot = AdvancerSlot::new();
        assert!(advancer_slot.stop() && !advancer_slot.stop());
        let seen = advancer_slot.look();
        advancer_slot.put(Box::new(7_u64), Code::Own);
        advancer_slot.wait(seen, None);
        advancer_slot.enter(Phase::Left);
        advancer_slot.wait(seen, None);
        assert_eq!(advancer_slot.look().phase, Phase::Left);
        advancer_slot.wait(advancer_slot.look(), Some(Duration::from_millis(1)));
    }
}

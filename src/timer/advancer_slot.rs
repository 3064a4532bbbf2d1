//! Where a shard's advancer lies while user code runs, and how a shutdown gets at it.
//!
//! A worker has its advancer in its hands, but for the time of user code: a callback, a waker, a drop, an executor, a
//! clock of the user's. Then it lies in the *post*, where a `shutdown` may take it. A worker that finds the post empty
//! afterwards has been shut down, and ends; one that ends otherwise leaves its advancer in the post for good.
//!
//! A shutdown takes the advancer when the worker has ended, or earlier where it must not wait: see
//! [`drive`](super::drive). What it needs to know for that the post says too: whether the user code is an executor (a
//! mark in the pointer), and how far the worker is (`state`).
//!
//! # Who sees whom
//!
//! A worker puts the advancer in, then looks whether the shard is stopping; if it is, it makes that known (`note`). A
//! shutdown says that the shard is stopping, then looks into the post, and waits only for what comes after. All four are
//! SeqCst: either the worker sees the end, or the shutdown the advancer. So a shutdown that waits is told of each later
//! piece of user code, too.
//!
//! Beside [`inline`](super::inline) the upper floor's only unsafe code. Invariant: a pointer in `slot` came from
//! `Box::into_raw`, marked or not, and is whoever's that swaps it out.

use std::ptr::null_mut;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::clock::unpoisoned;
use crate::sync::{AtomicBool, AtomicPtr, Ordering};

/// Stands in the lowest bit of a pointer while an executor runs.
const EXECUTING: usize = 1;

/// The user code for which an advancer lies in the post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// A shutdown waits for it.
    Own,
    /// No shutdown waits for it.
    Executor,
}

/// How far a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    AtWork,
    /// Its advancer is in the post for good, unless it has been taken out. It may still drop an executor.
    Left,
    /// It runs nothing any more.
    Ended,
}

pub(crate) struct AdvancerSlot<T> {
    slot: AtomicPtr<T>,
    stopping: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy)]
struct State {
    phase: Phase,
    /// Grows with all that a shutdown may wait for.
    version: u64,
}

/// What a shutdown has seen of the state.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) phase: Phase,
    version: u64,
}

impl<T> AdvancerSlot<T> {
    pub(crate) fn new() -> Self {
        const { assert!(align_of::<T>() > EXECUTING, "the lowest bit of a pointer is free for the mark") };
        Self {
            slot: AtomicPtr::new(null_mut()),
            stopping: AtomicBool::new(false),
            state: Mutex::new(State { phase: Phase::AtWork, version: 0 }),
            changed: Condvar::new(),
        }
    }

    /// Whether the shard is to end.
    pub(crate) fn is_stopping(&self) -> bool {
        // Ordering: Relaxed. The worker is rung after it was set; who finds his timer gone because the shard has
        // ended sees it by way of the fence with which that closed.
        self.stopping.load(Ordering::Relaxed)
    }

    /// Says that the shard is to end; false if that has been said before.
    pub(crate) fn stop(&self) -> bool {
        // Ordering: SeqCst, see *Who sees whom*.
        !self.stopping.swap(true, Ordering::SeqCst)
    }

    /// Puts the advancer in; for the worker, before user code.
    pub(crate) fn put(&self, advancer: Box<T>, code: Code) {
        let advancer = Box::into_raw(advancer);
        let marked = if code == Code::Executor { mark(advancer) } else { advancer };
        // Ordering: SeqCst, see *Who sees whom*; as a Release it pairs with the Acquire of who takes it out.
        let former = self.slot.swap(marked, Ordering::SeqCst);
        debug_assert!(former.is_null(), "there is one advancer");
        // Ordering: SeqCst, see *Who sees whom*.
        if self.stopping.load(Ordering::SeqCst) {
            self.note(|_| ());
        }
    }

    /// Takes the advancer out, if it is in.
    pub(crate) fn take(&self) -> Option<Box<T>> {
        // Ordering: SeqCst, see *Who sees whom*; as an Acquire it pairs with `put`.
        own(self.slot.swap(null_mut(), Ordering::SeqCst))
    }

    /// Takes the advancer out if it is in while an executor runs. Against the worker: one of the two has it.
    pub(crate) fn take_from_executor(&self) -> Option<Box<T>> {
        // Ordering: SeqCst, see *Who sees whom*.
        let seen = self.slot.load(Ordering::SeqCst);
        if !is_marked(seen) {
            return None;
        }
        // Ordering: Acquire, pairs with `put`; on failure nothing is read.
        let taken = self.slot.compare_exchange(seen, null_mut(), Ordering::Acquire, Ordering::Relaxed);
        taken.ok().and_then(own)
    }

    /// How far the worker is; for [`wait`](Self::wait).
    pub(crate) fn look(&self) -> Seen {
        let State { phase, version } = *self.state();
        Seen { phase, version }
    }

    /// Waits until something has happened since that look, or for that long.
    pub(crate) fn wait(&self, seen: Seen, limit: Option<Duration>) {
        let is_old = |state: &mut State| state.version == seen.version;
        let state = self.state();
        match limit {
            None => drop(unpoisoned(self.changed.wait_while(state, is_old))),
            Some(limit) => drop(unpoisoned(self.changed.wait_timeout_while(state, limit, is_old))),
        }
    }

    /// Says how far the worker is; for the worker.
    pub(crate) fn enter(&self, phase: Phase) {
        self.note(|state| state.phase = phase);
    }

    /// Has a shutdown that waits look again.
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

impl<T> Drop for AdvancerSlot<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

fn mark<T>(pointer: *mut T) -> *mut T {
    pointer.map_addr(|address| address | EXECUTING)
}

fn is_marked<T>(pointer: *mut T) -> bool {
    pointer.addr() & EXECUTING != 0
}

/// What was swapped out of a slot.
fn own<T>(pointer: *mut T) -> Option<Box<T>> {
    let pointer = pointer.map_addr(|address| address & !EXECUTING);
    // SAFETY: by the invariant it came from `into_raw`, and it is the caller's that swapped it out.
    (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
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

//! Where a shard's advancer lies while user code runs, and how a shutdown takes it from there.
//!
//! A worker owns its advancer, except while user code runs: a callback, a waker, a drop, an
//! executor, a user's clock. Then the advancer lies in the *slot*, where a shutdown may take it. A
//! worker that finds the slot empty afterwards has been shut down.
//!
//! A shutdown takes the advancer from the slot where it must not wait for the user code: see
//! [`end`](crate::timer::end).
//!
//! # Who writes what
//!
//! | field | written by |
//! |---|---|
//! | `slot` | the worker puts the advancer in; the worker or a shutdown takes it out |
//! | `is_executor` | the worker |
//! | `stopping` | a shutdown |
//! | `shutdown` | the worker, and the thread that puts it back |
//!
//! # Visibility
//!
//! A worker puts the advancer in, then checks whether the shard is stopping. If it is, the worker
//! notifies the shutdown. A shutdown marks the shard as stopping, then looks into the slot, and
//! waits only for what comes after. All four steps are SeqCst (those on the slot in [`BoxSlot`]):
//! either the worker sees the mark, or the shutdown sees the advancer. So a waiting shutdown also
//! learns of each later piece of user code.

use crate::fallible::BoxSlot;
use crate::sync::plain;
use crate::sync::{AtomicBool, Ordering};
use crate::timer::parker::Parker;

pub(crate) struct AdvancerSlot<T> {
    slot: BoxSlot<T>,
    /// Whether an executor runs.
    is_executor: plain::AtomicBool,
    pub(in crate::timer) stopping: AtomicBool,
    /// Where a shutdown waits. Notified after what it waits for.
    pub(crate) shutdown: Parker,
}

impl<T> AdvancerSlot<T> {
    pub(crate) fn new() -> Self {
        Self {
            slot: BoxSlot::empty(),
            is_executor: plain::AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            shutdown: Parker::new(),
        }
    }

    /// Marks the shard as stopping; false if it was marked before.
    pub(crate) fn stop(&self) -> bool {
        // Ordering: SeqCst, see *Visibility*.
        !self.stopping.swap(true, Ordering::SeqCst)
    }

    /// Puts the advancer into the slot; for the worker, before user code.
    pub(crate) fn put(&self, advancer: Box<T>) {
        let former = self.slot.swap(Some(advancer));
        debug_assert!(former.is_none(), "there is one advancer");
        // Ordering: SeqCst, see *Visibility*.
        if self.stopping.load(Ordering::SeqCst) {
            self.shutdown.notify();
        }
    }

    /// Takes the advancer out of the slot, if it is there.
    pub(crate) fn take(&self) -> Option<Box<T>> {
        self.slot.swap(None)
    }

    /// Notes whether an executor runs; for the worker, before it puts the advancer in and after it
    /// has taken it out.
    pub(crate) fn note_executor(&self, runs: bool) {
        // Ordering: SeqCst, before the put and its look at `stopping`, see *Visibility*.
        self.is_executor.store(runs, Ordering::SeqCst);
    }

    /// Takes the advancer out of the slot, if it is there and an executor runs.
    ///
    /// The executor may return between the look and the take. The worker, which is stopping, runs
    /// no further callback. So what the shutdown then does not wait for is a short piece of user
    /// code after the executor.
    pub(crate) fn take_from_executor(&self) -> Option<Box<T>> {
        // Ordering: SeqCst, after the stop, see *Visibility*.
        if self.is_executor.load(Ordering::SeqCst) { self.take() } else { None }
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_taken_once() {
        let advancer_slot = AdvancerSlot::new();
        assert!(advancer_slot.take().is_none());
        advancer_slot.put(Box::new(7_u64));
        assert_eq!((advancer_slot.take(), advancer_slot.take()), (Some(Box::new(7)), None));
    }

    #[test]
    fn an_executor_alone_is_not_waited_for() {
        let advancer_slot = AdvancerSlot::new();
        advancer_slot.put(Box::new(7_u64));
        assert_eq!((advancer_slot.take_from_executor(), advancer_slot.take()), (None, Some(Box::new(7))));
        advancer_slot.note_executor(true);
        advancer_slot.put(Box::new(8));
        assert_eq!((advancer_slot.take_from_executor(), advancer_slot.take()), (Some(Box::new(8)), None));
    }

    #[test]
    fn a_shutdown_that_waits_learns_of_what_comes_after_the_stop() {
        let advancer_slot = AdvancerSlot::new();
        assert!(advancer_slot.stop() && !advancer_slot.stop());
        advancer_slot.shutdown.set_thread();
        advancer_slot.shutdown.clear();
        advancer_slot.put(Box::new(7_u64));
        advancer_slot.shutdown.wait(None);
        assert!(advancer_slot.take().is_some());
    }
}

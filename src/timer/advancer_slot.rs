//! Where a shard's advancer lies while user code runs, and how a shutdown takes it from there.
//!
//! A worker owns its advancer, except while user code runs: a callback, a waker, a drop, an
//! executor, a user's clock. Then the advancer lies in the *slot*, where a shutdown may take it. A
//! worker that finds the slot empty afterwards has been shut down, and ends. A worker that ends for
//! another reason leaves its advancer in the slot for good.
//!
//! A shutdown takes the advancer when the worker has ended, or earlier where the shutdown must not
//! wait: see [`drive`](super::drive). What it must know for that is stored here too: whether the
//! user code is an executor (a mark on the box), and how far the worker is (`progress`).
//!
//! # Who writes what
//!
//! | field | written by |
//! |---|---|
//! | `slot` | the worker puts the advancer in; the worker or a shutdown takes it out |
//! | `stopping` | a shutdown |
//! | `progress` | the worker; the thread that runs it notes a change there |
//!
//! # Visibility
//!
//! A worker puts the advancer in, then checks whether the shard is stopping. If it is, the worker
//! announces the advancer (`note_change`). A shutdown marks the shard as stopping, then looks into
//! the slot, and waits only for what comes after. All four steps are SeqCst (those on the slot in
//! [`MarkedBox`]): either the worker sees the mark, or the shutdown sees the advancer. So a waiting
//! shutdown also learns of each later piece of user code.

use super::phase::Progress;
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

pub(crate) struct AdvancerSlot<T> {
    /// Marked while an executor runs.
    slot: MarkedBox<T>,
    stopping: AtomicBool,
    /// How far the worker is.
    pub(crate) progress: Progress,
}

impl<T> AdvancerSlot<T> {
    pub(crate) fn new() -> Self {
        Self { slot: MarkedBox::empty(), stopping: AtomicBool::new(false), progress: Progress::new() }
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
            self.progress.note_change();
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
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use std::time::Duration;

    use super::super::phase::Phase;
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
        let seen = advancer_slot.progress.look();
        advancer_slot.put(Box::new(7_u64), Code::Own);
        advancer_slot.progress.wait(seen, None);
        advancer_slot.progress.enter(Phase::Left);
        advancer_slot.progress.wait(seen, None);
        assert_eq!(advancer_slot.progress.look().phase, Phase::Left);
        advancer_slot.progress.wait(advancer_slot.progress.look(), Some(Duration::from_millis(1)));
    }
}

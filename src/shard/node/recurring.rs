//! The transitions of a recurring timer's word: fire and arm anew, under one generation.
//!
//! [`state`](crate::shard::node::state) has their table and their races.

use super::{Node, Running, Vacant, join};
use crate::shard::node::state::{Status, Word};
use crate::sync::Ordering;
use crate::tick::Tick;

/// How a timer was stopped.
pub(crate) enum StopOutcome<T> {
    /// It was pending: the tick from which on the node can be reused in place, and the payload.
    Cancelled(T),
    /// Its payload is out: the callback is running.
    Running,
}

/// The result of firing a timer that may recur.
pub(crate) enum RunOutcome<'n, T> {
    /// It recurs: the node is kept for it.
    Recurring(Running, T),
    /// It does not recur, and the node is free. True unless it was stopped before that was known.
    Over(Vacant<'n, T>, bool, T),
}

impl<T> Node<T> {
    /// Stops the timer of that generation, pending or with its payload out; it is not armed anew.
    /// Of several callers one gets an answer, the others `None`.
    ///
    /// Against the advancer, which fires a pending timer and arms a running one anew: the
    /// compare-and-swap fails, and the next look finds the timer in its other status. Lock-free:
    /// each repetition means that the advancer has fired the timer or has armed it anew.
    pub(crate) fn stop(&self, era: u32, generation: u64) -> Option<StopOutcome<T>> {
        loop {
            // A hint: `cancel` loads the word anew, and of a running timer nothing else is read.
            let word = self.peek();
            if generation != join(era, word.version()) {
                return None;
            }
            if word.is(Status::Pending) {
                if let Some(payload) = self.cancel(era, generation) {
                    return Some(StopOutcome::Cancelled(payload));
                }
            } else if !word.is(Status::Running) {
                return None;
            } else if self.set_stopped(word) {
                return Some(StopOutcome::Running);
            }
        }
    }

    /// Fires the timer that [`observe`](Self::observe) found; `None` if it has changed since. If
    /// `recurs` is true of the payload, the node is kept for [`rearm`](Self::rearm) or
    /// [`end_run`](Self::end_run).
    ///
    /// `recurs` is called once the payload is out, because until then a canceller may take it.
    pub(crate) fn run(&self, word: Word, recurs: impl Fn(&T) -> bool) -> Option<RunOutcome<'_, T>> {
        let (vacant, payload) = self.win(word, Status::Running)?.read();
        if recurs(&payload) {
            return Some(RunOutcome::Recurring(vacant.without_borrow(), payload));
        }
        let (vacant, has_fired) = vacant.end();
        Some(RunOutcome::Over(vacant, has_fired, payload))
    }

    /// Arms the timer that [`run`](Self::run) fired once more, under the same generation.
    ///
    /// # Errors
    ///
    /// The node, which is free, and the payload, if the timer was stopped meanwhile.
    pub(crate) fn rearm(
        &self,
        running: Running,
        deadline: Tick,
        payload: T,
    ) -> Result<(), (Vacant<'_, T>, T)> {
        let vacant = self.resume(running);
        // Ordering: Relaxed, published by the word's Release in `fill_again`. A thread that reads
        // `base` meanwhile finds that the timer is not pending (see `state`).
        self.base.store(deadline, Ordering::Relaxed);
        vacant.fill_again(payload).map_err(|(vacant, payload)| (vacant.free(), payload))
    }

    /// Frees the node of a timer that [`run`](Self::run) fired. False if the timer was stopped
    /// meanwhile; the node is free in both cases.
    pub(crate) fn end_run(&self, running: Running) -> (Vacant<'_, T>, bool) {
        self.resume(running).end()
    }
}

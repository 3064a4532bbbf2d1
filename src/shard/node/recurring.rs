//! The transitions of a recurring timer's word: fire and arm anew, under one generation.
//!
//! [`state`](crate::shard::node::state) has their table and their races.

use super::{Node, join};
use crate::shard::node::state::{Status, Word};
use crate::sync::Ordering;
use crate::tick::Tick;

/// How a timer was stopped.
pub(crate) enum Ended<T> {
    /// It was pending: the tick from which on the node can be reused in place, and the payload.
    Cancelled(Tick, T),
    /// Its payload is out: the callback is running.
    Running,
}

/// The result of firing a timer that may recur.
pub(crate) enum Run<T> {
    /// It recurs: the node is kept for it.
    Recurring(Word, T),
    /// It does not recur, and the node is free.
    Over(T),
    /// It does not recur. It was stopped before that was known, and the node is free.
    Stopped(T),
}

impl<T> Node<T> {
    /// Stops the timer of that generation, pending or with its payload out; it is not armed anew.
    /// Of several callers one gets an answer, the others `None`.
    ///
    /// Against the advancer, which fires a pending timer and arms a running one anew: the
    /// compare-and-swap fails, and the next look finds the timer in its other status. Lock-free:
    /// each repetition means that the advancer has fired the timer or has armed it anew.
    pub(crate) fn stop(&self, era: u32, generation: u64) -> Option<Ended<T>> {
        loop {
            // Ordering: Relaxed, a hint: `cancel` reloads with Acquire, and of a running timer
            // nothing else is read.
            let word = Word::from_raw(self.word.load(Ordering::Relaxed));
            if generation != join(era, word.version()) {
                return None;
            }
            if word.is(Status::Pending) {
                if let Some((linked_for, payload)) = self.cancel(era, generation) {
                    return Some(Ended::Cancelled(linked_for, payload));
                }
            } else if !word.is(Status::Running) {
                return None;
            } else if self.replace(word, word.with_status(Status::Stopped)) {
                return Some(Ended::Running);
            }
        }
    }

    /// Fires the timer that [`observe`](Self::observe) found; `None` if it has changed since. If
    /// `recurs` is true of the payload, the node is kept for [`rearm`](Self::rearm) or
    /// [`end_run`](Self::end_run).
    ///
    /// `recurs` is called once the payload is out, because until then a canceller may take it.
    pub(crate) fn run(&self, word: Word, recurs: impl Fn(&T) -> bool) -> Option<Run<T>> {
        let running = word.with_status(Status::Running);
        if !self.replace(word, running) {
            return None;
        }
        let payload = self.take_payload();
        Some(if recurs(&payload) {
            Run::Recurring(running, payload)
        } else if self.end_run(running) {
            Run::Over(payload)
        } else {
            Run::Stopped(payload)
        })
    }

    /// Arms the timer that [`run`](Self::run) fired once more, under the same generation.
    ///
    /// # Errors
    ///
    /// The payload, if the timer was stopped meanwhile; the node is then free.
    pub(crate) fn rearm(&self, running: Word, deadline: Tick, payload: T) -> Result<(), T> {
        // Ordering: Relaxed, published by the word's Release below. A thread that reads `base`
        // meanwhile finds that the timer is not pending (see `state`).
        self.base.store(deadline, Ordering::Relaxed);
        self.put_payload(payload);
        // Ordering: Release, pairs with the Acquire of every thread that finds the timer pending.
        // Relaxed on failure: the payload is ours, and the thread that stopped the timer published
        // nothing.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        let armed = self.word.compare_exchange(running.raw(), running.rearmed().raw(), success, failure);
        armed.map(drop).map_err(|_| {
            self.free_stopped(running);
            self.take_payload()
        })
    }

    /// Frees the node of a timer that [`run`](Self::run) fired. False if the timer was stopped
    /// meanwhile; the node is free in both cases.
    pub(crate) fn end_run(&self, running: Word) -> bool {
        let ended = self.replace(running, running.with_status(Status::Free));
        if !ended {
            self.free_stopped(running);
        }
        ended
    }

    fn free_stopped(&self, running: Word) {
        // Ordering: Relaxed, no other thread writes the word of a stopped timer. The node's next
        // owner acquires this store with the free bits (`FreeBits::give` and `take`).
        self.word.store(running.with_status(Status::Free).raw(), Ordering::Relaxed);
    }
}

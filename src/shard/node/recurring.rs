//! What a node's word goes through where its timer recurs: out and back under the same generation.
//!
//! The transitions and their races are in [`state`](crate::shard::node::state).

use super::{Node, join};
use crate::shard::node::state::{Status, Word};
use crate::sync::Ordering;
use crate::tick::Tick;

/// How a timer was stopped.
pub(crate) enum Ended<T> {
    /// It was pending: the tick from which on the node can be reused where it stands, and the payload.
    Cancelled(Tick, T),
    /// Its payload is out, being run.
    Running,
}

/// How a timer was fired that may recur.
pub(crate) enum Run<T> {
    /// It will recur: the node is kept for it.
    Recurring(Word, T),
    /// It does not recur, and the node is free.
    Over(T),
    /// It does not recur; it was stopped while that was found out, and the node is free.
    Stopped(T),
}

impl<T> Node<T> {
    /// Stops the timer of that generation, whether it is pending or its payload is out, being run; it is not
    /// armed anew then. The winner of several gets an answer, the others none.
    ///
    /// Against the advancer, which fires a pending timer and arms one anew whose payload was out: the
    /// compare-and-swap fails, and the next look finds the timer in its other status. Lock-free: each such look
    /// means that the timer has fired once more.
    pub(crate) fn stop(&self, era: u32, generation: u64) -> Option<Ended<T>> {
        loop {
            // Ordering: Relaxed, a look: who cancels a pending timer looks again, and of one that runs nothing is read.
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

    /// Fires the timer that [`observe`](Self::observe) found, unless it has changed since; where `recurs` says so of
    /// the payload, the node is kept, for [`rearm`](Self::rearm) or [`end_run`](Self::end_run).
    ///
    /// The payload can be looked at only when it is out, as until then a canceller may take it.
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

    /// Arms the timer that [`run`](Self::run) fired once more, under the same generation. If it was stopped
    /// meanwhile, the payload comes back, and the node is free.
    pub(crate) fn rearm(&self, running: Word, deadline: Tick, payload: T) -> Result<(), T> {
        // Ordering: Relaxed, published by the word's Release below; who looks at `base` meanwhile finds out that
        // the timer is not pending (see `state`).
        self.base.store(deadline, Ordering::Relaxed);
        self.put_payload(payload);
        // Ordering: Release, pairs with the Acquire of whoever finds the timer pending. Relaxed on failure: the
        // payload is ours, and the one who stopped the timer published nothing.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        let armed = self.word.compare_exchange(running.raw(), running.rearmed().raw(), success, failure);
        armed.map(drop).map_err(|_| {
            self.free_stopped(running);
            self.take_payload()
        })
    }

    /// Frees the node of the timer that [`run`](Self::run) fired; false if it was stopped meanwhile.
    pub(crate) fn end_run(&self, running: Word) -> bool {
        let ended = self.replace(running, running.with_status(Status::Free));
        if !ended {
            self.free_stopped(running);
        }
        ended
    }

    fn free_stopped(&self, running: Word) {
        // Ordering: Relaxed, nobody else writes the word of a stopped timer, and the node's next owner gets it
        // by way of the reclaimer.
        self.word.store(running.with_status(Status::Free).raw(), Ordering::Relaxed);
    }
}

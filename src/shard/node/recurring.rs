//! The transitions of a recurring timer's word: fire and arm anew, under one generation.
//!
//! [`state`](crate::shard::node::state) has their table and their races.

use super::{Node, Unborrowed, Vacant, generation_of};
use crate::shard::node::state::{Status, Word};
use crate::sync::Ordering;
use crate::tick::Tick;

/// How a timer was stopped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stopped<T> {
    /// It was pending; its payload.
    Pending(T),
    /// Its payload is out, being run: this occurrence is the last.
    Running,
    /// There is no such timer any more.
    Gone,
}

impl<T> Node<T> {
    /// Stops the timer of that generation, pending or with its payload out; it is not armed anew.
    /// Of several callers one stops it, for the others it is `Gone`.
    ///
    /// Against the advancer, which fires a pending timer and arms a running one anew: the
    /// compare-and-swap fails, and the next look finds the timer in its other status. Lock-free:
    /// each repetition means that the advancer has fired the timer or has armed it anew.
    pub(crate) fn stop(&self, era: u32, generation: u64) -> Stopped<T> {
        loop {
            // A hint: `cancel` loads the word anew, and of a running timer nothing else is read.
            let word = self.peek();
            match word.status() {
                _ if generation != generation_of(era, word.version()) => return Stopped::Gone,
                Status::Pending => {
                    if let Some(payload) = self.cancel(era, generation) {
                        return Stopped::Pending(payload);
                    }
                }
                Status::Running => {
                    if self.end_running(word, Status::Stopped) {
                        return Stopped::Running;
                    }
                }
                _ => return Stopped::Gone,
            }
        }
    }

    /// Fires the pending timer that the caller has found; `None` if it has changed since. If
    /// `recurs` is true of the payload, the node is kept for [`rearm`](Self::rearm) or
    /// [`end_run`](Self::end_run). Otherwise the node is free, and the result is as that of
    /// `end_run`.
    ///
    /// `recurs` is called once the payload is out, because until then a canceller may take it.
    #[expect(clippy::type_complexity, reason = "used in one place")]
    pub(crate) fn run(
        &self,
        word: Word,
        recurs: impl Fn(&T) -> bool,
    ) -> Option<(Result<Unborrowed, (Vacant<'_, T>, bool)>, T)> {
        let (vacant, payload) = self.win(word, Status::Running)?.read();
        let recurs = recurs(&payload);
        Some((if recurs { Ok(vacant.without_borrow()) } else { Err(vacant.end()) }, payload))
    }

    /// Arms the timer that [`run`](Self::run) fired once more, under the same generation.
    ///
    /// # Errors
    ///
    /// The node, which is free, and the payload, if the timer was stopped meanwhile.
    pub(crate) fn rearm(
        &self,
        running: Unborrowed,
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
    pub(crate) fn end_run(&self, running: Unborrowed) -> (Vacant<'_, T>, bool) {
        self.resume(running).end()
    }
}

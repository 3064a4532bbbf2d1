//! Handing back what is pending when the advancer ends.
//!
//! The lists are of no interest any more: the walk goes over the nodes in memory order and takes each
//! pending timer by its word, as firing would. A producer may cancel one before the walk comes to it.
//!
//! A timer that is being moved while the shard ends may be on its way from a node that the walk has yet to
//! reach to one that it has passed. So it starts again if it met a node in which a producer was at work, or if the
//! count of moves shows that one ended meanwhile. Nobody who has seen the end begins a move (see `Scheduler::relocate`);
//! one that is begun without needs no more: the walk takes the timer from its old node, or finds that node in work, or
//! given up, and with it what its producer did before, the count too; and it is the timer's last, for who has the new key
//! has passed a fence and sees the end. It does not wait for a producer that is stalled in a move: after some walks it
//! ends, and that one timer is dropped with the shard.
//!
//! A recurring timer whose payload is out has fired for the last time: nobody arms it anew any more. The walk
//! counts it so, unless it is stopped first, and does not wait for the payload.

use super::node::{Met, Node};
use super::shared::Shared;
use super::slab::Ids;
use super::state::Word;
use crate::Tick;
use crate::sync::{Arc, yield_now};

/// The most walks there are: a few over many nodes, more over few, about a millisecond's worth.
const LEAST_WALKS: usize = 3;
const WORDS_WALKED: usize = if cfg!(shardwheel_loom) { 1 } else { 1 << 20 };

/// Yields the timers of a closed shard; drops those that are not taken.
pub(super) struct Handover<T> {
    shared: Arc<Shared<T>>,
    word: usize,
    ids: Ids,
    walks_left: usize,
    met_busy: bool,
    /// The count of moves when this walk began.
    moved: u64,
}

impl<T> Handover<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let moved = shared.moved();
        let walks_left = LEAST_WALKS.max(WORDS_WALKED / shared.slab.words().max(1));
        Self { shared, word: 0, ids: Ids::default(), walks_left, met_busy: false, moved }
    }

    /// Goes on to the next word of nodes; false at the end.
    fn next_word(&mut self) -> bool {
        if self.word >= self.shared.slab.words() && !self.start_again() {
            return false;
        }
        self.ids = self.shared.slab.taken(self.word);
        self.word += 1;
        true
    }

    fn start_again(&mut self) -> bool {
        let moved = self.shared.moved();
        let met_busy = std::mem::take(&mut self.met_busy);
        self.walks_left -= 1;
        if self.walks_left == 0 || !(met_busy || moved != self.moved) {
            return false;
        }
        if met_busy {
            yield_now();
        }
        (self.moved, self.word) = (moved, 0);
        true
    }

    fn end_run(&self, node: &Node<T>, word: Word) {
        if node.end_run(word) {
            self.shared.tally.fired.add(1);
            self.shared.bound.release();
        }
    }

    fn take(&mut self, id: u32) -> Option<(Tick, T)> {
        // SAFETY: the node is not free, and the advancer, whose place this has taken, gives nothing back.
        let (node, _) = unsafe { self.shared.slab.owned(id) };
        loop {
            match node.meet() {
                Met::Pending(deadline, word) => {
                    if let Some(payload) = node.fire(word) {
                        self.shared.tally.handed_back.add(1);
                        self.shared.bound.release();
                        return Some((deadline, payload));
                    }
                }
                Met::Running(word) => {
                    self.end_run(node, word);
                    return None;
                }
                met => {
                    self.met_busy |= met == Met::Busy;
                    return None;
                }
            }
        }
    }
}

impl<T> Iterator for Handover<T> {
    type Item = (Tick, T);

    fn next(&mut self) -> Option<(Tick, T)> {
        if self.walks_left == 0 {
            return None;
        }
        loop {
            while let Some(id) = self.ids.next() {
                if let Some(pending) = self.take(id) {
                    return Some(pending);
                }
            }
            if !self.next_word() {
                self.walks_left = 0;
                return None;
            }
        }
    }
}

impl<T> Drop for Handover<T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;

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
//! There are two ways to hand back. [`PendingWalk`] takes a timer out when it is asked for the next one, and until then the
//! timer can be cancelled; it is for those who know nothing of the payloads. [`Advancer::end`] goes over all nodes at
//! once: timers that it does not keep it takes out for good, the others it wins but leaves in their nodes, linked to one
//! another ([`Kept`]). So each timer has its outcome when the walk is over, nothing is copied, and nothing is allocated.
//!
//! A payload that panics when it is dropped keeps no other from being dropped: the first panic goes on when all are.
//!
//! A recurring timer whose payload is out has fired for the last time: nobody arms it anew any more. The walk
//! counts it so, unless it is stopped first, and does not wait for the payload.

use crate::shard::advancer::Advancer;
use crate::shard::memory::slab::walk::Ids;
use crate::shard::node::state::Word;
use crate::shard::node::{NIL, Node, NodeId, Observed};
use crate::shard::shared::consumer::Consumer;
use crate::sync::yield_now;
use crate::tick::Tick;
use crate::unwind::FirstPanic;

/// The most walks there are: a few over many nodes, more over few, about a millisecond's worth.
const LEAST_WALKS: usize = 3;
const WORDS_WALKED: usize = if cfg!(shardwheel_loom) { 1 } else { 1 << 20 };

/// Yields the timers of a closed shard; drops those that are not taken.
pub(super) struct PendingWalk<T> {
    shared: Consumer<T>,
    word: usize,
    ids: Ids,
    walks_left: usize,
    met_busy: bool,
    /// The count of moves when this walk began.
    moved: u64,
}

impl<T> PendingWalk<T> {
    pub(super) fn new(shared: Consumer<T>) -> Self {
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

    /// What `win` makes of the timer in that node, if there is one.
    fn settle<W>(&mut self, id: NodeId, win: impl Fn(&Node<T>, Tick, Word) -> Option<W>) -> Option<W> {
        let (node, _) = self.shared.node(id);
        loop {
            match node.observe() {
                Observed::Pending(deadline, word) => {
                    if let Some(won) = win(node, deadline, word) {
                        self.shared.tally.handed_back.add(1);
                        self.shared.bound.release();
                        return Some(won);
                    }
                }
                Observed::Running(word) => {
                    self.end_run(node, word);
                    return None;
                }
                met => {
                    self.met_busy |= met == Observed::Busy;
                    return None;
                }
            }
        }
    }
}

impl<T> PendingWalk<T> {
    fn take(&mut self, id: NodeId) -> Option<(Tick, T)> {
        self.settle(id, |node, deadline, word| node.fire(word).map(|payload| (deadline, payload)))
    }

    /// The next node in use, whatever is in it.
    fn next_id(&mut self) -> Option<NodeId> {
        if self.walks_left == 0 {
            return None;
        }
        loop {
            if let Some(id) = self.ids.next() {
                return Some(id);
            }
            if !self.next_word() {
                self.walks_left = 0;
                return None;
            }
        }
    }
}

impl<T> Iterator for PendingWalk<T> {
    type Item = (Tick, T);

    fn next(&mut self) -> Option<(Tick, T)> {
        loop {
            let id = self.next_id()?;
            if let Some(pending) = self.take(id) {
                return Some(pending);
            }
        }
    }
}

impl<T> Drop for PendingWalk<T> {
    fn drop(&mut self) {
        let mut panics = FirstPanic::new();
        self.for_each(|(_, payload)| panics.catch_drop(payload));
        panics.resume();
    }
}

/// Timers that had not fired when their shard ended, each in its node still, in memory order. Yields them; drops those
/// that are not taken.
pub(crate) struct Kept<T> {
    shared: Consumer<T>,
    /// The first node; each names the next.
    first: NodeId,
    count: usize,
}

impl<T> Advancer<T> {
    /// Has the shard refuse timers from now on; [`end`](Self::end) comes next.
    pub(crate) fn close(&self) {
        self.shared.clock.close();
    }

    /// Shuts the shard down. Payloads that `keeps` refuses are given to `dispose` as the walk comes to them; the other
    /// timers are returned. All are counted as handed back, and none can be cancelled any more.
    ///
    /// `keeps` runs no code of the user's, `dispose` may, and does not panic.
    pub(crate) fn end(mut self, keeps: impl Fn(&T) -> bool, mut dispose: impl FnMut(T)) -> Kept<T> {
        self.handed_over = true;
        self.close();
        let mut kept = Kept { shared: self.shared.pass_on(), first: NIL, count: 0 };
        // The walk needs neither its wheels nor its lists.
        drop(self);
        let (mut walk, mut last) = (PendingWalk::new(kept.shared.pass_on()), None);
        while let Some(id) = walk.next_id() {
            let Some(word) = walk.settle(id, |node, _, word| node.keep(word)) else { continue };
            let (node, _) = kept.shared.node(id);
            node.link_kept(word, NIL);
            if node.look_at_kept(&keeps) {
                kept.push(id, last.replace((id, word)));
            } else {
                dispose(node.take_kept().2);
            }
        }
        kept
    }
}

impl<T> Kept<T> {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Takes in a node that has been linked to none, behind the last one.
    fn push(&mut self, id: NodeId, last: Option<(NodeId, Word)>) {
        self.count += 1;
        match last {
            None => self.first = id,
            Some((last, word)) => {
                let (node, _) = self.shared.node(last);
                node.link_kept(word, id);
            }
        }
    }
}

impl<T> Iterator for Kept<T> {
    type Item = (Tick, T);

    fn next(&mut self) -> Option<(Tick, T)> {
        if self.first == NIL {
            return None;
        }
        let (node, _) = self.shared.node(self.first);
        let (next, deadline, payload) = node.take_kept();
        (self.first, self.count) = (next, self.count - 1);
        Some((deadline, payload))
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        let mut panics = FirstPanic::new();
        self.for_each(|(_, payload)| panics.catch_drop(payload));
        panics.resume();
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;

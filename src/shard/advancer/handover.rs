//! The walk that ends the shard: hands back the pending timers when the advancer ends.
//!
//! The lists no longer matter. The walk goes over the nodes in memory order and takes each pending
//! timer by its word, as firing does. A producer may cancel a timer before the walk reaches it.
//!
//! # Moves during the walk
//!
//! A timer that is moved while the shard ends may go from a node that the walk has not yet reached
//! to one that it has passed. So the walk starts again if it met a busy node, or if the count of
//! moves shows that a move ended meanwhile.
//!
//! A producer that sees `closed` does not complete a move (see `Scheduler::relocate`). A move whose
//! producer does not see it is caught: its old node is pending, busy or cancelled.
//!
//! - *Pending*: the walk takes the timer there.
//! - *Busy*: the walk starts again.
//! - *Cancelled*: what the producer did before is visible to the walk, including the count of
//!   moves, so the walk starts again.
//!
//! It is the timer's last move: a thread that has the new key has passed a fence and sees `closed`.
//!
//! The walk gives a producer that is stalled in a move a tenth of a second to go on. After that it
//! ends, and that one timer is dropped with the shard.
//!
//! # Two ways to hand back
//!
//! - [`PendingWalk`] takes a timer out when the caller asks for the next one; until then the timer
//!   can be cancelled. It serves callers that know nothing of the payloads.
//! - [`Advancer::end`] goes over all nodes at once. It takes the timers that it does not keep out
//!   for good. It wins the others, but leaves them in their nodes, linked to each other ([`Kept`]).
//!   So each timer has its outcome when the walk is over, and nothing is copied or allocated.
//!
//! If a payload panics when it is dropped, the others are still dropped; the first panic resumes
//! after that.
//!
//! A recurring timer whose payload is out has fired for the last time: no thread arms it again. The
//! walk counts it as fired, unless it has been stopped, and does not wait for the payload.

use std::time::Duration;

use crate::shard::advancer::Advancer;
use crate::shard::key::Key;
use crate::shard::memory::slab::walk::Ids;
use crate::shard::node::state::Word;
use crate::shard::node::{Filled, KeptTimer, NIL, Node, NodeId, Observed, join};
use crate::shard::shared::consumer::Consumer;
use crate::sync::yield_now;
use crate::tick::Tick;
use crate::unwind::FirstPanic;

/// The most walks: `WORDS_WALKED` divided by the words of nodes, within these limits. A walk over
/// many nodes takes long, so there are few of those.
const LEAST_WALKS: usize = 3;
const MOST_WALKS: usize = YIELDS + 100;
const WORDS_WALKED: usize = if cfg!(shardwheel_loom) { 1 } else { 1 << 20 };

/// After this many walks that met a busy node the end sleeps before each further one: the producer
/// that is at work there has lost its processor, and does not get it back from a thread that spins.
const YIELDS: usize = 16;
const SLEEP: Duration = Duration::from_millis(1);

/// Yields the timers of a closed shard; drops those that are not taken.
pub(super) struct PendingWalk<T> {
    shared: Consumer<T>,
    word: usize,
    ids: Ids,
    walks_left: usize,
    /// How many walks have met a busy node.
    waits: usize,
    met_busy: bool,
    /// The count of moves when this walk began.
    moved: u64,
}

impl<T> PendingWalk<T> {
    pub(super) fn new(shared: Consumer<T>) -> Self {
        let moved = shared.moved();
        let walks_left = (WORDS_WALKED / shared.slab.words().max(1)).clamp(LEAST_WALKS, MOST_WALKS);
        Self { shared, word: 0, ids: Ids::default(), walks_left, waits: 0, met_busy: false, moved }
    }

    /// Goes on to the next word of nodes; false at the end of the last walk.
    fn next_word(&mut self) -> bool {
        if self.word >= self.shared.slab.words() && !self.start_again() {
            return false;
        }
        self.ids = self.shared.slab.taken(self.word, self.shared.keep());
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
            self.wait();
        }
        (self.moved, self.word) = (moved, 0);
        true
    }

    /// Gives the producer that is at work in a node time to go on.
    fn wait(&mut self) {
        self.waits += 1;
        if cfg!(shardwheel_loom) || self.waits <= YIELDS {
            yield_now();
        } else {
            std::thread::sleep(SLEEP);
        }
    }

    /// Lets `win` take the timer in that node, and returns what it makes of it. `None` if there is
    /// no timer or it is being run.
    fn settle<W>(&mut self, id: NodeId, win: impl Fn(&Node<T>, Tick, Word) -> Option<W>) -> Option<W> {
        let Self { shared, met_busy, .. } = self;
        let node = shared.node(id);
        loop {
            match node.observe() {
                Observed::Pending(deadline, word) => {
                    if let Some(won) = win(&node, deadline, word) {
                        shared.tally.handed_back.add(1);
                        shared.bound.release();
                        return Some(won);
                    }
                }
                Observed::Running(word) => {
                    if node.end_for_good(word) {
                        shared.tally.fired.add(1);
                        shared.bound.release();
                    }
                    return None;
                }
                met => {
                    *met_busy |= met == Observed::Busy;
                    return None;
                }
            }
        }
    }
}

impl<T> PendingWalk<T> {
    fn take(&mut self, id: NodeId) -> Option<(Tick, T)> {
        self.settle(id, |node, deadline, word| node.fire(word).map(|(_, payload)| (deadline, payload)))
    }

    /// The next node in use, whatever its status.
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

/// Timers that had not fired when their shard ended. Each is still in its node, in memory order.
/// Yields them; drops those that are not taken.
pub(crate) struct Kept<T> {
    shared: Consumer<T>,
    /// The first node; each names the next.
    first: NodeId,
    count: usize,
}

impl<T> Advancer<T> {
    /// Makes the shard refuse timers from now on; [`end`](Self::end) comes next.
    pub(crate) fn close(&self) {
        self.shared.clock.close();
    }

    /// Shuts the shard down. The walk passes each payload that `keeps` refuses to `dispose` at
    /// once, and returns the other timers. All count as handed back, and none can be cancelled any
    /// more.
    ///
    /// `keeps` runs no user code. `dispose` may run user code, and does not panic.
    pub(crate) fn end(mut self, keeps: impl Fn(&T) -> bool, mut dispose: impl FnMut(T)) -> Kept<T> {
        let mut kept = Kept { shared: self.hand_over(), first: NIL, count: 0 };
        // The walk needs neither the private wheels nor the lists.
        drop(self);
        let (mut walk, mut last) = (PendingWalk::new(kept.shared.pass_on()), NIL);
        let win = |filled: Filled<'_, T>| {
            if filled.look(&keeps) {
                filled.keep();
                None
            } else {
                Some(filled.take())
            }
        };
        while let Some(id) = walk.next_id() {
            match walk.settle(id, |node, _, word| node.win_for_the_end(word).map(win)) {
                None => {}
                Some(None) => kept.push(id, std::mem::replace(&mut last, id)),
                Some(Some(payload)) => dispose(payload),
            }
        }
        kept
    }
}

impl<T> Kept<T> {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Appends a node, which links to no other yet, after `last`.
    fn push(&mut self, id: NodeId, last: NodeId) {
        self.count += 1;
        if last == NIL {
            self.first = id;
        } else {
            // SAFETY: the chain owns its nodes, and `last` is the last of them.
            unsafe { self.shared.node(last).link(id) };
        }
    }
}

impl<T> Iterator for Kept<T> {
    type Item = (Key, Tick, T);

    fn next(&mut self) -> Option<(Key, Tick, T)> {
        if self.first == NIL {
            return None;
        }
        let node = self.shared.node(self.first);
        // SAFETY: the chain owns its nodes, and this is the first of them.
        let KeptTimer { next, version, deadline, payload } = unsafe { node.take_kept() };
        let key = Key::new(self.shared.id, self.first, join(node.era(), version));
        (self.first, self.count) = (next, self.count - 1);
        Some((key, deadline, payload))
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        let mut panics = FirstPanic::new();
        self.for_each(|(.., payload)| panics.catch_drop(payload));
        panics.resume();
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;

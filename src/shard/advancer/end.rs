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
//! A producer that sees `closed` does not complete a move (see `Scheduler::move_timer`). A move whose
//! producer does not see it is caught: its old node is pending, busy or cancelled.
//!
//! - *Pending*: the walk takes the timer there.
//! - *Busy*: the walk starts again.
//! - *Cancelled*: what the producer did before is visible to the walk, including the count of
//!   moves, so the walk starts again.
//!
//! It is the timer's last move: a thread that has the new key has passed a fence and sees `closed`.
//!
//! The walk gives up after a hundred times: a producer that is stalled in a move has about a tenth
//! of a second to go on. Then that one timer is dropped with the shard.
//!
//! # Two ways to hand back
//!
//! - [`Pending`] takes a timer out when the caller asks for the next one; until then the timer
//!   can be cancelled. It serves callers that know nothing of the payloads.
//! - [`Advancer::end`] goes over all nodes at once. It takes the timers that it does not keep out
//!   for good. It wins the others, but leaves them in their nodes, from which a second walk takes
//!   them ([`Kept`]). So each timer has its outcome when the first walk is over, and nothing is
//!   copied or allocated.
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
use crate::shard::node::state::{Status, Word};
use crate::shard::node::{Filled, Node, NodeId, generation_of};
use crate::shard::shared::consumer::Consumer;
use crate::size::size;
use crate::sync::{thread, yield_now};
use crate::tick::Tick;
use crate::unwind::drop_each;

/// How often the shard's end walks over all nodes, at most.
pub(crate) const WALKS: usize = size(100, 100, 3);

/// After this many walks the end sleeps before each further one that follows on a busy node: the
/// producer that is at work there has lost its processor, and does not get it back from a thread
/// that spins.
const YIELDS: usize = 16;
const SLEEP: Duration = Duration::from_millis(1);

/// A walk over the nodes of a closed shard.
pub(super) struct Walk {
    word: usize,
    ids: Ids,
    walks_left: usize,
    met_busy: bool,
    /// The count of moves when this walk began.
    moved: u64,
}

impl Walk {
    fn new<T>(shared: &Consumer<T>) -> Self {
        let (ids, moved) = (Ids::default(), shared.moved());
        Self { word: 0, ids, walks_left: WALKS, met_busy: false, moved }
    }

    /// The next node in use, whatever its status.
    fn next<T>(&mut self, shared: &Consumer<T>) -> Option<NodeId> {
        loop {
            if let Some(id) = self.ids.next() {
                return Some(id);
            }
            if self.walks_left == 0 || self.word >= shared.slab.words() && !self.start_again(shared.moved()) {
                return None;
            }
            self.ids = shared.slab.taken(self.word, shared.keep());
            self.word += 1;
        }
    }

    /// Begins another walk, unless this one was the last.
    fn start_again(&mut self, moved: u64) -> bool {
        let met_busy = std::mem::take(&mut self.met_busy);
        let begins = met_busy || moved != self.moved;
        self.walks_left = if begins { self.walks_left - 1 } else { 0 };
        if met_busy && self.walks_left > 0 {
            // Gives the producer that is at work in a node time to go on.
            let waits = self.walks_left + YIELDS < WALKS;
            if waits { thread::sleep(SLEEP) } else { yield_now() }
        }
        (self.moved, self.word) = (moved, 0);
        self.walks_left > 0
    }

    /// Lets `win` take the timer in that node, and returns what it makes of it. `None` if there is
    /// no timer or it is being run.
    fn take_by<T, W>(
        &mut self,
        shared: &Consumer<T>,
        id: NodeId,
        win: impl Fn(&Node<T>, Tick, Word) -> Option<W>,
    ) -> Option<W> {
        let node = shared.node(id);
        loop {
            let word = node.word();
            match word.status() {
                Status::Pending => {
                    if let Some(won) = win(&node, node.deadline(word), word) {
                        shared.tally.handed_back.add(1);
                        shared.bound.release();
                        return Some(won);
                    }
                }
                Status::Running => {
                    if node.end_running(word, Status::Free) {
                        shared.tally.fired.add(1);
                        shared.bound.release();
                    }
                    return None;
                }
                met => {
                    self.met_busy |= met == Status::Busy;
                    return None;
                }
            }
        }
    }

    /// Takes the next pending timer.
    fn take_next<T>(&mut self, shared: &Consumer<T>) -> Option<(Tick, T)> {
        let take = |node: &Node<T>, deadline, word| node.fire(word).map(|(_, payload)| (deadline, payload));
        loop {
            let id = self.next(shared)?;
            if let Some(pending) = self.take_by(shared, id, take) {
                return Some(pending);
            }
        }
    }

    /// Drops the pending timers that are left. The first panic of a payload's drop resumes at the
    /// end.
    fn drop_the_rest<T>(&mut self, shared: &Consumer<T>) {
        drop_each(std::iter::from_fn(|| self.take_next(shared)));
    }
}

/// Yields the timers of a closed shard; drops those that are not taken.
struct Pending<T> {
    advancer: Advancer<T>,
    walk: Walk,
}

impl<T> Iterator for Pending<T> {
    type Item = (Tick, T);

    fn next(&mut self) -> Option<(Tick, T)> {
        self.walk.take_next(&self.advancer.shared)
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.walk.drop_the_rest(&self.advancer.shared);
    }
}

/// Timers that had not fired when their shard ended. Each is still in its node, in memory order.
/// Yields them; drops those that are not taken.
pub(crate) struct Kept<T> {
    advancer: Box<Advancer<T>>,
    walk: Walk,
    count: usize,
}

impl<T> Advancer<T> {
    /// Makes the shard refuse timers from now on; [`end`](Self::end) comes next.
    pub(crate) fn close(&self) {
        self.shared.clock.close();
    }

    /// Ends what only the advancer does, and closes the shard. The returned walk alone takes
    /// pending timers: a timer that is armed behind it is its producer's, which sees that the shard
    /// is closed.
    fn close_down(&mut self) -> Walk {
        self.is_closed_down = true;
        let (shared, reclaimer) = self.shared.parts();
        self.waker_owner.end(&shared.waker, reclaimer);
        self.close();
        Walk::new(&self.shared)
    }

    /// Shuts the shard down and returns the pending timers as (deadline, payload), in no particular
    /// order. Timers that are not taken from the iterator are dropped with it.
    ///
    /// A timer can be cancelled until the iterator reaches it.
    ///
    /// # Performance
    ///
    /// O(nodes in use). If another thread has stopped within a call, in the node of a timer, the
    /// iterator waits for it, for about a tenth of a second at most.
    pub fn into_pending(mut self) -> impl Iterator<Item = (Tick, T)> {
        Pending { walk: self.close_down(), advancer: self }
    }

    /// Shuts the shard down. The walk passes each payload that `keeps` refuses to `dispose` at
    /// once, and returns the other timers. All count as handed back, and none can be cancelled any
    /// more.
    ///
    /// `keeps` runs no user code. `dispose` may run user code, and does not panic.
    pub(crate) fn end(
        mut self: Box<Self>,
        keeps: impl Fn(&T) -> bool + Copy,
        mut dispose: impl FnMut(T),
    ) -> Kept<T> {
        let mut walk = self.close_down();
        let (mut kept, win) = (0, |filled: Filled<'_, T>| {
            // What is kept stays in its node.
            if filled.look(keeps) { None } else { Some(filled.take()) }
        });
        while let Some(id) = walk.next(&self.shared) {
            let won = walk.take_by(&self.shared, id, |node, _, word| node.win_for_the_end(word).map(win));
            kept += usize::from(matches!(won, Some(None)));
            won.flatten().into_iter().for_each(&mut dispose);
        }
        Kept { walk: Walk { walks_left: 1, ..Walk::new(&self.shared) }, advancer: self, count: kept }
    }
}

impl<T> Drop for Advancer<T> {
    /// Shuts the shard down, and drops the timers that are pending.
    fn drop(&mut self) {
        if !self.is_closed_down {
            self.close_down().drop_the_rest(&self.shared);
        }
    }
}

impl<T> Kept<T> {
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}

impl<T> Iterator for Kept<T> {
    type Item = (Key, Tick, T);

    fn next(&mut self) -> Option<(Key, Tick, T)> {
        let shared = &self.advancer.shared;
        loop {
            let id = self.walk.next(shared)?;
            let node = shared.node(id);
            let word = node.word();
            if word.is(Status::Kept)
                && let Some((_, payload)) = node.fire(word)
            {
                self.count -= 1;
                let deadline = node.deadline(word);
                let key = Key::new(shared.id, id, generation_of(node.era(), word.version()));
                return Some((key, deadline, payload));
            }
        }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        drop_each(self);
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;

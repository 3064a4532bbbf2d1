//! How a timer gets into a bucket while the clock moves: the clock's words, both sides' steps, and
//! the argument that no timer is lost. The other files link here.
//!
//! # The words
//!
//! - `now` is the clock: a deadline at or before it is due.
//! - `sealed` is the tick up to which no producer pushes to a bucket any more. It is at or after
//!   `now`, by a few ticks at most.
//! - `flushed` is the last tick all of whose timers the advancer has taken out. It lags behind
//!   `now` while an advance is under way.
//! - `wake_below` says which deadlines wake a sleeping advancer: those at or before it.
//! - `closed` refuses timers, from the shard's end on.
//!
//! # The producer's steps
//!
//! For a node that it owns and has armed, a producer
//!
//! 1. loads `flushed` (Acquire) and then `sealed`. If the deadline is sealed, it goes on with
//!    step 5. Otherwise it computes the slot, within one revolution after `flushed` at each level;
//! 2. sets the occupancy bit of the list, and raises the wheel's `last` to the bucket's number;
//! 3. passes a SeqCst fence;
//! 4. loads `sealed`. If the slot expires later, it pushes. A push fails if the list has been
//!    flushed past the slot's round;
//! 5. if it did not push, it puts the node on the *inbox*, a stack that each advance empties.
//!
//! The first load of `sealed` is a hint: without it, the producer would set a bit in step 2 that no
//! flush of this round clears.
//!
//! # The advancer's steps
//!
//! 1. It stores `now`. If `now` is after `sealed`, it *seals*: it stores in `sealed` the last tick
//!    of a short window that contains `now`, passes a SeqCst fence, and looks at the bits of every
//!    bucket that expires after `flushed` and at or before `sealed`.
//! 2. It empties the inbox.
//! 3. For each bucket that expires at or before `now` and had a bit set, it clears the bucket's
//!    bits, then swaps each such list for an empty one of the next round.
//! 4. It stores `flushed` (Release) when it has done with the tick.
//!
//! So the fence and the look are made once for a window, not at each tick.
//!
//! # No timer is lost
//!
//! Take a producer whose slot expires at `e`, and the first seal at or past `e`. One of the two
//! fences comes first.
//!
//! - *The producer's fence comes first.* The advancer's look at the bits comes after its own fence,
//!   so it finds the bit set. (Or an earlier producer had set the bit, and the advancer has cleared
//!   it since; then it swaps that list next.) So the advancer swaps the list when the clock reaches
//!   `e`. If the push came before the swap, the swap takes the node. If it comes after, the push
//!   fails on the round.
//! - *The advancer's fence comes first.* The producer's load of `sealed` returns at least that
//!   tick, and the producer does not push.
//!
//! A producer that does not push puts the node on the inbox. The next advance finds it there: late
//! by one advance at most.
//!
//! **One look is enough.** By the same argument a look at the bits after the fence holds for the
//! whole window: no further bucket that expires at or before `sealed` comes to hold anything.
//!
//! **Where no look is needed.** Each bucket of a wheel that was ever marked has a number of at most
//! the wheel's `last`, which only rises. So the advancer passes over a wheel whose `last` comes
//! before the first bucket that it would look at. It passes over no other wheel, because `last`
//! says nothing of the bits below it. In step 2 the producer has loaded a value of `last` that is
//! high enough, or has raised it. If its fence comes first, the advancer, which loads `last` after
//! its own fence, finds that value or a later one, which is higher: it looks. It does not matter
//! which producer has raised it. (A bit that says whether the wheel holds anything would have to be
//! cleared. A producer that loads such a bit before it is cleared would not set it again, so it
//! would have to load it once more, after its fence.) The same holds for the number of levels that
//! have a wheel, which a producer raises before it puts the wheel into the table.
//!
//! **No bit is cleared under a timer of the next round.** A producer that means a bucket's next
//! round has loaded a `flushed` at or past the bucket's expiration. It has thereby acquired the
//! clearing of the bit and the swap of the list, sees the bit clear, and sets it anew.
//!
//! **No bucket holds two rounds.** What is pushed lies within one revolution after `flushed`, and
//! everything earlier is out.
//!
//! # Sleep
//!
//! To sleep, the advancer stores in `wake_below` the tick before the earliest one that it has in
//! hand, passes a SeqCst fence, and only then looks at the bits and the inbox. If it finds
//! something earlier, it lowers `wake_below` and its answer. A producer loads `wake_below` after
//! its own fence. Its fence comes after it has set the bit (for the inbox: after the push; for a
//! node that is reused in place: after the store of the node's word). If the producer's fence comes
//! first, the advancer's look sees the bit. If the advancer's comes first, the producer sees
//! `wake_below`, and wakes the advancer (see [`advancer_waker`](super::advancer_waker)) once it has
//! left its lane. The bit comes before the push, so the advancer may wake for nothing. It never
//! wakes too late.
//!
//! # Busy nodes
//!
//! A producer that exchanges a payload makes its node busy for a moment. It then passes its fence,
//! loads `now`, and cancels a timer that is due by then. An advancer that meets a busy node passes
//! a fence of its own, looks again, and only then defers the node. If the producer's fence comes
//! first, the second look finds the timer pending. If the advancer's comes first, the producer sees
//! the clock.
//!
//! # Nodes that are reused in place
//!
//! A producer may put its next timer into the node that it cancelled last, where the node is
//! linked (see [`state`](crate::shard::node::state)). The node is busy until the timer is in, so
//! the advancer may defer it. The producer stores the node's word, passes its fence, and loads
//! `wake_below`. The timer is due no earlier than the tick that the node is linked for. So before a
//! sleep, either the advancer sees the bucket in which the node is linked, or it has the node in
//! the inbox, in hand or deferred. There the advancer loads the word after its own fence: it finds
//! the timer, or the producer sees `wake_below`.
//!
//! # No memory
//!
//! If there is no memory for an overflow wheel, the node goes to the inbox, from which the advancer
//! places it in its private wheels.
//!
//! # The end
//!
//! The end stores `closed`, passes a SeqCst fence, and looks at all nodes. A producer checks
//! `closed` after its fence. Either it sees `closed` and takes its timer back, or the end sees its
//! node. So no timer that was accepted is lost.

use super::Shared;
use crate::shard::node::{NIL, Node, NodeId};
use crate::shard::wheel::STRIPES;
use crate::sync::{AtomicBool, AtomicU64, Ordering, fence, hint, plain};
use crate::tick::Tick;

/// The value of `wake_below` while the advancer is awake. No producer wakes it then, except for a
/// deadline of 0, which does no harm.
const AWAKE: Tick = 0;

/// The clock of a shard: what every producer reads and the advancer writes.
pub(crate) struct ShardClock {
    now: AtomicU64,
    sealed: AtomicU64,
    flushed: AtomicU64,
    wake_below: AtomicU64,
    closed: AtomicBool,
    /// Whether the next cancel wakes the advancer, which sleeps with memory that the pending timers
    /// do not need (see `counts`). Set by the advancer, cleared by a canceller and the advancer.
    pub(crate) wakes_for_cancel: plain::AtomicBool,
}

/// The clock as a producer reads it after its fence.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) now: Tick,
    /// A bucket that expires at or before this tick accepts no timers.
    sealed: Tick,
    /// The producer of a timer that is due at or before this tick must wake the advancer.
    wake_below: Tick,
}

impl Reading {
    /// Whether a timer due at `deadline`, which the advancer may not know of, is due before the
    /// advancer's sleep ends.
    #[inline]
    pub(crate) fn must_wake(self, deadline: Tick) -> bool {
        deadline <= self.wake_below
    }
}

impl ShardClock {
    pub(crate) fn new(start: Tick) -> Self {
        Self {
            now: AtomicU64::new(start),
            sealed: AtomicU64::new(start),
            flushed: AtomicU64::new(start),
            wake_below: AtomicU64::new(AWAKE),
            closed: AtomicBool::new(false),
            wakes_for_cancel: plain::AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn flushed(&self) -> Tick {
        // Ordering: Acquire, pairs with `publish_flushed`: bits cleared and lists swapped up to
        // this tick.
        self.flushed.load(Ordering::Acquire)
    }

    /// Moves the clock. If the clock leaves what is sealed, [`seal`](Self::seal) comes next.
    #[inline]
    pub(crate) fn publish_now(&self, now: Tick) {
        // Ordering: Relaxed, the fence of `seal`, or of `pass_fence` for a busy node, orders it.
        self.now.store(now, Ordering::Relaxed);
        // Ordering: Relaxed, an advancer that is awake needs no wake; a producer that sees the old
        // value wakes it once too often.
        self.wake_below.store(AWAKE, Ordering::Relaxed);
    }

    /// Closes the buckets that expire at or before `tick` to producers. The advancer calls this
    /// before it looks at their bits.
    #[inline]
    pub(crate) fn seal(&self, tick: Tick) {
        // Ordering: Relaxed, the fence orders it against the looks that follow.
        self.sealed.store(tick, Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence in `read`.
        fence(Ordering::SeqCst);
    }

    /// Orders a second look at a busy node after the clock.
    #[cold]
    pub(crate) fn pass_fence(&self) {
        // Ordering: SeqCst, pairs with the fence in `read`.
        fence(Ordering::SeqCst);
    }

    /// The tick up to which buckets are closed, or an earlier one. Not before `flushed`, which the
    /// caller has loaded.
    #[inline]
    fn sealed_since(&self, flushed: Tick) -> Tick {
        // Ordering: Relaxed, a hint; the Acquire of `flushed` keeps it from being older.
        hint(|| self.sealed.load(Ordering::Relaxed)).unwrap_or(flushed)
    }

    #[inline]
    pub(crate) fn publish_flushed(&self, tick: Tick) {
        // Ordering: Release, pairs with `flushed`.
        self.flushed.store(tick, Ordering::Release);
    }

    /// Reads the clock after everything that the caller has done so far.
    #[inline]
    pub(crate) fn read(&self) -> Reading {
        // Ordering: SeqCst, pairs with the fences in `seal`, `pass_fence`, `publish_wake_at` and
        // `close`.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, the fence orders all three.
        let now = self.now.load(Ordering::Relaxed);
        let sealed = self.sealed.load(Ordering::Relaxed);
        Reading { now, sealed, wake_below: self.wake_below.load(Ordering::Relaxed) }
    }

    /// Lowers the end of the sleep that [`publish_wake_at`](Shared::publish_wake_at) published, if
    /// `answer` is earlier.
    pub(crate) fn lower_published(&self, answer: Option<Tick>) {
        // Ordering: Relaxed for both: only the advancer writes it, and a producer that sees the
        // former value wakes the advancer once too often.
        if below(answer) < self.wake_below.load(Ordering::Relaxed) {
            self.wake_below.store(below(answer), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Relaxed, the callers' fences order it where it matters.
        self.closed.load(Ordering::Relaxed)
    }

    /// Refuses timers from now on. The caller looks at all nodes next.
    pub(crate) fn close(&self) {
        // Ordering: Relaxed, the fence orders it.
        self.closed.store(true, Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence of every insert: a producer sees `closed`, or the
        // end sees the producer's node.
        fence(Ordering::SeqCst);
    }
}

/// The last deadline for which an advancer that sleeps until `answer` must be woken.
fn below(answer: Option<Tick>) -> Tick {
    answer.map_or(Tick::MAX, |tick| tick.saturating_sub(1))
}

impl<T> Shared<T> {
    /// Begins a sleep and publishes when it ends. The advancer looks at the bits and the inbox
    /// after this.
    pub(crate) fn publish_wake_at(&self, answer: Option<Tick>) {
        self.waker.begin_sleep();
        // Ordering: Relaxed, the fence orders it.
        self.clock.wake_below.store(below(answer), Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence in `read`.
        fence(Ordering::SeqCst);
    }

    /// Runs the producer's steps, and reads `wake_below`. Returns true if the caller must wake the
    /// advancer. Lock-free.
    #[inline]
    #[must_use]
    pub(crate) fn insert(&self, id: NodeId, node: &Node<T>, deadline: Tick) -> bool {
        let flushed = self.clock.flushed();
        if deadline > self.clock.sealed_since(flushed) {
            let slot = self.geometry.place(flushed, deadline);
            if let Some(wheel) = self.wheel_or_new(slot.level, flushed) {
                let (index, stripe) = (self.geometry.index(slot), id as usize % STRIPES);
                wheel.mark(slot.number, index, stripe);
                let reading = self.clock.read();
                if reading.sealed < self.geometry.expiration(slot)
                    && wheel.push(index, stripe, self.geometry.round(slot), id, node.next())
                {
                    return reading.must_wake(deadline);
                }
            }
        }
        self.push_to_inbox(id, node);
        self.must_wake(deadline)
    }

    /// Reads `wake_below` for a timer that is already in its list, the inbox included. Returns true
    /// if the caller must wake the advancer.
    #[inline]
    #[must_use]
    pub(crate) fn must_wake(&self, deadline: Tick) -> bool {
        self.clock.read().must_wake(deadline)
    }

    /// Puts a chain of nodes on the inbox, from `first` to the node `last`. The caller owns them.
    #[cold]
    pub(super) fn push_to_inbox(&self, first: NodeId, last: &Node<T>) {
        // The inbox is nearly always empty. There is no load first: loom remembers only the last
        // access to an atomic, and with a load would miss an interleaving (see `Trace`).
        let mut seen = NIL;
        loop {
            // Ordering: Relaxed, published by the compare-and-swap.
            last.next().store(seen, Ordering::Relaxed);
            // Ordering: Release, pairs with the Acquire of `take_inbox`.
            match self.inbox.compare_exchange_weak(seen, first, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

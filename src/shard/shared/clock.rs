//! A shard's clock, and how its advancer is woken.
//!
//! Two words tell the time. `now` is the clock: a deadline at or before it is due. `flushed` is the last tick
//! all of whose timers the advancer has taken out; while an advance is under way it lags behind. How adders
//! and the advancer use the two is told in [`shared`](crate::shard::shared).
//!
//! # Sleeping
//!
//! `wake_below` tells for which deadlines a sleeping advancer has to be woken: those at or before it, which
//! is the tick before the last answer of `next_expiration`. The advancer stores it, passes a SeqCst
//! fence, and looks at the bits and the inbox once more. An adder loads it after its own fence, which comes
//! behind its setting of the bit (in the inbox's case behind the push, in that of a node reused where it
//! stands behind the store of the word). The two fences are in some order: either the adder sees the answer,
//! or the advancer sees the bit, which comes before the push: it may then wake for nothing, never too late.
//! An adder whose deadline is that early owes a ring: it rings the [`bell`](crate::shard::shared::bell) when it has left its lane, unless
//! that sleep has been rung for.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::shard::shared::bell::Bell;
use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};
use crate::tick::Tick;

/// Stands in `wake_below` while the advancer is at work: no adder rings, but for a deadline of 0, which
/// does no harm.
const AWAKE: Tick = 0;

pub(crate) struct Clock {
    words: CachePadded<Words>,
    /// Shared with the lanes, whose owners ring it when they give a lane up.
    pub(crate) bell: Arc<Bell>,
}

/// What every adder reads and the advancer alone writes.
struct Words {
    now: AtomicU64,
    flushed: AtomicU64,
    wake_below: AtomicU64,
    closed: AtomicBool,
}

/// The clock as an adder sees it after its fence.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) now: Tick,
    /// A timer that is due at or before this owes the advancer a ring.
    wake_below: Tick,
}

impl Reading {
    /// Whether a timer that the advancer may not know of, due at `deadline`, is due before the advancer's sleep ends.
    #[inline]
    pub(crate) fn owes_ring(self, deadline: Tick) -> bool {
        deadline <= self.wake_below
    }
}

impl Clock {
    pub(crate) fn new(start: Tick) -> Self {
        let words = Words {
            now: AtomicU64::new(start),
            flushed: AtomicU64::new(start),
            wake_below: AtomicU64::new(AWAKE),
            closed: AtomicBool::new(false),
        };
        Self { words: CachePadded::new(words), bell: Arc::new(Bell::new()) }
    }

    #[inline]
    pub(crate) fn flushed(&self) -> Tick {
        // Ordering: Acquire, pairs with `publish_flushed`: bits cleared and lists swapped up to this tick.
        self.words.flushed.load(Ordering::Acquire)
    }

    /// Moves the clock; for the advancer, before it looks at bits and inbox.
    pub(crate) fn publish_now(&self, now: Tick) {
        // Ordering: Relaxed, the fence orders it against the looks that follow.
        self.words.now.store(now, Ordering::Relaxed);
        // Ordering: Relaxed, adders need not wake who is awake; seeing an old value wakes once too often.
        self.words.wake_below.store(AWAKE, Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence in `read`.
        fence(Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn publish_flushed(&self, tick: Tick) {
        // Ordering: Release, pairs with `flushed`.
        self.words.flushed.store(tick, Ordering::Release);
    }

    /// Reads the clock after all that the caller has done so far.
    #[inline]
    pub(crate) fn read(&self) -> Reading {
        // Ordering: SeqCst, pairs with the fences in `publish_now`, `publish_wake_at` and `close`.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, the fence orders both.
        let now = self.words.now.load(Ordering::Relaxed);
        Reading { now, wake_below: self.words.wake_below.load(Ordering::Relaxed) }
    }

    /// Begins a sleep, and says when it will end; the advancer looks at the bits and the inbox once more after this.
    pub(crate) fn publish_wake_at(&self, answer: Option<Tick>) {
        self.bell.begin_sleep();
        // Ordering: Relaxed, the fence orders it.
        self.words.wake_below.store(below(answer), Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence in `read`.
        fence(Ordering::SeqCst);
    }

    /// Corrects what [`publish_wake_at`](Self::publish_wake_at) said, downwards.
    pub(crate) fn lower_published(&self, answer: Option<Tick>) {
        // Ordering: Relaxed for both: the advancer alone writes it, and an adder that sees the former value rings once
        // too often.
        if below(answer) < self.words.wake_below.load(Ordering::Relaxed) {
            self.words.wake_below.store(below(answer), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Relaxed, the callers' fences order it where it matters.
        self.words.closed.load(Ordering::Relaxed)
    }

    /// Refuses timers from now on; the caller looks at all nodes next.
    pub(crate) fn close(&self) {
        // Ordering: Relaxed, the fence orders it.
        self.words.closed.store(true, Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence of every insert: an adder sees `closed`, or we its node.
        fence(Ordering::SeqCst);
    }
}

/// The last deadline for which an advancer that sleeps until `answer` has to be woken.
fn below(answer: Option<Tick>) -> Tick {
    answer.map_or(Tick::MAX, |tick| tick.saturating_sub(1))
}

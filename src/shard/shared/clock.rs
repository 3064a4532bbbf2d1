//! The words of a shard's clock, with the orderings of their loads and stores. The
//! [`machine`](crate::shard::machine) says what they mean and has the proofs.

use super::Shared;
use crate::sync::{AtomicBool, AtomicU64, Ordering, fence, hint, plain};
use crate::tick::Tick;

/// The value of `wake_up_to` while the advancer is awake. No producer wakes it then, except for a
/// deadline of 0, which does no harm.
const AWAKE: Tick = 0;

/// The clock of a shard: what every producer reads and the advancer writes.
pub(crate) struct ShardClock {
    now: AtomicU64,
    sealed: AtomicU64,
    flushed: AtomicU64,
    wake_up_to: AtomicU64,
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
    pub(crate) sealed: Tick,
    /// The producer of a timer that is due at or before this tick must wake the advancer.
    wake_up_to: Tick,
}

impl Reading {
    /// Whether a timer due at `deadline`, which the advancer may not know of, is due before the
    /// advancer's sleep ends.
    #[inline]
    pub(crate) fn must_wake(self, deadline: Tick) -> bool {
        deadline <= self.wake_up_to
    }
}

impl ShardClock {
    pub(crate) fn new(start: Tick) -> Self {
        Self {
            now: AtomicU64::new(start),
            sealed: AtomicU64::new(start),
            flushed: AtomicU64::new(start),
            wake_up_to: AtomicU64::new(AWAKE),
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
        self.wake_up_to.store(AWAKE, Ordering::Relaxed);
    }

    /// Closes the buckets that expire at or before `tick` to producers. The advancer calls this
    /// before it looks at their bits.
    #[inline]
    pub(crate) fn seal(&self, tick: Tick) {
        // Ordering: Relaxed, the fence orders it against the looks that follow.
        self.sealed.store(tick, Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence in `fence_and_read`.
        fence(Ordering::SeqCst);
    }

    /// Orders a second look at a busy node after the clock.
    #[cold]
    pub(crate) fn pass_fence(&self) {
        // Ordering: SeqCst, pairs with the fence in `fence_and_read`.
        fence(Ordering::SeqCst);
    }

    /// The tick up to which buckets are closed, or an earlier one. Not before `flushed`, which the
    /// caller has loaded.
    #[inline]
    pub(crate) fn sealed_since(&self, flushed: Tick) -> Tick {
        // Ordering: Relaxed, a hint; the Acquire of `flushed` keeps it from being older.
        hint(|| self.sealed.load(Ordering::Relaxed)).unwrap_or(flushed)
    }

    #[inline]
    pub(crate) fn publish_flushed(&self, tick: Tick) {
        // Ordering: Release, pairs with `flushed`.
        self.flushed.store(tick, Ordering::Release);
    }

    /// Passes the producer's fence, and reads the clock: after everything that the caller has done.
    #[inline]
    pub(crate) fn fence_and_read(&self) -> Reading {
        // Ordering: SeqCst, pairs with the fences in `seal`, `pass_fence`, `publish_wake_at` and
        // `close`.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, the fence orders all three.
        let now = self.now.load(Ordering::Relaxed);
        let sealed = self.sealed.load(Ordering::Relaxed);
        Reading { now, sealed, wake_up_to: self.wake_up_to.load(Ordering::Relaxed) }
    }

    /// Lowers the end of the sleep that [`publish_wake_at`](Shared::publish_wake_at) published, if
    /// `answer` is earlier.
    pub(crate) fn lower_published(&self, answer: Option<Tick>) {
        // Ordering: Relaxed for both: only the advancer writes it, and a producer that sees the
        // former value wakes the advancer once too often.
        if last_tick_before(answer) < self.wake_up_to.load(Ordering::Relaxed) {
            self.wake_up_to.store(last_tick_before(answer), Ordering::Relaxed);
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
fn last_tick_before(answer: Option<Tick>) -> Tick {
    answer.map_or(Tick::MAX, |tick| tick.saturating_sub(1))
}

impl<T> Shared<T> {
    /// Begins a sleep and publishes when it ends. The advancer looks at the bits and the inbox
    /// after this.
    pub(crate) fn publish_wake_at(&self, answer: Option<Tick>) {
        self.waker.begin_sleep();
        // Ordering: Relaxed, the fence orders it.
        self.clock.wake_up_to.store(last_tick_before(answer), Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence in `fence_and_read`.
        fence(Ordering::SeqCst);
    }
}

//! The consumer's half: moves the clock, flushes buckets, cascades, fires, frees.
//!
//! The [`machine`](crate::shard::machine) has its way from tick to tick; here are its state and its
//! public face. At a tick at which nothing is due, an advance compares a few words and stores the
//! clock. Timers fire as the caller takes them from [`Expired`].
//!
//! | file | part |
//! |---|---|
//! | `overdue` | timers in hand that come too late for a bucket |
//! | `earliest` | until when the advancer may sleep |
//! | [`early_cascade`] | emptying overflow buckets before they expire |
//! | [`sweep`] | freeing dead nodes before their bucket is due |
//! | [`upkeep`] | when the background work is next due, and what is left of it for an idle owner; what idle threads keep |
//! | [`recurring`] | timers that recur |
//! | [`end`] | the walk that ends the shard |
//!
//! # Nodes of the advancer's own
//!
//! They are linked in the private wheels (from a cascade, a sweep or the inbox), or in hand: in
//! [`Hands`], or with the [`sweep`], which has detached them and not yet linked them again. No other
//! thread can reach them through a list. A producer finds such a node by its key only, and cancels
//! it or puts it off by its word, as any other node.
//!
//! # Invariants
//!
//! - `flushed <= now <= sealed`.
//! - Every linked node is in one of these places, in the inbox, or in a shared bucket that expires
//!   after `flushed`, in a list whose occupancy bit is set.
//! - A bucket expires no later than any tick that its nodes are linked for (see
//!   [`state`](crate::shard::node::state)).
//!
//! # Who writes what
//!
//! Only the advancer writes its fields, the clock and the links of nodes in hand; `&mut Advancer`
//! is the proof that it is the only one.

mod earliest;
pub(crate) mod early_cascade;
pub(crate) mod end;
#[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
#[path = "tests/invariants.rs"]
mod invariants;
mod overdue;
pub(crate) mod recurring;
pub(crate) mod sweep;
mod upkeep;

use std::fmt;
use std::iter::FusedIterator;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::Waker;

use crate::shard::advancer::overdue::Overdue;
use crate::shard::advancer::sweep::Sweep;
use crate::shard::advancer::upkeep::Upkeep;
use crate::shard::key::Key;
use crate::shard::memory::recycle::Recycler;
use crate::shard::node::NodeId;
use crate::shard::scheduler::Scheduler;
use crate::shard::shared::advancer_waker::WakerOwner;
use crate::shard::shared::chains::Chains;
use crate::shard::shared::consumer::Consumer;
use crate::shard::wheel::private::PrivateWheels;
use crate::tick::Tick;

/// Moves one shard's clock and yields the timers that are due. Each shard has exactly one; made by
/// [`shard`](crate::shard()).
///
/// Dropping it shuts the shard down: pending timers are dropped, and scheduling is an error from
/// then on. [`into_pending`](Self::into_pending) returns them instead.
///
/// # Examples
///
/// An event loop advances the clock when it wakes, and sleeps until the next expiration:
///
/// ```
/// use shardwheel::{Config, shard};
///
/// let (scheduler, mut advancer) = shard(&Config::default());
/// scheduler.schedule(3, 'a')?;
/// scheduler.schedule(8, 'b')?;
///
/// let mut fired = Vec::new();
/// while let Some(tick) = advancer.next_expiration() {
///     // ... wait until `tick`, or until the registered waker is woken ...
///     fired.extend(advancer.advance(tick).map(|fired| (fired.deadline, fired.payload)));
/// }
/// assert_eq!(fired, [(3, 'a'), (8, 'b')]);
/// # Ok::<(), shardwheel::ScheduleError<char>>(())
/// ```
pub struct Advancer<T> {
    /// Derefs to `Shared`; `node`, `keep` and `next_expiration` are the consumer's own.
    pub(super) shared: Consumer<T>,
    pub(super) now: Tick,
    pub(super) flushed: Tick,
    pub(super) private: PrivateWheels,
    /// Producers push to no bucket that expires at or before this tick.
    pub(super) sealed: Tick,
    /// The expiration of the first shared bucket that may hold something, if it is after `flushed`
    /// and no later than `sealed`.
    pub(super) next_in_shared: Option<Tick>,
    pub(super) hands: Hands,
    pub(super) recycler: Recycler<T>,
    pub(super) sweep: Sweep,
    pub(super) upkeep: Upkeep,
    waker_owner: WakerOwner,
    is_closed_down: bool,
}

/// Nodes in hand, apart from the private wheels and what the sweep has detached.
#[derive(Default)]
pub(super) struct Hands {
    /// The detached lists of the bucket of tick `flushed + 1`, which are being yielded.
    pub(super) due: Chains,
    /// The detached lists of an overflow bucket, within a cascade.
    pub(super) moving: Chains,
    /// Timers due at or before `flushed`.
    pub(super) overdue: Overdue,
    /// For the next advance: busy nodes, and timers rearmed for the past.
    pub(super) deferred: Vec<NodeId>,
}

impl Hands {
    /// Whether timers that are due are in hand.
    #[inline]
    pub(super) fn hold_due(&self) -> bool {
        !(self.due.is_empty() && self.overdue.is_empty())
    }
}

// As for the standard library's channels: a panic of the caller's leaves no half of a change
// behind.
impl<T> UnwindSafe for Advancer<T> {}
impl<T> RefUnwindSafe for Advancer<T> {}

impl<T> Advancer<T> {
    pub(super) fn new(shared: Consumer<T>) -> Self {
        let start = shared.clock.flushed();
        Self {
            now: start,
            flushed: start,
            private: PrivateWheels::new(shared.geometry.levels()),
            sealed: start,
            next_in_shared: None,
            hands: Hands::default(),
            recycler: Recycler::new(&shared.slab),
            sweep: Sweep::default(),
            upkeep: Upkeep::new(start),
            waker_owner: WakerOwner::new(&shared.waker),
            is_closed_down: false,
            shared,
        }
    }

    /// Moves the clock to `now` and yields the timers that are due, in the order of their
    /// deadlines. A `now` before the clock leaves the clock where it is.
    ///
    /// The iterator is lazy: a timer that is not taken from it stays due and comes first at the
    /// next advance.
    ///
    /// # Performance
    ///
    /// O(occupied buckets passed + timers due), however far the clock jumps; a timer is moved at
    /// most once for each overflow wheel between its bucket and level 0. Never blocks.
    ///
    /// In addition, an advance does a bounded share of the background work:
    ///
    /// - It takes timers out of the next bucket of each overflow wheel. For each tick that the
    ///   clock has moved by, these are 64, and 1.25 times what is pending, divided by the ticks of
    ///   the bucket. If the clock has left ticks out, they are more.
    /// - It makes freed nodes reusable: 512 words of up to 64 nodes, and more in proportion to the
    ///   nodes freed since the last advance.
    /// - It gives at most one segment back to the system. A shard's first segment
    ///   goes in parts of 256 KiB, where the system can do that.
    /// - It frees the nodes of cancelled timers, if a sweep is asked for, in steps proportional to
    ///   the number of cancels.
    pub fn advance(&mut self, now: Tick) -> Expired<'_, T> {
        self.move_to(now);
        Expired { advancer: self }
    }

    /// Returns the tick at which to call [`advance`](Self::advance) next, if nothing is scheduled
    /// before: never later than the first deadline. `None` if nothing is pending. The tick is
    /// earlier than the first deadline if far timers must first move to a finer wheel, if the
    /// timers that were due then have been cancelled or put off, or if many have just come.
    ///
    /// Scheduling a timer for an earlier tick than the answer wakes the waker given to
    /// [`register_waker`](Self::register_waker).
    ///
    /// # Performance
    ///
    /// At worst O(levels x wheel size / 4), in sequential memory. Never blocks.
    #[must_use]
    pub fn next_expiration(&self) -> Option<Tick> {
        let (next, owes_sweep) = self.begin_sleep();
        if owes_sweep {
            self.waker_owner.wake(&self.shared.waker);
        }
        next
    }

    /// Sets the waker to wake when a timer is scheduled for a tick before the last answer of
    /// [`next_expiration`](Self::next_expiration), when the nodes of cancelled timers need an
    /// advance that frees them or keep memory that [`maintain`](Self::maintain) can give back, or
    /// when thousands of timers have come since that answer that must begin to move to a finer
    /// wheel before it. It replaces the former waker.
    ///
    /// To sleep: register, call `next_expiration`, then sleep until the answer or the wake. The
    /// waker stays registered; registering the same waker again is cheap. Each registration and
    /// each answer of `next_expiration` allows one wake, and one more for each producer that came
    /// before the first wake had returned. After waking, advance before any call that may schedule:
    /// until then the shard takes the advancer to be asleep, and would wake it for nothing.
    ///
    /// The thread that schedules or cancels calls the waker at the end of its call, so the waker
    /// should be quick. A panic in it does not reach that call, and the next producer wakes again.
    ///
    /// # Panics
    ///
    /// If the waker panics when it is cloned; the former one then stays registered.
    ///
    /// # Performance
    ///
    /// Allocates if the waker is not the one registered. Never blocks.
    pub fn register_waker(&mut self, waker: &Waker) {
        let (shared, reclaimer) = self.shared.parts();
        self.waker_owner.register(&shared.waker, waker, reclaimer);
    }

    /// Returns a further handle of the producers' half.
    #[must_use]
    pub fn scheduler(&self) -> Scheduler<T> {
        Scheduler { shared: self.shared.share() }
    }
}

/// A timer that has fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired<T> {
    /// The timer's former key. It finds nothing any more.
    pub key: Key,
    /// The tick for which the timer was scheduled or last rescheduled.
    pub deadline: Tick,
    /// The payload that was scheduled.
    pub payload: T,
}

/// Yields the timers that are due; made by [`Advancer::advance`]. (What a delay queue yields is
/// another type, `delay_queue::Expired`.)
///
/// Deadlines never decrease. A timer fires when it is yielded: until then it is pending, counts in
/// `len`, and can be cancelled or rescheduled. A timer that is not taken stays due and comes first
/// at the next advance. So a budget is `take(n)`, and a caller's loop that panics loses only the
/// timer that it has taken.
///
/// A timer that is scheduled during the drain, for a tick that the clock has reached, comes in this
/// advance or the next.
#[must_use = "timers fire as they are taken from the iterator"]
pub struct Expired<'a, T> {
    advancer: &'a mut Advancer<T>,
}

impl<T> Iterator for Expired<'_, T> {
    type Item = Fired<T>;

    #[inline]
    fn next(&mut self) -> Option<Fired<T>> {
        self.advancer.next_fired()
    }
}

impl<T> FusedIterator for Expired<'_, T> {}

impl<T> Drop for Expired<'_, T> {
    fn drop(&mut self) {
        self.advancer.end_drain();
    }
}

impl<T> fmt::Debug for Expired<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expired").field("advancer", &self.advancer).finish()
    }
}

impl<T> fmt::Debug for Advancer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Advancer")
            .field("now", &self.now)
            .field("flushed", &self.flushed)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;

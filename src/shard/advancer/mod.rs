//! The consumer's half: moves the clock, flushes buckets, cascades, fires, frees.
//!
//! # Algorithm
//!
//! An advance stores the clock, seals a window of ticks if the clock has left the last one, takes
//! in newcomers, does a step of each background task (sweep, recycling, early cascade), and then
//! moves `flushed` from one occupied bucket to the next up to the clock. Timers fire as the caller
//! takes them from [`Expired`]. At a tick at which nothing of this is due, an advance compares a
//! few words and stores the clock.
//!
//! | file | part |
//! |---|---|
//! | [`step`] | moving the clock: flush and cascade |
//! | [`fire`] | yielding timers that are due |
//! | [`relink`] | finding the place of a node in hand |
//! | [`chains`] | walking detached lists |
//! | [`early_cascade`] | emptying overflow buckets before they expire |
//! | [`recurring`] | timers that recur |
//! | [`sweep`] | freeing dead nodes before their bucket is due |
//! | [`next_expiration`] | the earliest tick at which anything may be due |
//! | [`upkeep`] | when the background work is next due, and what is left of it for an idle owner; what idle threads keep |
//! | [`handover`] | the walk that ends the shard |
//!
//! # Nodes in hand
//!
//! No other thread can reach what the advancer has in hand through a list. A producer finds a node
//! there by its key only, and cancels it or puts it off by its word, as any other node.
//!
//! These are in the private wheels (nodes from a cascade, a sweep or the inbox), in [`Hands`], or
//! with the [`sweep`], which has detached them and not yet linked them again.
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

pub(crate) mod chains;
pub(crate) mod early_cascade;
pub(crate) mod fire;
pub(crate) mod handover;
#[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
#[path = "tests/invariants.rs"]
mod invariants;
pub(crate) mod next_expiration;
pub(crate) mod recurring;
pub(crate) mod relink;
pub(crate) mod step;
pub(crate) mod sweep;
mod upkeep;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::Waker;

use crate::shard::advancer::chains::Chains;
use crate::shard::advancer::fire::Expired;
use crate::shard::advancer::next_expiration::earlier;
use crate::shard::advancer::relink::Overdue;
use crate::shard::advancer::sweep::Sweep;
use crate::shard::advancer::upkeep::Upkeep;
use crate::shard::memory::recycle::Recycler;
use crate::shard::memory::slab::InHand;
use crate::shard::node::NodeId;
use crate::shard::scheduler::Scheduler;
use crate::shard::shared::FEW_PENDING;
use crate::shard::shared::advancer_waker::WakerOwner;
use crate::shard::shared::consumer::Consumer;
use crate::shard::wheel::private::PrivateWheels;
use crate::sync::Ordering;
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
    shared: Consumer<T>,
    now: Tick,
    flushed: Tick,
    private: PrivateWheels,
    /// Producers push to no bucket that expires at or before this tick (see
    /// [`protocol`](crate::shard::shared::protocol)).
    sealed: Tick,
    /// The expiration of the first shared bucket that may hold something, if it is after `flushed`
    /// and no later than `sealed`.
    next_in_shared: Option<Tick>,
    hands: Hands,
    recycler: Recycler<T>,
    sweep: Sweep,
    upkeep: Upkeep,
    waker_owner: WakerOwner,
    is_closed_down: bool,
}

/// Nodes in hand, apart from the private wheels and what the sweep has detached.
#[derive(Default)]
struct Hands {
    /// The detached lists of the bucket of tick `flushed + 1`, which are being yielded.
    due: Chains,
    /// Timers due at or before `flushed`, latest first.
    overdue: Vec<Overdue>,
    /// For the next advance: busy nodes, and timers rearmed for the past.
    deferred: Vec<NodeId>,
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

    /// Moves the clock to `now`, and takes in hand the first bucket that is due.
    #[inline]
    pub(crate) fn move_to(&mut self, now: Tick) {
        let moved = now.saturating_sub(self.now);
        self.now += moved;
        self.upkeep.due_in = self.upkeep.due_in.saturating_sub(u32::from(moved > 0));
        self.shared.clock.publish_now(self.now);
        if self.now > self.sealed {
            self.seal();
        }
        if moved > 0 && self.is_idle() {
            self.set_flushed(self.now);
        } else {
            self.work(moved);
        }
    }

    #[inline(never)]
    fn work(&mut self, moved: Tick) {
        if self.has_newcomers() {
            self.take_in_newcomers();
        }
        if moved == 0 || self.is_upkeep_due() {
            self.keep_up(moved);
        }
        self.ensure_due();
    }

    /// Returns the tick at which to call [`advance`](Self::advance) next, if nothing is scheduled
    /// before: never later than the first deadline. `None` if nothing is pending. The tick is
    /// earlier than the first deadline if far timers must first move to a finer wheel, or if the
    /// timers that were due then have been cancelled or put off.
    ///
    /// Scheduling a timer for an earlier tick than the answer wakes the waker given to
    /// [`register_waker`](Self::register_waker).
    ///
    /// # Performance
    ///
    /// At worst O(levels x wheel size / 4), in sequential memory. Never blocks.
    #[must_use]
    pub fn next_expiration(&self) -> Option<Tick> {
        let (next, owes_sweep) = self.look_ahead();
        if owes_sweep {
            self.waker_owner.wake(&self.shared.waker);
        }
        next
    }

    /// As [`next_expiration`](Self::next_expiration), without a wake: also says whether a sweep is
    /// due.
    pub(crate) fn look_ahead(&self) -> (Option<Tick>, bool) {
        // What producers have added comes second, after the fence: until then, a producer may wake
        // the advancer for nothing.
        let in_hand = self.earliest_in_hand();
        let pending = if in_hand.is_some() { self.shared.len() } else { 0 };
        let first = in_hand.filter(|_| pending > 0);
        self.shared.publish_wake_at(first);
        let earliest = self.earliest(in_hand, pending);
        self.shared.clock.lower_published(earliest);
        self.note_excess();
        // A producer that asked for a sweep while the advancer was awake may not have woken it. And
        // no further cancel may come to ask for the next step of a pass that is under way.
        let owes_sweep =
            self.shared.is_sweep_requested() || self.sweep.is_under_way() && self.shared.is_sweep_due();
        // The earlier of the two: the timer of `first` may have been cancelled in between, and
        // producers wake the advancer only for deadlines earlier than `first`.
        (earlier(first, earliest), owes_sweep)
    }

    /// Lets the next cancel wake the advancer, if it has memory that the few pending timers do not
    /// need. With many timers the sweep that follows would take too long.
    #[inline]
    fn note_excess(&self) {
        let slab = &self.shared.slab;
        let has_excess = slab.size() > 1 && {
            let pending = self.shared.len();
            pending <= FEW_PENDING && self.recycler.excess(slab, pending) > 0
        };
        // Ordering: Relaxed for both, a hint.
        if has_excess != self.shared.clock.wakes_for_cancel.load(Ordering::Relaxed) {
            self.shared.clock.wakes_for_cancel.store(has_excess, Ordering::Relaxed);
        }
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

    /// Shuts the shard down and returns the pending timers as (deadline, payload), in no particular
    /// order. Timers that are not taken from the iterator are dropped with it.
    ///
    /// A timer can be cancelled until the iterator reaches it.
    ///
    /// # Performance
    ///
    /// O(nodes in use). If another thread has stopped within a call, in the node of a timer, the
    /// iterator waits for it, for about a tenth of a second at most.
    pub fn into_pending(self) -> impl Iterator<Item = (Tick, T)> {
        self.pending_at_the_end()
    }

    /// A node that the advancer has in hand.
    pub(crate) fn node(&self, id: NodeId) -> InHand<'_, T> {
        self.shared.node(id)
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

//! The consumer's half: moves the clock, flushes buckets, cascades, frees.
//!
//! What the advancer holds in its own hands nobody else can reach; a node there is found through its key
//! alone, and cancelled or put off by its word like any other.
//!
//! | in hand | what |
//! |---|---|
//! | `private` | the advancer's half of each bucket: what a cascade, a sweep or the inbox brought |
//! | `due` | the lists of the bucket of tick `flushed + 1`, detached, being yielded |
//! | `moving` | within a cascade, what is left of the overflow bucket |
//! | `overdue` | timers due at or before `flushed`, that came by way of the inbox; latest first |
//! | `deferred` | nodes that a producer was at work in or holds, and timers armed anew for the past; for the next advance |
//! | `sweep` | what a sweep has detached and not yet put back |
//!
//! Invariant: `flushed <= now`. Every linked node is in one of these, in the inbox, or in a bucket whose
//! expiration is after `flushed`, in the list that its bit says is occupied. A bucket expires no later than
//! any tick that its nodes are linked for (see [`state`](crate::shard::node::state)).
//!
//! What is here: the public surface, and firing. Moving the clock is in [`flush`](crate::shard::advancer::step), finding a
//! node's place in [`placing`](crate::shard::advancer::relink), emptying overflow buckets ahead of time in [`early_cascade`](crate::shard::advancer::early_cascade),
//! timers that recur in [`recurring`], the dead in [`sweep`], idle overflow wheels
//! in [`overflow`](crate::shard::advancer::idle_wheels).

pub(in crate::shard) mod chains;
pub(in crate::shard) mod early_cascade;
pub(crate) mod fire;
pub(crate) mod handover;
pub(crate) mod idle_wheels;
pub(in crate::shard) mod invariants;
pub(in crate::shard) mod lane_totals;
pub(in crate::shard) mod next_expiration;
pub(crate) mod recurring;
pub(in crate::shard) mod relink;
pub(in crate::shard) mod step;
pub(in crate::shard) mod sweep;

use std::fmt;
use std::task::Waker;

use crate::shard::advancer::chains::Chains;
use crate::shard::advancer::early_cascade::EarlyCascade;
use crate::shard::advancer::fire::Expired;
use crate::shard::advancer::handover::PendingWalk;
use crate::shard::advancer::idle_wheels::IdleWatch;
use crate::shard::advancer::lane_totals::LaneTotals;
use crate::shard::advancer::relink::Overdue;
use crate::shard::advancer::sweep::Sweep;
use crate::shard::memory::epochs::Participant;
use crate::shard::memory::recycle::Recycler;
use crate::shard::node::{Node, NodeId};
use crate::shard::scheduler::Scheduler;
use crate::shard::shared::advancer_waker::WakerOwner;
use crate::shard::shared::consumer::Consumer;
use crate::shard::wheel::Wheel;
use crate::shard::wheel::private::PrivateWheels;
use crate::tick::Tick;

/// How often [`Advancer::maintain`] helps the epochs on, for what threads have left that have ended.
const HELPS: usize = 64;

/// Moves one shard's clock and yields what is due. There is exactly one for each shard; made by
/// [`shard`](crate::shard()).
///
/// Dropping it shuts the shard down: timers that are pending are dropped, and scheduling is an error from
/// then on. [`into_pending`](Self::into_pending) hands them back instead.
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
    /// The first bucket of the shared wheels that expires after `flushed` and by `now`.
    next_in_shared: Option<Tick>,
    idle: IdleWatch,
    due: Chains,
    /// Empty but for within a cascade: what it detached and has yet to place.
    moving: Chains,
    overdue: Vec<Overdue>,
    deferred: Vec<NodeId>,
    /// Empty; its memory is what counts.
    deferred_before: Vec<NodeId>,
    recycler: Recycler<T>,
    participant: Participant,
    sweep: Sweep,
    early_cascade: EarlyCascade,
    /// Timers fired since the last drain's end.
    drained: usize,
    /// Whether timers have ended, or dead nodes been freed, since then.
    has_ended_some: bool,
    handed_over: bool,
    waker_owner: WakerOwner,
    lane_totals: LaneTotals,
}

impl<T> Advancer<T> {
    pub(super) fn new(shared: Consumer<T>) -> Option<Self> {
        let start = shared.clock.flushed();
        let levels = shared.geometry.levels();
        let participant = shared.lanes.participant()?;
        Some(Self {
            shared,
            now: start,
            flushed: start,
            private: PrivateWheels::new(levels),
            next_in_shared: None,
            idle: IdleWatch::new(levels, start),
            due: Chains::new(),
            moving: Chains::new(),
            overdue: Vec::new(),
            deferred: Vec::new(),
            deferred_before: Vec::new(),
            recycler: Recycler::new(),
            participant,
            sweep: Sweep::new(),
            early_cascade: EarlyCascade::new(start),
            drained: 0,
            has_ended_some: false,
            handed_over: false,
            waker_owner: WakerOwner::default(),
            lane_totals: LaneTotals::default(),
        })
    }

    /// Moves the clock to `now` and yields what is due, in the order of deadlines. A `now` before the
    /// clock leaves the clock where it is.
    ///
    /// The iterator is lazy: what is not taken from it stays due and comes first at the next advance.
    ///
    /// # Performance
    ///
    /// O(buckets passed that hold something + timers due), however far the clock jumps; a timer is moved
    /// at most once for each overflow wheel between its bucket and level 0. Never blocks. Beside that an
    /// advance takes up to 512 timers out of overflow buckets ahead of time, gives freed nodes back (1,024
    /// words of up to 64, and one more for each node freed since the last advance) and a piece of memory, and
    /// sees to cancelled timers' nodes that are owed a sweep, in steps proportional to the cancels made.
    pub fn advance(&mut self, now: Tick) -> Expired<'_, T> {
        self.move_to(now);
        Expired::new(self)
    }

    /// Moves the clock to `now` and takes what is due in hand, up to the first that is to be yielded.
    pub(crate) fn move_to(&mut self, now: Tick) {
        let moves = now > self.now;
        self.now = self.now.max(now);
        let closed = self.close_idle_wheels();
        self.shared.clock.publish_now(self.now);
        self.look_at_shared_wheels(self.flushed);
        self.admit_newcomers(closed);
        self.refresh_lane_totals();
        self.help_epochs();
        self.sweep_in_steps();
        self.poll_recycler();
        if moves {
            self.cascade_early();
            let (scheduled, pending) = (self.scheduled(), self.pending());
            if self.recycler.note_move(&self.shared.slab, scheduled, pending) {
                self.reclaim_leftovers(pending);
            }
        }
        self.ensure_due();
    }

    /// Whether memory that is not needed waits to be given back to the system. An event loop that has nothing to do for a
    /// while calls [`maintain`](Self::maintain) then, every 50 ms perhaps, until there is no more; the answer of
    /// [`next_expiration`](Self::next_expiration) does not take this into account. While the clock is moved often enough,
    /// [`advance`](Self::advance) sees to it by itself.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let (_scheduler, mut advancer) = shardwheel::shard::<u32>(&shardwheel::Config::default());
    /// let until_next = advancer.next_expiration();
    /// if until_next.is_none() && advancer.needs_maintenance() {
    ///     // ... sleep for 50 ms, or until the registered waker is woken; then ...
    ///     advancer.maintain();
    /// }
    /// ```
    ///
    /// # Performance
    ///
    /// O(threads + segments), and quicker where nothing has been freed.
    #[must_use]
    pub fn needs_maintenance(&self) -> bool {
        let pending = self.pending();
        self.is_sweeping()
            || self.lane_totals.owes_help()
            || self.recycler.owes_memory(&self.shared.slab, pending)
            || self.are_leftovers_due(pending)
    }

    /// Gives a share of the memory that is not needed back to the system, a sixteenth of it or 2 MiB; and where cancelled
    /// timers' nodes keep memory, has the next advances free them.
    ///
    /// # Performance
    ///
    /// Never blocks. A segment of 2 MiB takes some 50 microseconds.
    pub fn maintain(&mut self) {
        self.refresh_lane_totals();
        let pending = self.pending();
        self.reclaim_leftovers(pending);
        self.sweep_in_steps();
        (0..HELPS).for_each(|_| self.help_epochs());
        self.recycler.shed(&self.shared.slab, pending, &self.participant);
    }

    /// The tick at which to call [`advance`](Self::advance) next, if nothing is scheduled before: never
    /// later than the first deadline. `None` if nothing is pending. It is earlier where far timers have
    /// to be moved to a finer wheel first, or timers that were due then have been cancelled or put off.
    ///
    /// A timer that is scheduled for an earlier tick than the answer wakes the waker given to
    /// [`register_waker`](Self::register_waker).
    ///
    /// # Performance
    ///
    /// O(levels x wheel size / 4) at worst, in sequential memory. Never blocks.
    #[must_use]
    pub fn next_expiration(&self) -> Option<Tick> {
        let first = self.earliest();
        self.shared.clock.publish_wake_at(first);
        let checked = self.earliest();
        self.shared.clock.lower_published(checked);
        self.shared.bring_check_near();
        // Asked for while the advancer was awake; or under way, and nobody may cancel any more, and ask for the next step.
        if self.shared.is_sweep_requested() || self.sweep.is_under_way() && self.shared.is_sweep_due() {
            self.waker_owner.wake(&self.shared.clock.waker);
        }
        // Not `checked` alone: where the timer of `first` was cancelled in between, adders still wake us for
        // what is earlier than `first` only.
        [first, checked].into_iter().flatten().min()
    }

    /// Sets the waker that is woken when a timer is scheduled for before the last answer of
    /// [`next_expiration`](Self::next_expiration), or when so many timers have been cancelled that an
    /// advance is wanted to give their nodes back. It replaces the former one.
    ///
    /// To sleep: register, ask `next_expiration`, then sleep until the answer or the wake. The waker stays registered;
    /// to register the same one again costs nothing. It is woken once for each answer of `next_expiration`, and once more
    /// for each producer that came before the first wake had returned. On waking, advance before anything else that may
    /// schedule: until then the shard takes its thread to be asleep, and would wake it for nothing.
    ///
    /// The waker is called by the thread that schedules or cancels, at the end of its call: it should be quick. A panic in
    /// it does not reach that call, and the next producer wakes it again.
    ///
    /// # Panics
    ///
    /// If the waker panics when it is cloned; the former then stays registered.
    ///
    /// # Performance
    ///
    /// Allocates where the waker is another than the last; where there is no memory, the waker is woken at once. Never
    /// blocks.
    pub fn register_waker(&mut self, waker: &Waker) {
        self.waker_owner.register(&self.shared.clock.waker, waker, &self.participant);
    }

    /// A further handle of the producers' half.
    #[must_use]
    pub fn scheduler(&self) -> Scheduler<T> {
        Scheduler { shared: self.shared.share() }
    }

    /// Shuts the shard down and hands back what is pending, as (deadline, payload), in no order that
    /// means anything. What is not taken from the iterator is dropped with it.
    ///
    /// A timer can be cancelled until the iterator has come to it.
    ///
    /// # Performance
    ///
    /// O(nodes in use). Never blocks.
    pub fn into_pending(mut self) -> impl Iterator<Item = (Tick, T)> {
        self.handed_over = true;
        self.shared.clock.close();
        PendingWalk::new(self.shared.pass_on())
    }

    // ---- what it looks at --------------------------------------------------------------------------

    /// The shared wheel of a level, if it exists.
    #[inline]
    pub(super) fn wheel(&self, level: usize) -> Option<&Wheel> {
        self.shared.wheel(level)
    }

    /// A node that the advancer holds in its hands, and its segment's era.
    pub(super) fn node(&self, id: NodeId) -> (&Node<T>, u32) {
        self.shared.node(id)
    }
}

impl<T> Drop for Advancer<T> {
    fn drop(&mut self) {
        self.waker_owner.end(&self.shared.clock.waker, &self.participant);
        self.shared.keep(self.recycler.end());
        if !self.handed_over {
            self.shared.clock.close();
            drop(PendingWalk::new(self.shared.pass_on()));
        }
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

//! What the two halves of a shard share.
//!
//! [`clock`] has the words that the [`machine`](crate::shard::machine) is about. [`consumer`] is
//! the handle that only the advancer has. [`lanes`] has what each producer has to itself.
//! [`advancer_waker`] wakes the advancer. [`stats`] has the counters, `counts` their sums over all
//! lanes and when a sweep is asked for, [`bound`] the limit.
//!
//! Here are the wheels that producers add to: one for each level, the overflow wheels made when
//! needed, by compare-and-swap. They stay until the shard ends.
//!
//! A field of [`Shared`] says who writes it; where its type has a module, that module says so.
//!
//! # Crowds
//!
//! The advancer empties a full overflow bucket little by little, during the bucket's *lead* (see
//! [`early_cascade`](crate::shard::advancer::early_cascade)). Where few timers are pending it does
//! not wake for that: it sleeps until the bucket expires, and cascades it at once. If a crowd of
//! timers comes during that sleep, none of them wakes the advancer, because each is due later than
//! the sleep ends. So one producer in `FEW_PENDING` schedules looks whether many timers are
//! pending by now and the sleep ends after the lead has begun, and then wakes the advancer, which
//! counts anew.
//!
//! Each lane counts its own schedules. So of a crowd that `n` threads bring, up to `n` times as
//! many timers may go unnoticed, and the bucket that holds them is cascaded at once. No timer
//! depends on this wake; it is a matter of how long an advance takes.

pub(crate) mod advancer_waker;
pub(crate) mod bound;
pub(crate) mod chains;
pub(crate) mod clock;
pub(crate) mod consumer;
pub(crate) mod counts;
mod inbox;
pub(crate) mod lanes;
pub(crate) mod stats;

use crossbeam_utils::CachePadded;

use self::advancer_waker::AdvancerWaker;
use self::bound::Bound;
use self::clock::ShardClock;
use self::counts::DeadReports;
use self::inbox::Inbox;
use self::lanes::Lanes;
use self::stats::AdvancerTally;
use crate::config::Config;
use crate::fallible;
use crate::shard::key::ShardId;
use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::slab::Slab;
use crate::shard::memory::table::{Keep, Table};
use crate::shard::wheel::Wheel;
use crate::shard::wheel::geometry::Geometry;
use crate::shard::wheel::geometry::LEVELS;
use crate::size::size;
use crate::sync::Trace;
use crate::tick::Tick;

/// With at most this many pending timers, no cascade takes long, and the advancer does not wake
/// for the early cascade.
pub(crate) const FEW_PENDING: usize = size(1 << 14, 8, 1 << 14);

pub(crate) struct Shared<T> {
    pub(crate) id: ShardId,
    pub(crate) geometry: Geometry,
    pub(crate) slab: Slab<T>,
    pub(crate) lanes: Lanes,
    pub(crate) clock: CachePadded<ShardClock>,
    pub(crate) waker: AdvancerWaker,
    /// Written by the advancer.
    pub(crate) tally: CachePadded<AdvancerTally>,
    /// For models: stands for the counters on which a decision depends.
    pub(crate) counting: Trace,
    pub(crate) inbox: Inbox,
    /// Written by cancellers and the advancer, now and then.
    pub(crate) dead: CachePadded<DeadReports>,
    pub(crate) bound: Bound,
    /// By the level. Made by producers.
    wheels: Table<Wheel, { LEVELS }>,
}

impl<T> Shared<T> {
    /// An empty shard, and the right to take memory away from it.
    pub(crate) fn new(config: &Config, bound: &Bound, id: ShardId) -> Option<(Self, Reclaimer)> {
        let start = config.start();
        let (lanes, reclaimer) = Lanes::new();
        let shared = Self {
            id,
            geometry: Geometry::new(config.wheel_size()),
            slab: Slab::new()?,
            lanes,
            clock: CachePadded::new(ShardClock::new(start)),
            waker: AdvancerWaker::new()?,
            tally: CachePadded::default(),
            counting: Trace::begin(),
            inbox: Inbox::new(),
            dead: CachePadded::new(DeadReports::new()),
            bound: bound.clone(),
            wheels: Table::new()?,
        };
        shared.wheel_or_new(0, start)?;
        Some((shared, reclaimer))
    }

    /// No level from this one on has ever had a wheel. A producer that has found a wheel is ordered
    /// after the rise of this number, so the advancer sees it where it sees that producer's bit.
    #[inline]
    pub(crate) fn height(&self) -> usize {
        self.wheels.height()
    }

    /// The shared wheel of a level, if it exists.
    #[inline]
    pub(crate) fn wheel(&self, level: usize) -> Option<&Wheel> {
        // SAFETY: no wheel is taken out of the table.
        self.wheels.get(level, unsafe { Keep::owned() })
    }

    /// The wheel of a level, made if it is missing. `None` if there is no memory for it.
    ///
    /// The new wheel's lists belong to the round of `tick`, which may be old by now: an empty list
    /// of an older round accepts pushes for any later one.
    #[inline]
    pub(crate) fn wheel_or_new(&self, level: usize, tick: Tick) -> Option<&Wheel> {
        self.wheel(level).or_else(|| self.make_wheel(level, tick))
    }

    #[cold]
    fn make_wheel(&self, level: usize, tick: Tick) -> Option<&Wheel> {
        let round = self.geometry.round(self.geometry.slot(level, tick));
        let wheel = fallible::boxed(Wheel::new(self.geometry.wheel_size(), round)?)?;
        // Against another producer: the loser drops its own wheel and uses the winner's.
        drop(self.wheels.fill(level, wheel));
        self.wheel(level)
    }

    /// How many wheels exist.
    fn count_wheels(&self) -> usize {
        (0..self.height()).filter(|&level| self.wheel(level).is_some()).count()
    }

    /// Passes the fence, and reads `wake_up_to`, for a timer that is already in its list, the inbox
    /// included. Returns true if the caller must wake the advancer.
    #[inline]
    #[must_use]
    pub(crate) fn must_wake(&self, deadline: Tick) -> bool {
        self.clock.fence_and_read().must_wake(deadline)
    }

    /// Whether the producer of a timer that is due at `deadline` must wake the advancer because a
    /// crowd has come; `scheduled` timers have been scheduled on its lane. O(lanes) once in
    /// `FEW_PENDING` calls, otherwise O(1).
    #[inline]
    pub(crate) fn must_wake_for_crowd(&self, scheduled: u64, deadline: Tick) -> bool {
        scheduled.is_multiple_of(FEW_PENDING as u64) && self.is_crowd_slept_through(deadline)
    }

    #[cold]
    fn is_crowd_slept_through(&self, deadline: Tick) -> bool {
        let from = self.clock.flushed();
        let slot = self.geometry.place(from, deadline.max(from));
        let lead = self.geometry.expiration(slot).saturating_sub(self.geometry.span(slot.level));
        slot.level > 0 && self.len() > FEW_PENDING && self.must_wake(lead)
    }
}

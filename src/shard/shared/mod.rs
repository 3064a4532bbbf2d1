//! What the two halves of a shard share.
//!
//! [`protocol`] puts a timer into a bucket and proves that none is lost. [`consumer`] is the handle
//! that only the advancer has. `table` has the wheels that producers add to, [`lanes`] what
//! each producer has to itself. [`advancer_waker`] wakes the advancer, and [`crowd`] says when many
//! new timers are a reason to. [`stats`], `counts` and [`bound`] count.
//!
//! A field of [`Shared`] says who writes it; where its type has a module, that module says so.

pub(crate) mod advancer_waker;
pub(crate) mod bound;
pub(crate) mod consumer;
mod counts;
pub(crate) mod crowd;
pub(crate) mod lanes;
pub(crate) mod protocol;
pub(crate) mod stats;
mod table;

use crossbeam_utils::CachePadded;

use self::advancer_waker::AdvancerWaker;
use self::bound::Bound;
use self::counts::DeadReports;
use self::lanes::Lanes;
use self::protocol::ShardClock;
use self::stats::AdvancerTally;
use crate::config::{Config, LIMITS};
use crate::shard::key::ShardId;
use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::slab::Slab;
use crate::shard::memory::slot::Slots;
use crate::shard::node::NIL;
use crate::shard::wheel::Wheel;
use crate::shard::wheel::geometry::Geometry;
use crate::sync::{AtomicBool, AtomicU32, Trace};

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
    inbox: CachePadded<AtomicU32>,
    /// Whether a held node that the advancer has set aside may have been used (see `protocol`). Set
    /// by producers and the advancer, cleared by the advancer.
    aside_used: AtomicBool,
    /// Written by cancellers and the advancer, now and then.
    pub(crate) dead: CachePadded<DeadReports>,
    pub(crate) bound: Bound,
    /// By the level.
    wheels: Slots<Wheel, { LIMITS.levels }>,
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
            inbox: CachePadded::new(AtomicU32::new(NIL)),
            aside_used: AtomicBool::new(false),
            dead: CachePadded::new(DeadReports::new()),
            bound: bound.clone(),
            wheels: Slots::new()?,
        };
        shared.wheel_or_new(0, start)?;
        Some((shared, reclaimer))
    }
}

//! The ground floor: one shard, a hierarchical timing wheel with a producers' half and a consumer's half.
//! No threads, no real time, no callbacks.
//!
//! Where a timer goes, and which file tells of it:
//!
//! - schedule: [`scheduler`] takes a node ([`vacancy`], [`slab`], [`lane`], [`hints`]), arms it ([`node`], [`state`]), finds its
//!   bucket ([`level`]) and pushes it ([`shared`], [`wheel`]);
//! - advance: [`advancer`] moves the [`clock`] and flushes buckets ([`flush`], [`wheel`]), walks what it
//!   detached ([`chains`]), yields what is due ([`expired`]), moves the rest to a finer wheel of its own
//!   ([`placing`], [`own`], [`bitmap`]), where it can ahead of time ([`draw`]), arms anew what recurs ([`recurring`]), frees
//!   nodes ([`recycle`], [`batch`], [`reclaim`]), now and then sweeps ([`sweep`]), gives coarse overflow wheels back
//!   that are idle ([`overflow`]), tells what is next ([`earliest`]), and at the end hands back what is left ([`handover`]);
//! - sleep and memory: producers wake a sleeping advancer by the [`bell`], count what is pending and dead ([`counts`],
//!   [`stats`]), and leave lanes behind, which the advancer tidies ([`roll`]), also those of threads that do nothing
//!   ([`barrier`]).

mod advancer;
mod barrier;
mod batch;
mod bell;
mod bitmap;
mod bits;
mod bound;
mod chains;
mod clock;
mod counts;
mod draw;
mod earliest;
mod expired;
mod flush;
mod handover;
mod hints;
mod invariants;
mod key;
mod lane;
mod level;
mod node;
mod overflow;
mod own;
mod placing;
mod prefetch;
mod reclaim;
mod recurring;
mod recycle;
mod roll;
mod scheduler;
mod seed;
mod segment;
mod shared;
mod slab;
mod state;
mod stats;
#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod support;
mod sweep;
mod vacancy;
mod wheel;
mod zeroed;

pub use advancer::Advancer;
pub use expired::{Expired, Fired};
pub use key::Key;
pub(crate) use key::ShardId;
pub(crate) use scheduler::Exchanged;
pub use scheduler::Scheduler;
pub use stats::ShardStats;

pub(crate) use bound::Bound;
pub(crate) use handover::Kept;
#[cfg(fuzzing)]
pub(crate) use level::{Geometry, Slot};
pub(crate) use recurring::{Due, Running, Stopped};
pub(crate) use seed::Seed;
#[cfg(feature = "model")]
pub(crate) use {
    clock::Clock,
    node::{Met, Node},
    reclaim::{Epochs, Grace, Participant},
    segment::{FreeBits, WORD_NODES},
    wheel::{Place, Wheel},
};

use crate::Config;
use crate::sync::Arc;

/// Makes a shard: the half that schedules, which can be cloned and shared, and the half that advances, of
/// which there is one.
///
/// # Panics
///
/// If the system gives no memory for it.
///
/// # Examples
///
/// ```
/// use shardwheel::{Config, shard};
///
/// let (scheduler, mut advancer) = shard(&Config::default());
/// let key = scheduler.schedule(100, "timeout")?;
/// assert_eq!(advancer.advance(99).next(), None);
///
/// let key = scheduler.reschedule(key, 200).expect("it has not fired");
/// assert_eq!(advancer.advance(100).next(), None);
///
/// let fired = advancer.advance(200).next().expect("it is due");
/// assert_eq!((fired.key, fired.deadline, fired.payload), (key, 200, "timeout"));
/// # Ok::<(), shardwheel::ScheduleError<&str>>(())
/// ```
#[must_use]
pub fn shard<T: Send>(config: &Config) -> (Scheduler<T>, Advancer<T>) {
    shard_within(config, &Bound::new(config.max_pending()), ShardId::block(1)).expect("no memory for a shard")
}

/// [`shard()`] of that number, its bound on pending timers shared with others; the config's own is not looked at. None if there
/// is no memory.
pub(crate) fn shard_within<T: Send>(
    config: &Config,
    bound: &Bound,
    id: ShardId,
) -> Option<(Scheduler<T>, Advancer<T>)> {
    let shared = Arc::new(shared::Shared::new(config, bound, id)?);
    let advancer = Advancer::new(Arc::clone(&shared))?;
    Some((Scheduler { shared }, advancer))
}

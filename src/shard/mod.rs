//! One shard: a hierarchical timing wheel with a producers' half and a consumer's half. It has no
//! threads, no real time and no callbacks.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | timer | a payload and a deadline, a tick; the service that runs shards is always "`Timer`" |
//! | node | the memory of one timer; its *word* (status, version, extension) decides the timer's fate |
//! | key | names a node and a generation, so one timer for ever |
//! | generation | the era of the node's segment and the node's version: never the same twice |
//! | segment | an array of nodes, 2 MiB at most where a node is not large |
//! | bucket | the lists of the nodes that are due within one span of ticks |
//! | round | a bucket's revolution; a push fails on a list of another round |
//! | shared wheel, private wheel | an array of buckets: producers push to the one; the other is the advancer's alone |
//! | overflow wheel | any wheel but the finest; made when first needed |
//! | cascade | nodes of an overflow bucket go to finer buckets; *early*, in shares, before the bucket expires |
//! | lead | the time in which an overflow bucket is cascaded early |
//! | inbox | a stack for nodes whose bucket is sealed, or takes none |
//! | sealed | the last tick that is closed to producers' pushes |
//! | flushed | the last tick whose bucket the advancer has taken |
//! | lane | what one thread has to itself in a shard |
//! | deferred | a node that the advancer leaves to its next advance, because a producer is at work in it |
//! | dead | a cancelled node that is still linked: its thread puts its next timer into it, or the advancer frees it when it meets it, at the latest in a *sweep* |
//! | advancer | the one consumer: moves the clock, fires, frees |
//! | retired | given up: a node, which is free at once; memory, which readers that found it before may still read |
//!
//! # The path of a timer
//!
//! A producer enters its lane, takes the next free node of the lane's word, writes `base` and
//! payload, and stores the word *pending*. It sets the bit of the bucket's list, passes a fence,
//! loads `sealed`, and pushes; if the bucket is sealed, it uses the inbox. If the node that the lane
//! cancelled last is still dead, and linked for no later tick, the producer takes that one where it
//! is, by a compare-and-swap: it writes the payload and the word, and passes the fence. It wakes the advancer if the deadline is before the end of the advancer's sleep. It also does so
//! for a crowd (see [`shared`]), for a sweep that is due, and for a cancel while the advancer
//! sleeps with memory that is not needed.
//!
//! The advancer seals a few ticks ahead, passes a fence, and looks at the bits. At a tick it swaps
//! the lists whose bit is set, adds its private lists, and fires each node by a compare-and-swap of
//! the word (by two in the shard of a `Timer`, whose timers may recur).
//!
//! A freed node's bit goes into a bitmap of the advancer's, and with up to 63 others back to its
//! segment. A segment without nodes in use leaves the table, and goes back to the system when the
//! readers that were pinned have unpinned.
//!
//! # Why no timer is lost
//!
//! Producer: bit, fence, `sealed`. Advancer: `sealed`, fence, bits. One fence comes first: the
//! advancer sees the bit, or the producer sees the seal and uses the inbox, which every advance
//! empties. A push that is later still fails on the round. The same pair of fences orders a push
//! and the advancer's sleep, and a push and the shard's end ([`shared::protocol`] has the proofs).
//!
//! # Who writes what
//!
//! | what | written by |
//! |---|---|
//! | a lane | its thread; the advancer while the lane is revoked |
//! | a node's word | any thread, by compare-and-swap; its owner, by a store |
//! | a node's `base` and payload | its owner |
//! | bits and heads of the shared wheels | producers set and push, the advancer clears and swaps |
//! | the clock's words, private wheels, the limit of dead nodes | the advancer (a canceller clears the mark that lets a cancel wake it) |
//! | free bits | producers take, and give back what a call leaves over; the advancer gives, and takes a segment whose bits are all set |
//! | inbox; the mark that a sweep is asked for | producers push and set, the advancer takes and clears, and sets the mark too |
//! | the reports of dead nodes | producers add, the advancer reads |
//!
//! # Where it is
//!
//! | folder | what happens to a timer there |
//! |---|---|
//! | [`scheduler`] | A producer schedules, cancels or moves it. `acquire` finds a node for it. |
//! | [`node`] | The node holds it. One word decides its fate (`state`). |
//! | [`shared`] | Both halves meet: the schedule, flush and sleep protocol puts it into a bucket. |
//! | [`wheel`] | It waits in a bucket: lists that accept pushes at any time; the slot arithmetic. |
//! | [`advancer`] | The clock reaches its bucket: flush, cascade, fire. Sweeps and the shard's end. |
//! | [`memory`] | Its node is freed for the producers; empty segments go back to the system. |
//!
//! The folders use each other in one direction: `scheduler` and `advancer` use `shared`; `shared`
//! uses `memory`; `memory` uses `wheel`; `wheel` uses `node`. A timer goes backwards only where the
//! advancer links its node anew (a cascade, the inbox, a sweep, a timer that recurs), and where a
//! producer moves it.

pub(crate) mod advancer;
mod key;
pub(crate) mod memory;
pub(crate) mod node;
mod scheduler;
pub(crate) mod shared;
#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod support;
pub(crate) mod wheel;

pub use advancer::Advancer;
pub use advancer::fire::{Expired, Fired};
pub use key::Key;
pub(crate) use key::ShardId;
pub(crate) use scheduler::{Ahead, Exchanged};
pub use scheduler::{CancelBatch, Scheduler};
pub use shared::stats::ShardStats;

pub(crate) use advancer::handover::Kept;
pub(crate) use advancer::recurring::{Due, RearmTicket};
pub(crate) use node::{Extended, Stopped, Tag};
pub(crate) use shared::bound::Bound;
#[cfg(any(shardwheel_loom, shardwheel_model))]
pub(crate) use {
    memory::epochs::{Epochs, Participant, Reclaimer},
    memory::free_bits::{FreeBits, WORD_NODES},
    memory::segment::Segment,
    memory::slab::{FreeWord, Slab},
    memory::slot::Retired,
    node::Node,
};

use crate::config::Config;
use crate::hardware;
use shared::Shared;
use shared::consumer::Consumer;

/// Makes a shard: its [`Scheduler`], which can be cloned and shared, and its only [`Advancer`].
///
/// # Panics
///
/// If the system has no memory for it.
///
/// # Performance
///
/// Allocates the tables and the finest wheel. On Linux the first shard of a process also registers
/// the process for `membarrier(2)`: that takes some 10 ms if the process has several threads by
/// then.
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
    hardware::has_membarrier();
    shard_within(config, &Bound::new(config.max_pending()), ShardId::block(1)).expect("no memory for a shard")
}

/// As [`shard()`], with the given number, and with a bound on pending timers that shards share; the
/// config's own bound is ignored. `None` if there is no memory. The caller sees to it that
/// [`hardware::has_membarrier`] is called before timers are due.
pub(crate) fn shard_within<T: Send>(
    config: &Config,
    bound: &Bound,
    id: ShardId,
) -> Option<(Scheduler<T>, Advancer<T>)> {
    let advancer = Advancer::new(Consumer::new(Shared::new(config, bound, id)?));
    Some((advancer.scheduler(), advancer))
}

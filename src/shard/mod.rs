//! One shard: a hierarchical timing wheel with a producers' half and a consumer's half. It has no
//! threads, no real time and no callbacks.
//!
//! # Words
//!
//! For [`machine`]:
//!
//! | word | meaning |
//! |---|---|
//! | timer | a payload and a deadline, a tick; the service that runs shards is always "`Timer`" |
//! | node | the memory of one timer; its *word* (status, version, extension) decides the timer's fate |
//! | base, extension | the tick that a node was first linked for; how much later its timer is due |
//! | displaced | said of a node that is linked for its deadline, or for one that it had before, no longer for its base |
//! | busy | said of a node in which a producer is at work: its status is `Busy` |
//! | key | names a node and a generation, so one timer for ever |
//! | generation | the *era* of the node's segment and the node's *version*: never the same twice |
//! | slot, bucket | a span of ticks: its level, and its *number*, counted from tick 0; the lists of the nodes that are due within it. |
//! | expires | said of a bucket at the first tick of its slot: that is when it has to be emptied |
//! | stripe | one of the 16 lists of a bucket (a *list* in the guide); the node's number chooses it |
//! | round | how often the wheel has gone round before a slot; a push fails on a list of another round |
//! | shared wheel, private wheel | an array of buckets: producers push to the one; the other is the advancer's alone |
//! | overflow wheel | any wheel but the finest; made when first needed |
//! | cascade | nodes of an overflow bucket go to finer buckets when it expires; or *early*, in shares, before that |
//! | lead | the time in which an overflow bucket is cascaded early: the span of a bucket of its level, before it expires. In wheels of 2,048, the bucket of ticks 2,048 to 4,095 is emptied during ticks 0 to 2,047 |
//! | crowd | more timers than `FEW_PENDING`, so many that the advancer wakes for a lead |
//! | inbox | a stack for nodes whose bucket is sealed, belongs to another round, or has no memory for its wheel |
//! | sealed | the last tick that is closed to producers' pushes, the end of a *window* of a few ticks |
//! | flushed | the last tick that the advancer has done with: while it yields the bucket of tick `t`, that is `t - 1` |
//! | advancer | the one consumer: moves the clock, fires, frees; its handle of what both halves share is the `Consumer` |
//! | linked, in hand | said of a node in a list, the inbox included; of one that the advancer has taken out of its list |
//! | list, chain | where nodes wait; a list that the advancer has taken and walks |
//! | drain | from an advance until its iterator has yielded `None` or is dropped: timers are taken out |
//! | upkeep, rest | the background work that a move of the clock does a share of; the moves between two shares |
//! | overdue | in hand, and due at or before *flushed*: it came too late for a bucket |
//! | deferred | in hand, and left to the next advance, because a producer is at work in it, or because it was armed again for a tick that is past |
//! | dead | a cancelled node that is still linked: its thread puts its next timer into it, or the advancer frees it when it meets it: when its bucket is due, or before that in a *sweep* |
//!
//! For [`memory`] and the lanes:
//!
//! | word | meaning |
//! |---|---|
//! | worn out | said of a node that has had its last version; it is not used again |
//! | segment | an array of nodes, 2 MiB at most where a node is not large |
//! | lane | what one thread has to itself in a shard; a *common* lane serves threads that have none, a call at a time |
//! | revoked | said of a lane from which the advancer takes the free nodes that an idle thread keeps |
//! | retired | given up: a node, which is free at once; or memory, which readers that found it before may still read |
//! | excess, leftovers | memory that what is pending does not need; free and dead nodes that keep such memory |
//! | participant, pinned | one reader of memory that may be retired; while it is pinned, nothing that it has found goes away |
//! | `Stay`, `Keep` | proof, for the compiler, that a node's segment, or what a table holds, does not go away |
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
//! [`machine`] is the page that has it all: how a timer is scheduled, cancelled, moved, flushed,
//! cascaded and fired, and why none is lost. Read it first. The others are its parts:
//!
//! | folder | what it has |
//! |---|---|
//! | [`scheduler`] | the producers' public half; what else a key is good for; batches |
//! | [`advancer`] | the consumer's public half; the background work: early cascade, sweep, upkeep, the end |
//! | [`shared`] | what both halves share: the clock's words, lanes, counters, the inbox, the waker |
//! | [`memory`] | free nodes, and segments on their way to the system and back |
//! | [`wheel`] | buckets of lists that accept pushes at any time; the private wheels; the slot arithmetic |
//! | [`node`] | the memory of one timer; one word decides its fate (`state`) |
//!
//! Each uses those below it, and `key`, the public name of a timer; only `Advancer::scheduler` looks
//! up. Outside of this folder, `crate::size` has sizes that differ for fuzzers and models, and
//! `crate::sync` the atomics: there, `hint` and `Trace` matter only in a model (calls named `model_`
//! do nothing elsewhere), and what is in `plain` is never a model's. `Ordering:`, `SAFETY:` and
//! `Protects:` begin a comment that says why an ordering is strong enough, why a call is sound, and
//! what a pin keeps.

pub(crate) mod advancer;
mod key;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod node;
mod scheduler;
pub(crate) mod shared;
#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod support;
pub(crate) mod wheel;

pub use advancer::{Advancer, Expired, Fired};
pub use key::Key;
pub(crate) use key::ShardId;
pub(crate) use scheduler::{Ahead, Exchanged};
pub use scheduler::{CancelBatch, Scheduler};
pub use shared::stats::ShardStats;

pub(crate) use advancer::end::Kept;
pub(crate) use advancer::recurring::{Due, RearmTicket};
pub(crate) use node::{Extended, Stopped, Tag};
pub(crate) use shared::bound::Bound;
#[cfg(any(shardwheel_loom, shardwheel_model))]
pub(crate) use {
    memory::epochs::{Epochs, Participant, Reclaimer},
    memory::free_bits::{FreeBits, WORD_NODES},
    memory::segment::Segment,
    memory::slab::{FreeWord, Slab},
    memory::table::Retired,
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

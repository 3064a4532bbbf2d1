//! A producer is stopped at each of its atomic operations in turn, in each operation that a
//! producer has. Before it is released all others must get what they are promised: their timers
//! fire on the tick, wake the advancer, are cancelled and moved; dead nodes and memory stay within
//! their bounds; and the shard's end hands back what is pending. Every step is tried, without
//! sampling.
//!
//! Threads can be stopped only in a special build, so this target is empty without `--cfg
//! shardwheel_stall`: `.ci/run stall`.
//!
//! - [`steps`]: counts the steps, watches for hangs, and collects failures;
//! - [`scene`]: a shard, its sleeping advancer, and the promises to all others; [`load`]: a large
//!   payload of the ledger;
//! - [`first`]: the thread that is stopped; [`cases`]: the operations of a producer;
//! - [`advancers`]: the advancer itself is stopped, and producers go on;
//! - [`workers`]: a shard's thread is stopped while a job comes back from an executor, and a loop
//!   while a sweep is requested;
//! - [`timers`]: the operations of a `Timer` and of its sleeps, with a manual clock and in real time.
//!
//! # What a stopped producer may hold
//!
//! - [`SEGMENTS_HELD`](scene::SEGMENTS_HELD) segments of memory: the segment of its free nodes, and
//!   the segment of the node that it works on.
//! - While it is pinned, also all memory that has been given up since. The table names the
//!   operations that pin ([`Case::pins`](first::Case)); the memory goes back when the producer goes
//!   on.
//! - The one timer that it is moving, if the shard ends meanwhile
//!   ([`Case::may_drop`](first::Case)): it is dropped with the shard. A sleep's task is then not
//!   woken.
#![cfg(shardwheel_stall)]

mod advancers;
mod cases;
mod first;
mod load;
mod scene;
mod steps;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod timers;
mod workers;

#[test]
fn no_stopped_thread_breaks_a_promise_to_the_others() {
    let jobs = [workers::jobs(), timers::jobs(), advancers::jobs(), cases::jobs()];
    steps::try_all(jobs.into_iter().flatten().collect());
}

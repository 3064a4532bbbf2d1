//! A producer is stopped at each of its atomic operations in turn, in each operation that a producer has, and is not
//! released before all others have met what they are promised: their timers fire on the tick, wake the
//! advancer, are cancelled and moved, dead nodes and memory stay within their bounds, and the shard's end hands
//! back what is pending. No step is left out and none is drawn by lot.
//!
//! It takes a build in which threads can be stopped, so this target is empty without `--cfg shardwheel_stall`:
//! `.ci/run stall`.
//!
//! - [`steps`]: counts the steps, watches for hangs, and collects what has failed;
//! - [`scene`]: a shard, its advancer, which sleeps, and what all others are promised; [`load`]: a large payload of the ledger;
//! - [`first`]: the thread that is stopped; [`cases`]: what it does, as a producer;
//! - [`advancers`]: the advancer itself is stopped, and producers go on;
//! - [`timers`]: the same for a `Timer` and its sleeps, the clock moved by hand and in real time.
//!
//! # What a stopped producer may hold
//!
//! - [`SEGMENTS_HELD`](scene::SEGMENTS_HELD) segments of memory: that of the free nodes that it has to itself, and that of
//!   the node in which it is at work.
//! - While it is pinned, also all memory that has been given up since. The table names the operations that
//!   pin ([`Case::pins`](first::Case)); the memory goes back once the producer goes on.
//! - The one timer that it is moving, should the shard end meanwhile
//!   ([`Case::may_drop`](first::Case)): it is dropped with the shard. A sleep's task is then not woken.
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

#[test]
fn no_stopped_thread_keeps_others_from_what_they_are_promised() {
    let jobs = [timers::jobs(), advancers::jobs(), cases::jobs()];
    steps::try_all(jobs.into_iter().flatten().collect());
}

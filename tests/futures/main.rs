//! The futures of a `Timer`: sleeps, timeouts and intervals, on executors that people use and polled by hand.
//!
//! Most run on a [`ManualClock`](shardwheel::ManualClock), where times are exact; those in real time say so. They
//! check strictly that nothing is early, and only generously that nothing is late. Case 50 of the behaviours
//! (wakers that are kept after a cancel, or woken or dropped under a lock) is the theme of `wakers.rs` and
//! `reentry.rs`; the others have it where it fits. The promises, by the numbers that the tests give:
//!
//! 1. never early, at most one tick late;
//! 2. exactly one outcome for each timer;
//! 4. any deadline, any jump, no clamp;
//! 5. bounded memory;
//! 7. user code cannot break it;
//! 8. nothing is lost at the end.

mod changing_wakers;
mod ending;
mod interval;
mod reentry;
mod runtimes;
mod sleep;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod timeout;
mod wakers;

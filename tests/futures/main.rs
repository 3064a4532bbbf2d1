//! The futures of a `Timer`: sleeps, timeouts and intervals, on common executors and polled by
//! hand.
//!
//! Most tests run on a [`ManualClock`](shardwheel::ManualClock), where times are exact; tests in
//! real time have that in their names. They check strictly that nothing is early, and with a wide
//! margin that nothing is late.
//!
//! The promises that the tests name are those of the README. `tests/BEHAVIOURS.md` lists the cases
//! that come from other systems.

mod changing_wakers;
mod deadline;
mod ending;
mod global;
mod interval;
mod runtimes;
mod slack;
mod sleep;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod timeout;
mod wakers;
mod yielding;

//! Tests of [`Driver`](shardwheel::Driver): timers without threads, which an event loop turns.

mod ends;
mod event_loops;
mod pairs;
mod run;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod turns;
mod wakers;

use shardwheel::{Driver, ManualClock, Timer};

/// A driven timer on a manual clock.
fn by_hand() -> (ManualClock, Timer, Driver) {
    let clock = ManualClock::new();
    let (timer, driver) = Timer::builder().clock(clock.clone()).build_driven().unwrap();
    (clock, timer, driver)
}

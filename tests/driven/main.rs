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

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use shardwheel::{Driver, ManualClock, Timer};

/// A driven timer on a manual clock.
fn by_hand() -> (ManualClock, Timer, Driver) {
    let clock = ManualClock::new();
    let (timer, driver) = Timer::builder().clock(clock.clone()).build_driven().unwrap();
    (clock, timer, driver)
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wakes {
    fn new() -> (Arc<Self>, Waker) {
        let wakes = Arc::new(Self::default());
        (Arc::clone(&wakes), Waker::from(wakes))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

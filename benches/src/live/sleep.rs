//! A sleep that is created, polled once and dropped: a timeout of an operation that ends before it.
//!
//! Each thread polls with one waker that counts its references, as a task's does. Another sleep of
//! the thread, due earlier, is pending meanwhile: without it each sleep would be the first and wake
//! the engine's thread.

use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::timer::{MILLISECOND, Sleeps};
use crate::race::race_then;
use crate::suite::{Outcome, Task};

pub(super) const ONE: &str = "create, poll and drop, one thread, ns";
pub(super) const TWO: &str = "create, poll and drop, two threads, ns";

const DOZE: Duration = Duration::from_secs(30 * 60);
const STANDING: Duration = Duration::from_secs(10 * 60);

/// Sleeps of each thread; a tenth as many come before, as a warm-up.
const SLEEPS: usize = if cfg!(test) { 1_000 } else { 2_000_000 };

/// The time for each sleep of all threads together, with one thread and with two.
pub(super) fn sleeps<E: Sleeps>(_: &Task) -> Outcome {
    let engine = E::start(MILLISECOND);
    let prepare = || {
        let (entered, waker) = (engine.enter(), Waker::from(Arc::new(Ignore)));
        let mut standing = Box::pin(engine.sleep(STANDING));
        assert!(standing.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        doze(&engine, &waker, SLEEPS / 10);
        let engine = &engine;
        move || {
            doze(engine, &waker, SLEEPS);
            drop((standing, entered));
        }
    };
    let mut outcome = Outcome::default();
    outcome.time(ONE, race_then(vec![prepare], drop).0, SLEEPS);
    outcome.time(TWO, race_then(vec![prepare; 2], drop).0, 2 * SLEEPS);
    outcome
}

fn doze<E: Sleeps>(engine: &E, waker: &Waker, sleeps: usize) {
    let mut context = Context::from_waker(waker);
    for _ in 0..sleeps {
        let mut sleep = pin!(engine.sleep(black_box(DOZE)));
        assert!(black_box(sleep.as_mut().poll(&mut context)).is_pending(), "30 minutes have not passed");
    }
}

/// Counts its references and does nothing else.
struct Ignore;

impl Wake for Ignore {
    fn wake(self: Arc<Self>) {}
}

//! A sleep that is created, polled once and dropped, over and over: a timeout of an operation that ends before
//! it, as nearly all do.
//!
//! Each thread polls with one waker that counts its references, as a task's does. Another sleep of the thread, due
//! before all of them, stands meanwhile, as it would in any program that runs: with no other timer, each new one
//! would be the first and wake the engine's thread.
//!
//! Sleeps are made in batches, between which an engine that makes them in tasks can let its worker go on.

use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use shardwheel_benches::race;

use crate::engine::Sleeps;
use crate::sections::{Figures, MILLISECOND};

pub(crate) const ONE: &str = "create, poll and drop, one thread, ns";
pub(crate) const TWO: &str = "create, poll and drop, two threads, ns";

const DOZE: Duration = Duration::from_secs(30 * 60);
const STANDING: Duration = Duration::from_secs(10 * 60);

/// How many sleeps make a batch.
const BATCH: usize = 64;

/// How many batches each thread makes, two million sleeps, and how many before that to warm up.
const BATCHES: usize = 2_000_000 / BATCH;
const WARM_UP: usize = BATCHES / 10;

/// Time for each sleep of all threads together, with one thread and with two.
pub(crate) fn figures<E: Sleeps>() -> Figures {
    measure::<E>(BATCHES, WARM_UP)
}

fn measure<E: Sleeps>(batches: usize, warm_up: usize) -> Figures {
    let engine = Arc::new(E::start(MILLISECOND));
    let prepare = || {
        let (entered, waker) = (engine.enter(), waker());
        let mut standing = Box::pin(engine.sleep(STANDING));
        assert!(standing.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        doze(&engine, &waker, warm_up);
        let engine = &engine;
        move || {
            doze(engine, &waker, batches);
            drop((standing, entered));
        }
    };
    let nanos = |elapsed: Duration, threads| elapsed.as_nanos() as f64 / (threads * batches * BATCH) as f64;
    let one = nanos(race(vec![prepare]), 1);
    let two = nanos(race(vec![prepare; 2]), 2);
    vec![(ONE.to_owned(), one), (TWO.to_owned(), two)]
}

fn doze<E: Sleeps>(engine: &Arc<E>, waker: &Waker, batches: usize) {
    let waker = waker.clone();
    engine.repeat(batches, move |engine| doze_batch(engine, &waker));
}

fn doze_batch<E: Sleeps>(engine: &E, waker: &Waker) {
    let mut context = Context::from_waker(waker);
    for _ in 0..BATCH {
        let mut sleep = pin!(engine.sleep(black_box(DOZE)));
        assert!(black_box(sleep.as_mut().poll(&mut context)).is_pending(), "half an hour has not passed");
    }
}

/// Wakes nobody.
struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

fn waker() -> Waker {
    Waker::from(Arc::new(Nobody))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::async_io::AsyncIo;
    use crate::futures_timer::FuturesTimer;
    use crate::pingora::Pingora;
    #[cfg(tokio_unstable)]
    use crate::tokio_tasks::TokioAlternativeTasks;
    use crate::tokio_tasks::TokioTasks;
    #[cfg(tokio_unstable)]
    use crate::tokio_time::TokioAlternative;
    use crate::tokio_time::TokioTime;
    use crate::wheel::Wheel;

    fn sleeps_stay_pending<E: Sleeps>() {
        let figures = measure::<E>(16, 1);
        assert!(figures.len() == 2 && figures.iter().all(|(_, nanos)| *nanos > 0.0), "{}", E::NAME);
    }

    #[test]
    fn every_engine_makes_sleeps() {
        sleeps_stay_pending::<Wheel>();
        sleeps_stay_pending::<TokioTime>();
        sleeps_stay_pending::<TokioTasks>();
        #[cfg(tokio_unstable)]
        sleeps_stay_pending::<TokioAlternative>();
        #[cfg(tokio_unstable)]
        sleeps_stay_pending::<TokioAlternativeTasks>();
        sleeps_stay_pending::<Pingora>();
        sleeps_stay_pending::<AsyncIo>();
        sleeps_stay_pending::<FuturesTimer>();
    }
}

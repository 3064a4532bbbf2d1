//! Payloads and executors whose drops panic: what is beside them is dropped, handed back and
//! counted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use shardwheel::{Advancer, Config, Executor, Job, ManualClock, Scheduler, Timer, shard};

use crate::support::{Bomb, Count, Dropped, HOUR, after, is_balanced, ms, survives, until};

/// Counts its drops, some of which panic.
type Payload = (Dropped, Option<Bomb>);

/// Ten timers, so many of which panic when they are dropped.
fn ten(bombs: usize) -> (Scheduler<Payload>, Advancer<Payload>, Count) {
    let (scheduler, advancer) = shard(&Config::default());
    let dropped = Count::default();
    for i in 0..10 {
        let bomb = (2..2 + bombs).contains(&i).then(|| Bomb);
        scheduler.schedule(1_000 + i as u64, (Dropped(dropped.clone()), bomb)).expect("it is open");
    }
    (scheduler, advancer, dropped)
}

/// The end of a shard by `end`: all payloads are dropped by the time it returns; the first panic
/// comes out.
fn ends_whole(bombs: usize, end: impl FnOnce(Advancer<Payload>)) {
    let (scheduler, advancer, dropped) = ten(bombs);
    assert!(catch_unwind(AssertUnwindSafe(|| end(advancer))).is_err());
    assert_eq!((dropped.get(), scheduler.len()), (10, 0), "of {bombs} bombs");
    drop(scheduler);
    assert_eq!(dropped.get(), 10);
}

/// Promise 8.
#[test]
fn item_10_a_panicking_payload_in_a_dropped_advancer() {
    ends_whole(1, drop);
}

/// Promise 8.
#[test]
fn item_10_a_panicking_payload_in_a_dropped_into_pending() {
    ends_whole(1, |advancer| drop(advancer.into_pending()));
    ends_whole(1, |advancer| {
        let mut pending = advancer.into_pending();
        drop(pending.next());
        drop(pending);
    });
}

/// Promises 7 and 8.
#[test]
fn read_panicking_payloads_in_a_dropped_advancer() {
    survives(|| [2, 5].into_iter().for_each(|bombs| ends_whole(bombs, drop)));
}

/// Promises 7 and 8.
#[test]
fn read_panicking_payloads_in_a_dropped_into_pending() {
    survives(|| {
        for bombs in [2, 5] {
            ends_whole(bombs, |advancer| drop(advancer.into_pending()));
        }
    });
}

/// A payload that is left to the caller, whose loop panics meanwhile. Promises 7 and 8.
#[test]
fn read_panicking_payloads_while_the_loop_over_pending_unwinds() {
    survives(|| {
        ends_whole(2, |advancer| {
            let _pending = advancer.into_pending();
            panic!("the loop panics");
        });
    });
}

/// An executor whose drop panics, which is the last that a shard drops.
struct Explosive(Bomb);

impl Executor for Explosive {
    fn execute(&self, job: Job) {
        let _bomb = &self.0;
        job.run();
    }
}

/// What is pending comes back at shutdown, and is dropped with the timer. Promise 8.
#[test]
fn item_10_an_executor_whose_drop_panics() {
    survives(|| {
        for shards in [1, 2] {
            let timer =
                Timer::builder().shards(shards).executor(Explosive(Bomb)).build().expect("within limits");
            hands_back_ten(timer);
            let clock = ManualClock::new();
            let timer =
                Timer::builder().shards(shards).clock(clock.clone()).executor(Explosive(Bomb)).build();
            hands_back_ten(timer.expect("settings within their limits"));
        }
    });
}

fn hands_back_ten(timer: Timer) {
    let dropped = Count::default();
    for _ in 0..10 {
        let held = Dropped(dropped.clone());
        after(&timer, HOUR, move || drop(held));
    }
    let unfired = catch_unwind(AssertUnwindSafe(|| timer.shutdown()));
    assert_eq!(unfired.map_or(0, |unfired| unfired.len()), 10);
    assert_eq!((dropped.get(), timer.stats().handed_back), (10, 10));
    is_balanced(&timer);
    drop(catch_unwind(AssertUnwindSafe(|| drop(timer))));
}

/// An executor that runs the jobs that it has kept when it is dropped, which is while its shard
/// ends.
#[derive(Default)]
struct RunsAtTheEnd(Mutex<Vec<Job>>);

impl Executor for RunsAtTheEnd {
    fn execute(&self, job: Job) {
        self.0.lock().expect("no panic").push(job);
    }
}

impl Drop for RunsAtTheEnd {
    fn drop(&mut self) {
        self.0.get_mut().expect("no panic").drain(..).for_each(Job::run);
    }
}

/// A recurring callback comes back between the shard's last look and the end of what it comes back
/// through; it is dropped there, and its drop panics. What is pending comes back. Promises 7 and 8.
#[test]
fn read_a_job_comes_back_while_the_shard_ends() {
    survives(|| {
        let timer =
            Timer::builder().shards(1).executor(RunsAtTheEnd::default()).build().expect("within limits");
        let (ran, dropped, bomb) = (Count::default(), Count::default(), Bomb);
        let (mine, held) = (ran.clone(), Dropped(dropped.clone()));
        let callback = move || {
            let _held = (&held, &bomb);
            mine.one();
        };
        timer.schedule_every(ms(1), callback).expect("the timer is open");
        after(&timer, ms(50), || ());
        after(&timer, HOUR, || ());
        until("both are due", || timer.stats().fired == 1);
        assert_eq!(catch_unwind(AssertUnwindSafe(|| timer.shutdown())).map_or(0, |unfired| unfired.len()), 1);
        is_balanced(&timer);
        drop(catch_unwind(AssertUnwindSafe(|| drop(timer))));
        until("it runs once and is dropped", || (ran.get(), dropped.get()) == (1, 1));
    });
}

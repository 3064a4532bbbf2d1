//! Executors whose drops panic, and jobs that return late: pending callbacks come back, and are
//! counted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use shardwheel::{Executor, Job, ManualClock, Timer};

use crate::support::{Bomb, Built, Count, Dropped, HOUR, after, is_balanced, ms, survives, until};

/// An executor whose drop panics. A shard drops it last.
struct Explosive(Bomb);

impl Executor for Explosive {
    fn execute(&self, job: Job) {
        let _bomb = &self.0;
        job.run();
    }
}

/// The executor's drop panics when the timer ends: what is pending comes back at shutdown, and is
/// dropped with the timer. Promise 8.
#[test]
fn shutdown_returns_what_is_pending_if_the_executors_drop_panics() {
    survives(|| {
        for shards in [1, 2] {
            let timer = Timer::builder().shards(shards).executor(Explosive(Bomb)).built();
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

/// An executor that runs its jobs when it is dropped, while its shard ends.
#[derive(Default)]
struct RunsAtTheEnd(Mutex<Vec<Job>>);

impl Executor for RunsAtTheEnd {
    fn execute(&self, job: Job) {
        self.0.lock().expect("the thread does not panic").push(job);
    }
}

impl Drop for RunsAtTheEnd {
    fn drop(&mut self) {
        self.0.get_mut().expect("the thread does not panic").drain(..).for_each(Job::run);
    }
}

/// A recurring callback comes back between the shard's last look at its timers and its end. It is
/// dropped there, and its drop panics; what is pending comes back. Promises 7 and 8.
#[test]
fn a_job_may_return_while_the_shard_ends() {
    survives(|| {
        let timer = Timer::builder().shards(1).executor(RunsAtTheEnd::default()).built();
        let (ran, dropped, bomb) = (Count::default(), Count::default(), Bomb);
        let (mine, held) = (ran.clone(), Dropped(dropped.clone()));
        let callback = move || {
            let _held = (&held, &bomb);
            mine.one();
        };
        timer.schedule_every(ms(1), callback).expect("the timer is open");
        after(&timer, ms(50), || ());
        after(&timer, HOUR, || ());
        until("both timers are due", || timer.stats().fired == 1);
        assert_eq!(catch_unwind(AssertUnwindSafe(|| timer.shutdown())).map_or(0, |unfired| unfired.len()), 1);
        is_balanced(&timer);
        drop(catch_unwind(AssertUnwindSafe(|| drop(timer))));
        until("it runs once and is dropped", || (ran.get(), dropped.get()) == (1, 1));
    });
}

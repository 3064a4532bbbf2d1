//! `shardwheel`'s `Timer`, with two shards and everything else as it comes.
//!
//! There are three of it: one that calls closures; one with one shard, whose single thread wakes half as often, and with
//! large wheels, so that no timer is moved before it fires; and one whose sleeps are polled once, as those of `tokio` are,
//! for whoever wants to compare like with like.

use std::time::{Duration, Instant};

use shardwheel::{DEFAULT_WHEEL_SIZE, ScheduleError, Sleep, Timer, TimerKey};

use crate::engine::{Cancels, Live, Polled, Schedules, Sleeps, poll_once};
use crate::ledger::Note;

const SHARDS: usize = 2;

/// Buckets to a wheel where there is one shard: with ticks of 1 ms one revolution takes longer than all timers.
const LARGE: usize = 1 << 14;

fn start(tick: Duration, shards: usize) -> Timer {
    let wheel_size = if shards == 1 { LARGE } else { DEFAULT_WHEEL_SIZE };
    Timer::builder().tick(tick).shards(shards).wheel_size(wheel_size).build().expect("a timer can be started")
}

fn accepted<F>(scheduled: Result<TimerKey, ScheduleError<F>>) -> TimerKey {
    match scheduled {
        Ok(key) => key,
        Err(refused) => panic!("a timer without a bound refused a timer: {refused}"),
    }
}

/// Calls closures.
pub(crate) struct Calls<const SHARDS: usize> {
    timer: Timer,
}

/// As it is measured everywhere.
pub(crate) type Wheel = Calls<SHARDS>;

/// With one shard.
pub(crate) type OneShard = Calls<1>;

impl<const SHARDS: usize> Live for Calls<SHARDS> {
    const NAME: &'static str = if SHARDS == 1 { "shardwheel one shard" } else { "shardwheel" };

    type Kept = ();

    fn start(tick: Duration) -> Self {
        Self { timer: start(tick, SHARDS) }
    }

    fn place(&self, due: Instant, note: Note) {
        accepted(self.timer.schedule_at(due, move || note.write()));
    }
}

impl<const SHARDS: usize> Sleeps for Calls<SHARDS> {
    #[inline]
    fn sleep(&self, duration: Duration) -> impl Future {
        self.timer.sleep(duration)
    }
}

impl<const SHARDS: usize> Schedules for Calls<SHARDS> {
    type Key = TimerKey;

    #[inline]
    fn schedule_after<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> TimerKey {
        accepted(self.timer.schedule_after(delay, task))
    }
}

impl<const SHARDS: usize> Cancels for Calls<SHARDS> {
    #[inline]
    fn cancel(&self, key: TimerKey) -> bool {
        self.timer.cancel(key)
    }
}

/// Wakes sleeps.
pub(crate) struct WheelSleeps {
    timer: Timer,
}

impl Live for WheelSleeps {
    const NAME: &'static str = "shardwheel sleeps";

    type Kept = Polled<Sleep>;

    fn start(tick: Duration) -> Self {
        Self { timer: start(tick, SHARDS) }
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(self.timer.sleep_until(due), note)
    }
}

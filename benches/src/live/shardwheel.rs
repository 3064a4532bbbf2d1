//! `Timer` of `shardwheel`, with two shards and everything else as it comes.
//!
//! [`Calls`] calls closures; with one shard it has a single thread, which wakes half as often, and
//! wheels so large that no timer is moved before it fires. [`ShardwheelSleeps`] wakes sleeps, as
//! `tokio` does.

use std::time::{Duration, Instant};

use shardwheel::{DEFAULT_WHEEL_SIZE, ScheduleError, Sleep, Timer, TimerKey};

use super::ledger::Note;
use super::timer::{Cancels, Live, Polled, Schedules, Sleeps, poll_once};

const SHARDS: usize = 2;

/// Buckets of a wheel with one shard: a revolution of 16 s at ticks of 1 ms, longer than all delays.
const LARGE: usize = 1 << 14;

fn start(tick: Duration, shards: usize) -> Timer {
    let wheel_size = if shards == 1 { LARGE } else { DEFAULT_WHEEL_SIZE };
    Timer::builder().tick(tick).shards(shards).wheel_size(wheel_size).build().expect("a timer can start")
}

fn accepted<F>(scheduled: Result<TimerKey, ScheduleError<F>>) -> TimerKey {
    scheduled.unwrap_or_else(|refused| panic!("a timer without a bound refused a timer: {refused}"))
}

/// Calls closures.
pub(super) struct Calls<const SHARDS: usize>(Timer);

pub(super) type Shardwheel = Calls<SHARDS>;
pub(super) type OneShard = Calls<1>;

impl<const SHARDS: usize> Live for Calls<SHARDS> {
    const NAME: &'static str = if SHARDS == 1 { "shardwheel one shard" } else { "shardwheel" };

    type Kept = ();

    fn start(tick: Duration) -> Self {
        Self(start(tick, SHARDS))
    }

    fn place(&self, due: Instant, note: Note) {
        accepted(self.0.schedule_at(due, move || note.write()));
    }
}

impl<const SHARDS: usize> Sleeps for Calls<SHARDS> {
    #[inline]
    fn sleep(&self, duration: Duration) -> impl Future {
        self.0.sleep(duration)
    }
}

impl<const SHARDS: usize> Schedules for Calls<SHARDS> {
    type Key = TimerKey;

    #[inline]
    fn schedule_after<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> TimerKey {
        accepted(self.0.schedule_after(delay, task))
    }
}

impl<const SHARDS: usize> Cancels for Calls<SHARDS> {
    #[inline]
    fn cancel(&self, key: TimerKey) -> bool {
        self.0.cancel(key)
    }
}

/// Wakes sleeps.
pub(super) struct ShardwheelSleeps(Timer);

impl Live for ShardwheelSleeps {
    const NAME: &'static str = "shardwheel sleeps";

    type Kept = Polled<Sleep>;

    fn start(tick: Duration) -> Self {
        Self(start(tick, SHARDS))
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(self.0.sleep_until(due), note)
    }
}

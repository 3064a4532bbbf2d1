//! `shardwheel`'s `Timer`, with two shards and everything else as it comes.
//!
//! There are two of it: one that calls closures, and one whose sleeps are polled once, as those of `tokio` are, for
//! whoever wants to compare like with like.

use std::pin::Pin;
use std::task::Waker;
use std::time::{Duration, Instant};

use shardwheel::{ScheduleError, Sleep, Timer, TimerKey};

use crate::engine::{Cancels, Live, Schedules, Sleeps, poll_once};
use crate::ledger::Note;

const SHARDS: usize = 2;

fn start(tick: Duration) -> Timer {
    Timer::builder().tick(tick).shards(SHARDS).build().expect("a timer can be started")
}

fn accepted<F>(scheduled: Result<TimerKey, ScheduleError<F>>) -> TimerKey {
    match scheduled {
        Ok(key) => key,
        Err(refused) => panic!("a timer without a bound refused a timer: {refused}"),
    }
}

/// Calls closures.
pub(crate) struct Wheel {
    timer: Timer,
}

impl Live for Wheel {
    const NAME: &'static str = "shardwheel";

    type Kept = ();

    fn start(tick: Duration) -> Self {
        Self { timer: start(tick) }
    }

    fn place(&self, due: Instant, note: Note) {
        accepted(self.timer.schedule_at(due, move || note.write()));
    }
}

impl Sleeps for Wheel {
    type Sleep = Sleep;

    #[inline]
    fn sleep(&self, duration: Duration) -> Sleep {
        self.timer.sleep(duration)
    }
}

impl Schedules for Wheel {
    type Key = TimerKey;

    #[inline]
    fn schedule_after<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> TimerKey {
        accepted(self.timer.schedule_after(delay, task))
    }
}

impl Cancels for Wheel {
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

    type Kept = (Pin<Box<Sleep>>, Waker);

    fn start(tick: Duration) -> Self {
        Self { timer: start(tick) }
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(self.timer.sleep_until(due), note)
    }
}

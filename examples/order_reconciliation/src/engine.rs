//! What the job needs from a timer, and the cost of each operation.
//!
//! Producers hold a [`Desk`], one thread holds the [`Driver`]: the two halves of a shard. Costs are
//! measured in the same way for every engine.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use shardwheel::Tick;

use crate::ledger::{Micros, OrderRef};

/// The length of a tick.
const TICK: Micros = 1_000;

/// The first tick that is not before `at`: for deadlines.
pub(crate) fn tick_from(at: Micros) -> Tick {
    at.div_ceil(TICK)
}

/// The last tick that is not after `at`: for the clock.
pub(crate) fn tick_at(at: Micros) -> Tick {
    at / TICK
}

/// The time at which a tick begins.
pub(crate) fn start_of(tick: Tick) -> Micros {
    tick.saturating_mul(TICK)
}

/// The producers' half: schedules and cancels checks, from any thread.
pub(crate) trait Desk: Clone + Send + Sync {
    /// Names a scheduled check.
    type Handle: Copy + Send;

    /// Schedules a check.
    ///
    /// # Panics
    ///
    /// If the engine cannot take it. Pending timers have no limit here, so only a lack of memory
    /// refuses one.
    fn schedule(&self, deadline: Tick, order: OrderRef) -> Self::Handle;

    /// Announces that the check will soon be cancelled. Some engines prefetch its memory.
    fn expect_cancel(&self, _: Self::Handle) {}

    /// Cancels a check. True if the check will never fire; false if it has fired, is firing, or was
    /// cancelled before.
    fn cancel(&self, handle: Self::Handle) -> bool;
}

/// The single thread's half: moves the clock and takes the checks that are due.
pub(crate) trait Driver: Send {
    type Desk: Desk;

    /// The desk of a producer.
    fn desk(&self, producer: u32) -> Self::Desk;

    /// Moves the clock to `now` and appends due checks to `due`, about `limit` at most. True if
    /// more may be due; the next call returns them.
    fn advance(&mut self, now: Tick, limit: usize, due: &mut Vec<OrderRef>) -> bool;

    /// When to advance next: never later than the next check is due. `None` if no check is
    /// scheduled.
    fn next_expiration(&mut self) -> Option<Tick>;
}

/// How many operations of one kind ran, and how long they took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    pub(crate) operations: u64,
    pub(crate) spent: Duration,
}

impl Meter {
    /// Runs `work` and adds its time. The operations are counted separately, because their number
    /// may be known only afterwards.
    pub(crate) fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = work();
        self.spent += begin.elapsed();
        result
    }

    pub(crate) fn count(&mut self, operations: usize) {
        self.operations += operations as u64;
    }

    /// Nanoseconds per operation; 0 without operations.
    pub(crate) fn mean_ns(&self) -> f64 {
        if self.operations == 0 { 0.0 } else { self.spent.as_nanos() as f64 / self.operations as f64 }
    }
}

impl AddAssign for Meter {
    fn add_assign(&mut self, other: Self) {
        self.operations += other.operations;
        self.spent += other.spent;
    }
}

/// The time spent in an engine, by operation, summed over threads; and the cancels that succeeded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    pub(crate) schedule: Meter,
    pub(crate) cancel: Meter,
    pub(crate) fire: Meter,
    /// How many cancel operations found their check pending.
    pub(crate) cancelled: u64,
}

impl Costs {
    pub(crate) fn total(&self) -> Duration {
        self.schedule.spent + self.cancel.spent + self.fire.spent
    }

    /// Complete timers, from schedule to fire or cancel, a second of the engine's time.
    pub(crate) fn timers_per_second(&self) -> f64 {
        let seconds = self.total().as_secs_f64();
        if seconds == 0.0 { 0.0 } else { self.schedule.operations as f64 / seconds }
    }
}

impl AddAssign for Costs {
    fn add_assign(&mut self, other: Self) {
        self.schedule += other.schedule;
        self.cancel += other.cancel;
        self.fire += other.fire;
        self.cancelled += other.cancelled;
    }
}

//! What the job asks of a timer. Producers hold a [`Desk`]; one thread holds the [`Driver`], as a shard has two
//! halves, unless the timer runs by itself. And what each operation costs, measured in the same way for every
//! engine.

use std::ops::AddAssign;
use std::task::Waker;
use std::time::{Duration, Instant};

use shardwheel::Tick;

use super::ledger::{Micros, OrderRef};

/// The producers' half: schedules and cancels checks, from any thread.
pub(crate) trait Desk: Clone + Send + Sync {
    /// When a check is due, as the engine counts time.
    type Deadline: Copy + Send;

    /// Names a scheduled check.
    type Handle: Copy + Send;

    /// The engine's deadline for a check that must not come before `due`.
    fn deadline(&self, due: Micros) -> Self::Deadline;

    /// `None` if the engine cannot take the check.
    fn schedule(&self, deadline: Self::Deadline, order: OrderRef) -> Option<Self::Handle>;

    /// Says that the check will soon be cancelled. Some engines can make use of that.
    fn expect_cancel(&self, _: Self::Handle) {}

    /// True if the check will never fire; false if it has fired, is firing, or was cancelled before.
    fn cancel(&self, handle: Self::Handle) -> bool;
}

/// The single thread's half: moves the clock and takes the checks that are due.
pub(crate) trait Driver: Send {
    type Desk: Desk;

    /// What a producer schedules and cancels with.
    fn desk(&self, producer: u32) -> Self::Desk;

    /// Moves the clock to `now` and adds checks that are due to `due`, about `limit` at most. True if more
    /// may be due; the next call brings them.
    fn advance(&mut self, now: Tick, limit: usize, due: &mut Vec<OrderRef>) -> bool;

    /// When to advance next: never later than the next check is due. `None` if there is no check.
    fn next_expiration(&mut self) -> Option<Tick>;
}

/// A driver whose thread can sleep until something is due.
pub(crate) trait Sleeper: Driver {
    /// Is woken once if a check is scheduled for before the next answer of `next_expiration`.
    fn register_waker(&mut self, waker: &Waker);
}

/// How many operations of one kind there were, and how long they took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    pub(crate) operations: u64,
    pub(crate) spent: Duration,
}

impl Meter {
    /// Runs `work` and counts its time. The operations are counted apart, as they may be known afterwards
    /// only.
    pub(crate) fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = work();
        self.spent += begin.elapsed();
        result
    }

    pub(crate) fn count(&mut self, operations: usize) {
        self.operations += operations as u64;
    }

    /// Nanoseconds per operation; 0 if there was none.
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

/// The time spent in an engine, by operation and summed over threads, and what came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    pub(crate) schedule: Meter,
    pub(crate) cancel: Meter,
    pub(crate) fire: Meter,
    /// How many of the cancel operations found their check pending.
    pub(crate) cancelled: u64,
}

impl Costs {
    pub(crate) fn total(&self) -> Duration {
        self.schedule.spent + self.cancel.spent + self.fire.spent
    }

    /// Whole lives of timers, from schedule to fire or cancel, per second of the engine's time.
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

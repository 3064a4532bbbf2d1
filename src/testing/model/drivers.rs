//! The drivers of a timer, for the models.

use std::sync::Arc;

use crate::timer::{self, drivers::Limits, phase::Phase};

/// The time at which a shard is due in which nothing is pending.
pub const IDLE: u64 = timer::drivers::IDLE;

/// What a driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It visits the shards that are ready.
    Visit,
    /// It sleeps until that time.
    Sleep(u64),
    /// It holds no shard.
    StandBy,
    /// It leaves.
    Leave,
}

/// The drivers of a timer with as many shards as drivers.
pub struct Crew<W>(timer::drivers::Crew<W>);

impl<W> Crew<W> {
    /// Makes drivers for these workers. The first driver holds all shards.
    pub fn new(workers: impl IntoIterator<Item = W, IntoIter: ExactSizeIterator>, patience: u64) -> Self {
        let workers = workers.into_iter();
        let limits = Limits { patience, slack: 0 };
        let board = timer::drivers::Board::new(workers.len(), workers.len(), limits, true, |_| 0);
        Self(timer::drivers::Crew::new(Arc::new(board), workers))
    }

    /// Makes the calling thread the driver's.
    pub fn take_seat(&self, driver: usize) {
        self.0.board.seat(driver).set_thread();
    }

    /// Rings the shard's bell.
    pub fn ring(&self, shard: usize) {
        self.0.board.ring(shard);
    }

    /// Begins a round.
    pub fn begin_round(&self, driver: usize, now: u64) -> Step {
        match self.0.begin_round(driver, now) {
            timer::drivers::Step::Visit => Step::Visit,
            timer::drivers::Step::Sleep(due) => Step::Sleep(due),
            timer::drivers::Step::StandBy => Step::StandBy,
            timer::drivers::Step::Leave => Step::Leave,
        }
    }

    /// Ends a round.
    pub fn end_round(&self, driver: usize) {
        self.0.board.end_round(driver);
    }

    /// Takes a worker out of the slot of a shard that the driver holds.
    pub fn take(&self, driver: usize, shard: usize) -> Option<W> {
        self.0.take(driver, shard, |_| ())
    }

    /// Takes a worker out of its slot, whichever driver holds the shard.
    pub fn take_to_close(&self, shard: usize) -> Option<W> {
        self.0.take_to_close(shard, |_| ())
    }

    /// Puts a worker back.
    pub fn put_back(&self, shard: usize, worker: W, due: u64) {
        self.0.put_back(shard, worker, due);
    }

    /// Hands a shard over.
    pub fn hand_over(&self, shard: usize, from: usize, to: usize) -> bool {
        self.0.hand_over(shard, from, to)
    }

    /// Takes a shard from another driver, without waiting.
    pub fn take_over(&self, shard: usize, from: usize, to: usize) -> bool {
        self.0.take_over(shard, from, to)
    }

    /// When the stand-by has to look at the other drivers.
    pub fn next_look(&self, driver: usize) -> u64 {
        timer::drivers::Watch::new(self.0.board.drivers()).next_look(&self.0.board, driver)
    }

    /// Waits until the driver is notified.
    pub fn wait(&self, driver: usize) {
        self.0.wait(driver, None);
    }

    /// Makes all drivers leave.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Ends the workers of the driver's shards.
    pub fn leave(&self, driver: usize, end: impl Fn(W)) {
        self.0.leave(driver, |_| (), end);
        self.0.board.seat(driver).progress.enter(Phase::Ended);
    }
}

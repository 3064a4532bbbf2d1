//! The drivers of a timer, for the models.

use std::sync::Arc;

use crate::timer::threads::{self, Notifier};

/// What a driver does next.
#[derive(Debug)]
pub enum DriverStep<W> {
    /// It visits this shard, and puts the worker back.
    Visit(usize, W),
    /// It sleeps until that time.
    Sleep(u64),
    /// It leaves.
    Leave,
}

/// The time at which a shard is due in which nothing is pending.
pub const NEVER: u64 = crate::timer::NEVER;

/// A pool with as many drivers as shards.
pub struct DriverPool<W>(Arc<threads::Pool<W>>);

impl<W> DriverPool<W> {
    /// Makes drivers for these workers. The first driver leads, the second is the watchdog. `due`
    /// says when a visit to a shard is due.
    pub fn new(
        workers: impl IntoIterator<Item = W, IntoIter: ExactSizeIterator>,
        due: impl Fn(usize) -> u64,
        patience: u64,
    ) -> Self {
        let workers = workers.into_iter();
        let shards = workers.len();
        let notifier = Notifier::new(shards, shards, (patience, 1));
        let pool = threads::Pool::new(notifier, workers);
        for shard in 0..shards {
            let worker = pool.take(shard).expect("it is in");
            assert!(pool.put_back(shard, worker, due(shard)).is_none());
        }
        Self(pool)
    }

    /// Makes the calling thread the driver's.
    pub fn set_thread(&self, driver: usize) {
        self.0.notifier.parker(driver).set_thread();
    }

    /// Requests a visit of the shard.
    pub fn request(&self, shard: usize) {
        self.0.notifier.request(shard);
    }

    /// Says what the driver does next. It has been awake since `since`.
    pub fn next(&self, driver: usize, now: u64, since: u64) -> DriverStep<W> {
        match self.0.next(driver, now, since) {
            threads::Step::Visit(shard, worker) => DriverStep::Visit(shard, worker),
            threads::Step::Sleep(until) => DriverStep::Sleep(until),
            threads::Step::Leave => DriverStep::Leave,
        }
    }

    /// Puts a worker back. Returns it if the pool has been stopped.
    pub fn put_back(&self, shard: usize, worker: W, due: u64) -> Option<W> {
        self.0.put_back(shard, worker, due)
    }

    /// Waits until the driver is notified.
    pub fn wait(&self, driver: usize) {
        self.0.notifier.parker(driver).wait(None);
    }

    /// Closes a shard's worker, if it is in.
    pub fn close(&self, shard: usize) -> bool {
        self.0.take(shard).map(|worker| self.0.put_closed(shard, worker)).is_some()
    }

    /// Makes all drivers leave.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Takes a worker that is left.
    pub fn take_to_end(&self) -> Option<W> {
        self.0.take_to_end()
    }
}

//! The shard API, for the virtual clock: shards, each with its advancer.
//!
//! A producer schedules on one shard and cancels there. By default each producer has its own shard,
//! as a larger program has one shard per core.

use shardwheel::{Advancer, Config, Key, Scheduler, Tick, shard};

use crate::clock;
use crate::engine::{Desk, Driver};
use crate::ledger::{Micros, OrderRef};

/// The single thread's half.
pub(crate) struct WheelDriver {
    advancers: Vec<Advancer<OrderRef>>,
}

impl WheelDriver {
    /// The default configuration's tick is the job's tick: 1 ms.
    pub(crate) fn new(shards: u32) -> Self {
        let advancer = |_| shard(&Config::default()).1;
        Self { advancers: (0..shards).map(advancer).collect() }
    }
}

impl Driver for WheelDriver {
    type Desk = Scheduler<OrderRef>;

    fn desk(&self, producer: u32) -> Self::Desk {
        self.advancers[producer as usize % self.advancers.len()].scheduler()
    }

    fn advance(&mut self, now: Tick, limit: usize, due: &mut Vec<OrderRef>) -> bool {
        let mut more = false;
        for advancer in &mut self.advancers {
            let before = due.len();
            // Timers that are not taken stay due, and come first at the next call.
            due.extend(advancer.advance(now).take(limit).map(|fired| fired.payload));
            more |= due.len() - before == limit;
        }
        more
    }

    fn next_expiration(&mut self) -> Option<Tick> {
        self.advancers.iter().filter_map(Advancer::next_expiration).min()
    }
}

impl Desk for Scheduler<OrderRef> {
    type Deadline = Tick;
    type Handle = Key;

    fn deadline(&self, due: Micros) -> Tick {
        clock::tick_from(due)
    }

    fn schedule(&self, deadline: Tick, order: OrderRef) -> Option<Key> {
        // Pending timers have no limit here, so only a lack of memory can refuse a timer.
        Scheduler::schedule(self, deadline, order).ok()
    }

    fn expect_cancel(&self, key: Key) {
        self.prefetch(key);
    }

    fn cancel(&self, key: Key) -> bool {
        Scheduler::cancel(self, key).is_some()
    }
}

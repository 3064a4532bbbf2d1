//! The shard API: shards, each with its advancer.
//!
//! A producer schedules on one shard and cancels there. By default each producer has its own shard,
//! as a larger program has one shard per core.

use shardwheel::{Advancer, Config, Key, Scheduler, Tick, shard};

use crate::engine::{Desk, Driver};
use crate::ledger::OrderRef;

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
    type Handle = Key;

    fn schedule(&self, deadline: Tick, order: OrderRef) -> Key {
        Scheduler::schedule(self, deadline, order).expect("the shard has no limit of pending timers")
    }

    fn expect_cancel(&self, key: Key) {
        self.prefetch(key);
    }

    fn cancel(&self, key: Key) -> bool {
        Scheduler::cancel(self, key).is_some()
    }
}

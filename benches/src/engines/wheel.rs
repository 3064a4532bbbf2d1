//! One shard of `shardwheel` as it comes: 2,048 buckets a wheel, no bound on the timers.

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

use super::structure::{Cancel, Engine, Next, Producer};
use crate::checksum::Checksum;

/// One shard: its advancer, and a scheduler to clone for each producer.
pub(crate) struct Wheel {
    scheduler: Scheduler<u64>,
    advancer: Advancer<u64>,
}

impl Engine for Wheel {
    const NAME: &'static str = "shardwheel";

    type Producer = Scheduler<u64>;

    fn new() -> Self {
        let (scheduler, advancer) = shard(&Config::default());
        Self { scheduler, advancer }
    }

    fn producer(&self) -> Scheduler<u64> {
        self.scheduler.clone()
    }

    #[inline]
    fn advance(&mut self, now: u64, fired: &mut Checksum) {
        for timer in self.advancer.advance(now) {
            fired.add(timer.deadline, timer.payload);
        }
    }
}

impl Next for Wheel {
    #[inline]
    fn next_expiration(&self) -> Option<u64> {
        self.advancer.next_expiration()
    }
}

impl Producer for Scheduler<u64> {
    type Handle = Key;

    #[inline]
    fn schedule(&self, deadline: u64, payload: u64) -> Key {
        self.schedule(deadline, payload)
            .unwrap_or_else(|refused| panic!("a shard refused a timer: {refused}"))
    }
}

impl Cancel for Scheduler<u64> {
    #[inline]
    fn cancel(&self, key: Key) -> Option<u64> {
        self.cancel(key)
    }
}

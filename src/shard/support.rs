//! Helpers for unit tests of whole shards.

use super::{Advancer, Key, Scheduler};
use crate::{Config, Tick, shard};

pub(crate) type Shard = (Scheduler<u32>, Advancer<u32>);

/// Makes a shard with wheels of four buckets.
pub(crate) fn small() -> Shard {
    of_wheels(4)
}

/// Makes a shard with wheels of `size` buckets.
pub(crate) fn of_wheels(size: usize) -> Shard {
    shard(&Config::builder().wheel_size(size).build().expect("a power of two"))
}

/// Schedules `count` timers for one tick.
pub(crate) fn schedule(scheduler: &Scheduler<u32>, deadline: Tick, count: usize) -> Vec<Key> {
    (0..count).map(|_| scheduler.schedule(deadline, 0).expect("open")).collect()
}

/// Cancels timers that are pending.
pub(crate) fn cancel(scheduler: &Scheduler<u32>, keys: &[Key]) {
    keys.iter().for_each(|&key| assert!(scheduler.cancel(key).is_some()));
}

//! A shard for payloads of a ledger, and the ends that its advancer brings to them.

use shardwheel::{Advancer, Config, Key, Scheduler, Tick, shard};

use crate::support::ledger::{End, Payload};

/// A timer as the threads pass it among themselves, its key and its payload's number: each holder
/// may cancel or reschedule it.
pub(super) type Timer = (Key, usize);

/// A shard for payloads of a ledger.
pub(super) fn open(wheel_size: usize) -> (Scheduler<Payload>, Advancer<Payload>) {
    shard(&Config::builder().wheel_size(wheel_size).build().expect("a wheel size that is a power of two"))
}

/// Advances to `now` and takes at most `budget` of the timers that are due.
pub(super) fn take(advancer: &mut Advancer<Payload>, now: Tick, budget: usize) {
    let now = advancer.scheduler().now().max(now);
    for fired in advancer.advance(now).take(budget) {
        assert!(fired.deadline <= now, "{} fired at {now}", fired.deadline);
        fired.payload.fire_at(now);
    }
}

pub(super) fn hand_back(advancer: Advancer<Payload>) {
    advancer.into_pending().for_each(|(_, payload)| payload.end(End::HandedBack));
}

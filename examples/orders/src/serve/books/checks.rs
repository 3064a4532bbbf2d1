//! When each order's check is due: a wheel with a timer for each order in memory.

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

pub(super) struct Checks {
    scheduler: Scheduler<u64>,
    advancer: Advancer<u64>,
    /// When the wheel's clock began, in ms.
    began: u64,
}

impl Checks {
    pub(super) fn new(began: u64) -> Self {
        let (scheduler, advancer) = shard(&Config::default());
        Self { scheduler, advancer, began }
    }

    pub(super) fn began(&self) -> u64 {
        self.began
    }

    /// Enters an order's check.
    pub(super) fn enter(&mut self, order_id: u64, due: u64) -> Key {
        // The wheel has no limit of its own, and without memory the caller's map would end the program.
        let timer = self.scheduler.schedule(due.saturating_sub(self.began), order_id);
        timer.expect("there is memory for a timer")
    }

    pub(super) fn cancel(&self, check: Key) {
        self.scheduler.cancel(check);
    }

    /// Takes out of the wheel what was due before `now`, `limit` orders at most.
    pub(super) fn due(&mut self, now: u64, limit: usize) -> Vec<u64> {
        let Some(tick) = now.checked_sub(self.began + 1) else { return Vec::new() };
        self.advancer.advance(tick).take(limit).map(|fired| fired.payload).collect()
    }

    /// When the wheel has something next, or a little earlier, in ms.
    pub(super) fn next(&self) -> Option<u64> {
        self.advancer.next_expiration().map(|tick| self.began.saturating_add(tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_made_after_their_instant() {
        let mut checks = Checks::new(100);
        let keys = [(1, 100), (2, 120), (3, 150)].map(|(order_id, due)| checks.enter(order_id, due));
        assert!(checks.due(100, 9).is_empty(), "a payment at this instant counts");
        assert_eq!((checks.due(101, 9), checks.next().is_some_and(|next| next <= 120)), (vec![1], true));
        // What was due before the wheel began, or before the present, is due at once.
        checks.enter(4, 7);
        assert_eq!(checks.due(101, 9), [4]);
        checks.cancel(keys[1]);
        assert_eq!((checks.due(u64::MAX, 9), checks.next()), (vec![3], None));
    }
}

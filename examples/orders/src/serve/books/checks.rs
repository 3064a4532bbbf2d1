//! When each order's check is due: a wheel with a timer for each order, and a queue of the checks that
//! fell due before it began.
//!
//! After an absence millions of checks may be overdue. In the wheel they would all come before the next
//! check that falls due. Beside it, the caller takes from both by turns.

use std::collections::VecDeque;

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

pub(super) struct Checks {
    scheduler: Scheduler<u64>,
    advancer: Advancer<u64>,
    /// When the wheel's clock began, in ms.
    began: u64,
    /// Orders whose checks were due before that, in the order in which they were entered.
    overdue: VecDeque<u64>,
}

impl Checks {
    pub(super) fn new(began: u64) -> Self {
        let (scheduler, advancer) = shard(&Config::default());
        Self { scheduler, advancer, began, overdue: VecDeque::new() }
    }

    pub(super) fn began(&self) -> u64 {
        self.began
    }

    /// Enters an order's check. An overdue one has no key, since it cannot be cancelled.
    pub(super) fn enter(&mut self, order_id: u64, due: u64) -> Option<Key> {
        let Some(deadline) = due.checked_sub(self.began) else {
            self.overdue.push_back(order_id);
            return None;
        };
        // The wheel has no limit of its own, and without memory the caller's map would end the program.
        Some(self.scheduler.schedule(deadline, order_id).expect("there is memory for a timer"))
    }

    pub(super) fn cancel(&self, check: Option<Key>) {
        if let Some(check) = check {
            self.scheduler.cancel(check);
        }
    }

    /// Takes out of the wheel what was due before `now`, `limit` orders at most.
    pub(super) fn due(&mut self, now: u64, limit: usize) -> Vec<u64> {
        let Some(tick) = now.checked_sub(self.began + 1) else { return Vec::new() };
        self.advancer.advance(tick).take(limit).map(|fired| fired.payload).collect()
    }

    /// Takes out of the queue what is overdue, `limit` orders at most.
    pub(super) fn overdue(&mut self, limit: usize) -> Vec<u64> {
        let taken = self.overdue.drain(..limit.min(self.overdue.len())).collect();
        if self.overdue.is_empty() {
            // It may have held millions.
            self.overdue = VecDeque::new();
        }
        taken
    }

    pub(super) fn is_overdue(&self) -> bool {
        !self.overdue.is_empty()
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
    fn what_is_overdue_is_not_before_what_falls_due() {
        let mut checks = Checks::new(100);
        let keys = [(1, 7), (2, 99), (3, 100), (4, 150)].map(|(order_id, due)| checks.enter(order_id, due));
        assert_eq!(keys.map(|key| key.is_some()), [false, false, true, true]);
        assert!(checks.due(100, 9).is_empty(), "a payment at this instant counts");
        assert_eq!((checks.due(101, 9), checks.next().is_some_and(|next| next <= 150)), (vec![3], true));
        assert_eq!((checks.overdue(1), checks.is_overdue()), (vec![1], true));
        checks.cancel(keys[3]);
        assert_eq!((checks.due(u64::MAX, 9), checks.overdue(9)), (vec![], vec![2]));
        assert!(!checks.is_overdue() && checks.next().is_none());
    }
}

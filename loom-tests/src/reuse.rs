//! A node is reused in place. The races are the same whether its producer holds the node, or has
//! left it and remembers it.

use shardwheel::{Advancer, Key, Scheduler, Tick};

use crate::{Ledger, Payload, model, thread};

/// Makes a shard.
type Open = fn() -> (Scheduler<Payload>, Advancer<Payload>);

/// Cancels the timer, and schedules timer 1 for `again`.
pub fn replace(scheduler: &Scheduler<Payload>, ledger: &Ledger, key: Key, again: Tick) {
    ledger.cancelled(scheduler.cancel(key));
    scheduler.schedule(again, ledger.payload(1)).unwrap();
}

/// A thread replaces a timer, another thread cancels with the old key, and the clock advances.
pub fn reuse(open: Open, deadline: Tick, again: Tick, clock: &'static [Tick]) {
    model(move || {
        let ledger = Ledger::new(2);
        let (scheduler, mut advancer) = open();
        let key = scheduler.schedule(deadline, ledger.payload(0)).unwrap();
        let both = (scheduler.clone(), ledger.clone());
        let reuser = thread::spawn(move || replace(&both.0, &both.1, key, again));
        let both = (scheduler.clone(), ledger.clone());
        // The old key must not affect the new timer.
        let stale = thread::spawn(move || both.1.cancelled(both.0.cancel(key)));
        for &now in clock {
            ledger.advance(&mut advancer, now);
        }
        reuser.join().unwrap();
        stale.join().unwrap();
        let last = *clock.last().unwrap();
        ledger.advance(&mut advancer, last);
        assert_eq!(ledger.has_fired(1), again <= last, "{again} at {last}");
        ledger.advance(&mut advancer, 20);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// A timer is put off, so the flush of its bucket finds it early and places it again. Meanwhile the
/// timer is cancelled, and its node is wanted for a tick after that bucket's and before the new
/// bucket's.
pub fn reuse_of_one_placed_anew(open: Open) {
    model(move || {
        let ledger = Ledger::new(2);
        let (scheduler, mut advancer) = open();
        let key = scheduler.schedule(1, ledger.payload(0)).unwrap();
        assert_eq!(scheduler.reschedule(key, 6), Some(key));
        let both = (scheduler.clone(), ledger.clone());
        let reuser = thread::spawn(move || replace(&both.0, &both.1, key, 2));
        ledger.advance(&mut advancer, 1);
        reuser.join().unwrap();
        ledger.advance(&mut advancer, 2);
        assert!(ledger.has_fired(1));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

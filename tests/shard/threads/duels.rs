//! Duels: two threads want the same timers.

use shardwheel::{Advancer, Scheduler, Tick};

use super::work::{times, together};
use crate::support::ledger::{End, Ledger, Payload};

use super::ends::{Timer, open, take};

/// Timers in a round of a duel; fewer under Miri, which is slow.
const BATCH: usize = if cfg!(miri) { 16 } else { 64 };

/// Ticks of a round, from its start: timers are due at `DUE`; some are rescheduled to `NEAR` or to
/// `FAR`.
const NEAR: Tick = 50;
const DUE: Tick = 100;
const FAR: Tick = 1_100;
const ROUND: Tick = 10_000;

/// What a side of a duel works with.
struct Side<'s> {
    scheduler: &'s Scheduler<Payload>,
    ledger: &'s Ledger,
    base: Tick,
}

impl Side<'_> {
    fn set(&self) -> Timer {
        let payload = self.ledger.payload_due(self.base + DUE);
        let id = payload.id();
        (self.scheduler.schedule(self.base + DUE, payload).expect("the shard is open"), id)
    }

    fn cancel(&self, (key, id): Timer) {
        let Some(payload) = self.scheduler.cancel(key) else { return };
        assert_eq!(payload.id(), id);
        payload.end(End::Cancelled);
    }

    fn reschedule(&self, (key, id): Timer, to: Tick) -> Option<Timer> {
        let key = self.scheduler.reschedule(key, self.base + to)?;
        self.ledger.due(id, self.base + to);
        Some((key, id))
    }
}

/// In each round `left` handles each timer of a batch in one thread, while `right` uses the
/// advancer and the batch in another. Then the rest fires. At the end `check` checks the ledger.
fn duel(
    left: impl Fn(&Side<'_>, Timer) + Sync,
    right: impl Fn(&Side<'_>, &mut Advancer<Payload>, &[Timer]),
    check: impl Fn(&Ledger),
) {
    let rounds = times(150);
    let ledger = Ledger::with_capacity(rounds * BATCH);
    let (scheduler, mut advancer) = open(16);
    for round in 0..rounds {
        let side = Side { scheduler: &scheduler, ledger: &ledger, base: round as Tick * ROUND };
        let timers = (0..BATCH).map(|_| side.set()).collect::<Vec<_>>();
        let order = there_or_back(&timers, round);
        together(|| order.for_each(|timer| left(&side, timer)), || right(&side, &mut advancer, &timers));
        [NEAR, DUE, FAR].iter().for_each(|tick| take(&mut advancer, side.base + tick, usize::MAX));
        assert_eq!(scheduler.len(), 0);
    }
    ledger.check_all_ended();
    check(&ledger);
}

/// The timers from either end in turn, so that both sides meet, in whichever order the advancer
/// takes a batch.
fn there_or_back(timers: &[Timer], round: usize) -> impl Iterator<Item = Timer> + Send + '_ {
    let last = timers.len() - 1;
    (0..timers.len()).map(move |i| timers[if round.is_multiple_of(2) { i } else { last - i }])
}

/// The right side fires the due timers.
fn fire(side: &Side<'_>, advancer: &mut Advancer<Payload>, _: &[Timer]) {
    take(advancer, side.base + DUE, usize::MAX);
}

/// The right side moves the clock far enough for cascades, and not far enough for timers to fire.
fn cascade(side: &Side<'_>, advancer: &mut Advancer<Payload>, _: &[Timer]) {
    (0..NEAR).step_by(3).for_each(|tick| take(advancer, side.base + tick, usize::MAX));
}

/// The right side cancels.
fn cancel(side: &Side<'_>, _: &mut Advancer<Payload>, timers: &[Timer]) {
    timers.iter().for_each(|&timer| side.cancel(timer));
}

/// The canceller or the advancer gets the payload.
#[test]
fn cancel_races_fire() {
    duel(|side, timer| side.cancel(timer), fire, Ledger::check_exact);
}

/// A timer that is being cascaded is pending, so the canceller gets it.
#[test]
fn cancel_races_cascade() {
    duel(|side, timer| side.cancel(timer), cascade, |ledger| assert_eq!(ledger.count(End::Fired), 0));
}

/// Exactly one of two cancellers gets the payload.
#[test]
fn two_cancels_race() {
    duel(|side, timer| side.cancel(timer), cancel, |ledger| assert_eq!(ledger.count(End::Fired), 0));
}

/// The timer fires at its old deadline, or it is postponed and fires at the new one; a postponed
/// timer can be cancelled.
#[test]
fn extend_races_fire() {
    let extend = |side: &Side<'_>, timer: Timer| {
        let Some((key, id)) = side.reschedule(timer, FAR) else { return };
        if id % 2 == 0 {
            side.scheduler.cancel(key).expect("it was put off").end(End::Cancelled);
        }
    };
    duel(extend, fire, Ledger::check_exact);
}

/// A timer that is being cascaded can be postponed, and does not fire before its new deadline.
#[test]
fn extend_races_cascade() {
    let extend = |side: &Side<'_>, timer| assert!(side.reschedule(timer, FAR).is_some());
    duel(extend, cascade, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == FAR));
    });
}

/// The timer is postponed, or it is cancelled: one of the two calls succeeds at last.
#[test]
fn extend_races_cancel() {
    let extend = |side: &Side<'_>, timer| {
        side.reschedule(timer, FAR);
    };
    duel(extend, cancel, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == FAR), "neither put off nor cancelled");
    });
}

/// Two threads postpone the timer to the same tick: it is one timer, and fires there.
#[test]
fn two_extends_race() {
    let extend = |side: &Side<'_>, timer| {
        side.reschedule(timer, FAR);
    };
    let right = |side: &Side<'_>, _: &mut Advancer<Payload>, timers: &[Timer]| {
        timers.iter().for_each(|&timer| extend(side, timer));
    };
    duel(extend, right, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == FAR), "neither could put it off");
    });
}

/// The timer fires as it is, or it is rescheduled to an earlier tick and fires there.
#[test]
fn shorten_races_fire() {
    let shorten = |side: &Side<'_>, timer| {
        side.reschedule(timer, NEAR);
    };
    duel(shorten, fire, |ledger| assert_eq!(ledger.count(End::Fired), ledger.made()));
}

/// A timer that is being cascaded can be rescheduled to an earlier tick, and fires there.
#[test]
fn shorten_races_cascade() {
    let shorten = |side: &Side<'_>, timer| assert!(side.reschedule(timer, NEAR).is_some());
    duel(shorten, cascade, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == NEAR));
    });
}

/// The timer is rescheduled to an earlier tick, or it is cancelled: one of the two calls succeeds
/// at last.
#[test]
fn shorten_races_cancel() {
    let shorten = |side: &Side<'_>, timer| {
        side.reschedule(timer, NEAR);
    };
    duel(shorten, cancel, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == NEAR), "neither brought nearer nor cancelled");
    });
}

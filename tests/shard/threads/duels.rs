//! Duels: two sides reach for the same timers.

use shardwheel::{Advancer, Scheduler, Tick};

use super::work::{times, together};
use crate::support::ledger::{End, Ledger, Payload};

use super::ends::{Timer, open, take};

/// Timers in a round of a duel; fewer under Miri, which is slow.
const BATCH: usize = if cfg!(miri) { 16 } else { 64 };

/// The ticks of a round, counted from its start: timers are due at `DUE`; some are brought nearer, to `NEAR`,
/// or put off, to `FAR`.
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
        (self.scheduler.schedule(self.base + DUE, payload).expect("open"), id)
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

/// Has `left` treat each timer of a batch in one thread while `right` does as it likes with the advancer and
/// the batch in another, round after round. What is left then fires, and the ledger is handed out for checks.
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

/// The timers from either end by turns, so that two sides meet, whichever way the advancer takes a batch.
fn there_or_back(timers: &[Timer], round: usize) -> impl Iterator<Item = Timer> + Send + '_ {
    let last = timers.len() - 1;
    (0..timers.len()).map(move |i| timers[if round.is_multiple_of(2) { i } else { last - i }])
}

/// The right side fires what is due.
fn fire(side: &Side<'_>, advancer: &mut Advancer<Payload>, _: &[Timer]) {
    take(advancer, side.base + DUE, usize::MAX);
}

/// The right side moves the clock close enough for cascades, not far enough for anything to fire.
fn cascade(side: &Side<'_>, advancer: &mut Advancer<Payload>, _: &[Timer]) {
    (0..NEAR).step_by(3).for_each(|tick| take(advancer, side.base + tick, usize::MAX));
}

/// The right side cancels.
fn cancel(side: &Side<'_>, _: &mut Advancer<Payload>, timers: &[Timer]) {
    timers.iter().for_each(|&timer| side.cancel(timer));
}

/// One of them gets the payload.
#[test]
fn cancel_races_fire() {
    duel(|side, timer| side.cancel(timer), fire, Ledger::check_exact);
}

/// A timer that is being cascaded is pending, so the canceller gets it.
#[test]
fn cancel_races_cascade() {
    duel(|side, timer| side.cancel(timer), cascade, |ledger| assert_eq!(ledger.count(End::Fired), 0));
}

/// One of two cancellers gets the payload, and one of them does.
#[test]
fn two_cancels_race() {
    duel(|side, timer| side.cancel(timer), cancel, |ledger| assert_eq!(ledger.count(End::Fired), 0));
}

/// Either it fires when it was due, or it is put off and fires then; and what was put off can be cancelled.
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

/// A timer that is being cascaded can be put off, and does not fire before its new deadline.
#[test]
fn extend_races_cascade() {
    let extend = |side: &Side<'_>, timer| assert!(side.reschedule(timer, FAR).is_some());
    duel(extend, cascade, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == FAR));
    });
}

/// One of them has it: if it cannot be put off it is cancelled.
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

/// Two threads put it off to the same tick: one timer is left, and fires there.
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

/// One of them has it: either it fires as it is, or it is brought nearer and fires then.
#[test]
fn shorten_races_fire() {
    let shorten = |side: &Side<'_>, timer| {
        side.reschedule(timer, NEAR);
    };
    duel(shorten, fire, |ledger| assert_eq!(ledger.count(End::Fired), ledger.made()));
}

/// A timer that is being cascaded can be brought nearer, and fires at its new deadline.
#[test]
fn shorten_races_cascade() {
    let shorten = |side: &Side<'_>, timer| assert!(side.reschedule(timer, NEAR).is_some());
    duel(shorten, cascade, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == NEAR));
    });
}

/// One of them has it: if it cannot be brought nearer it is cancelled.
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

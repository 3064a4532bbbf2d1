//! Duels: two threads want the same timers.

use shardwheel::{Advancer, Scheduler, Tick};

use super::work::{Timer, open, take, times, together};
use crate::support::ledger::{End, Ledger, Payload};

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
fn duel(left: Left, right: Right, check: fn(&Ledger)) {
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

type Left = fn(&Side<'_>, Timer);
type Right = fn(&Side<'_>, &mut Advancer<Payload>, &[Timer]);

const CANCEL: Left = |side, timer| side.cancel(timer);
const EXTEND: Left = |side, timer| _ = side.reschedule(timer, FAR);
const SHORTEN: Left = |side, timer| _ = side.reschedule(timer, NEAR);

/// A timer that was put off can be cancelled.
const EXTEND_AND_CANCEL: Left = |side, timer| {
    if let Some((key, id)) = side.reschedule(timer, FAR)
        && id % 2 == 0
    {
        side.scheduler.cancel(key).expect("it was put off").end(End::Cancelled);
    }
};

/// The right side fires the due timers.
const FIRE: Right = |side, advancer, _| take(advancer, side.base + DUE, usize::MAX);

/// The right side moves the clock far enough for cascades, and not far enough for timers to fire.
const CASCADE: Right =
    |side, advancer, _| (0..NEAR).step_by(3).for_each(|tick| take(advancer, side.base + tick, usize::MAX));

const ALSO_CANCEL: Right = |side, _, timers| timers.iter().for_each(|&timer| side.cancel(timer));
const ALSO_EXTEND: Right = |side, _, timers| timers.iter().for_each(|&timer| _ = side.reschedule(timer, FAR));

fn none_fires(ledger: &Ledger) {
    assert_eq!(ledger.count(End::Fired), 0);
}

fn all_fire(ledger: &Ledger) {
    assert_eq!(ledger.count(End::Fired), ledger.made());
}

/// What fires does so at the new deadline: one of the two calls has succeeded.
fn fires_at<const TICK: Tick>(ledger: &Ledger) {
    ledger.check_exact();
    assert!(ledger.fired().all(|(due, _)| due % ROUND == TICK), "neither side had the timer");
}

fn all_fire_at<const TICK: Tick>(ledger: &Ledger) {
    fires_at::<TICK>(ledger);
    all_fire(ledger);
}

/// Defines a test for each duel, so that each has a name of its own where it fails, or runs alone.
macro_rules! duels {
    ($($(#[$doc:meta])* $name:ident: $left:expr, $right:expr, $check:expr;)+) => {
        $($(#[$doc])*
        #[test]
        fn $name() {
            duel($left, $right, $check);
        })+
    };
}

duels! {
    /// The canceller or the advancer gets the payload.
    cancel_races_fire: CANCEL, FIRE, Ledger::check_exact;
    /// A timer that is being cascaded is pending, so the canceller gets it.
    cancel_races_cascade: CANCEL, CASCADE, none_fires;
    /// Exactly one of two cancellers gets the payload.
    two_cancels_race: CANCEL, ALSO_CANCEL, none_fires;
    /// The timer fires at its old deadline, or it is postponed and fires at the new one.
    extend_races_fire: EXTEND_AND_CANCEL, FIRE, Ledger::check_exact;
    /// A timer that is being cascaded can be postponed, and does not fire before its new deadline.
    extend_races_cascade: EXTEND, CASCADE, all_fire_at::<FAR>;
    /// The timer is postponed, or it is cancelled: one of the two calls succeeds at last.
    extend_races_cancel: EXTEND, ALSO_CANCEL, fires_at::<FAR>;
    /// Two threads postpone the timer to the same tick: it is one timer, and fires there.
    two_extends_race: EXTEND, ALSO_EXTEND, all_fire_at::<FAR>;
    /// The timer fires as it is, or it is rescheduled to an earlier tick and fires there.
    shorten_races_fire: SHORTEN, FIRE, all_fire;
    /// A timer that is being cascaded can be rescheduled to an earlier tick, and fires there.
    shorten_races_cascade: SHORTEN, CASCADE, all_fire_at::<NEAR>;
    /// The timer is rescheduled to an earlier tick, or it is cancelled.
    shorten_races_cancel: SHORTEN, ALSO_CANCEL, fires_at::<NEAR>;
}

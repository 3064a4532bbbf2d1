//! Many timers, due evenly over some seconds: how late they fire, and what placing and firing them takes.
//!
//! Two threads place them, each every second one, in a seeded random order, beginning [`LEAD`] before the first
//! deadline. A timer is given the very `Instant` that its lateness is counted from.

use std::thread;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use shardwheel_benches::names::LATE;

use crate::engine::Live;
use crate::ledger::{Lateness, Ledger};
use crate::sections::Figures;

pub(crate) const LOST: &str = "timers lost";
pub(crate) const AGAIN: &str = "timers fired again";
pub(crate) const EARLY: &str = "timers early";
pub(crate) const FIRING: &str = "processor time from all placed to all fired, ms";
const MAX: &str = "late, the last of all, µs";
const PLACED: &str = "placing, time on the wall, ms";
const PLACING: &str = "placing, processor time, ms";

/// From the beginning of placing to the first deadline.
pub(crate) const LEAD: Duration = Duration::from_secs(1);

/// How long after the last deadline a timer counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many threads place.
const PLACERS: usize = 2;

/// How many timers, and when they are due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// How many timers.
    pub(crate) timers: usize,
    /// From the beginning of placing to the first deadline.
    pub(crate) lead: Duration,
    /// From the first deadline to the last.
    pub(crate) span: Duration,
}

impl Plan {
    /// When a timer is due, counted from the beginning of placing. A thread's timers have consecutive numbers,
    /// so that their places in the ledger lie together; the deadlines of the threads interleave.
    fn due(&self, timer: usize) -> Duration {
        let share = self.share();
        let rank = timer % share * PLACERS + timer / share;
        self.lead + self.span.mul_f64(rank as f64 / self.timers as f64)
    }

    /// How many timers a thread places; the last one may have fewer.
    fn share(&self) -> usize {
        self.timers.div_ceil(PLACERS)
    }

    /// The timers of each thread and when they are due, in the order in which it places them.
    fn orders(&self) -> Vec<Vec<(usize, Duration)>> {
        let mut timers = (0..self.timers).map(|timer| (timer, self.due(timer))).collect::<Vec<_>>();
        let mut rng = fastrand::Rng::with_seed(self.timers as u64);
        let shuffled = |share: &mut [_]| {
            rng.shuffle(share);
            share.to_vec()
        };
        timers.chunks_mut(self.share()).map(shuffled).collect()
    }
}

/// What a run shows.
pub(crate) struct Run {
    placed: Duration,
    placing: Duration,
    firing: Duration,
    pub(crate) lateness: Lateness,
}

/// Places all timers of `plan` and waits until they have fired.
pub(crate) fn run<E: Live>(tick: Duration, plan: &Plan) -> Run {
    let engine = E::start(tick);
    let orders = plan.orders();
    let ledger = Ledger::leak(plan.timers);
    let (spent, begin) = (ProcessTime::now(), Instant::now());
    let kept = place(&engine, begin, ledger, &orders);
    let (placing, placed) = (spent.elapsed(), begin.elapsed());
    let spent = ProcessTime::now();
    ledger.wait(begin + plan.lead + plan.span, PATIENCE);
    let firing = spent.elapsed();
    let lateness = ledger.verdict(|timer| begin + plan.due(timer));
    drop(kept);
    Run { placed, placing, firing, lateness }
}

/// Has each thread place its timers; returns what has to be kept.
fn place<E: Live>(
    engine: &E,
    begin: Instant,
    ledger: &'static Ledger,
    orders: &[Vec<(usize, Duration)>],
) -> Vec<Vec<E::Kept>> {
    let place_all = |order: &[(usize, Duration)]| {
        let _entered = engine.enter();
        let mut kept = Vec::with_capacity(order.len());
        kept.extend(order.iter().map(|&(timer, due)| engine.place(begin + due, ledger.note(timer))));
        kept
    };
    let place_all = &place_all;
    thread::scope(|scope| {
        let placers = orders.iter().map(|order| scope.spawn(move || place_all(order))).collect::<Vec<_>>();
        placers.into_iter().map(|placer| placer.join().expect("a placing thread panicked")).collect()
    })
}

/// A run, as rows of the table.
pub(crate) fn figures<E: Live>(tick: Duration, plan: &Plan) -> Figures {
    let run = run::<E>(tick, plan);
    if run.placed > plan.lead {
        eprintln!("{}: placing took {:?}, longer than the first timers had", E::NAME, run.placed);
    }
    let late = &run.lateness;
    let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
    let counts = [(LOST, late.lost), (AGAIN, late.again), (EARLY, late.early)];
    let counts = counts.map(|(what, count)| (what, count as f64));
    let quantiles = LATE.map(|(share, what)| (what, late.quantile(share)));
    let costs = [
        (MAX, late.max()),
        (PLACED, millis(run.placed)),
        (PLACING, millis(run.placing)),
        (FIRING, millis(run.firing)),
    ];
    let rows = counts.into_iter().chain(quantiles).chain(costs);
    rows.map(|(what, figure)| (what.to_owned(), figure)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::async_io::AsyncIo;
    use crate::futures_timer::FuturesTimer;
    use crate::heap_thread::{Exact, Ticked};
    use crate::pingora::Pingora;
    #[cfg(tokio_unstable)]
    use crate::tokio_time::TokioAlternative;
    use crate::tokio_time::TokioTime;
    use crate::wheel::{OneShard, Wheel, WheelSleeps};

    const MILLISECOND: Duration = Duration::from_millis(1);

    const PLAN: Plan =
        Plan { timers: 2001, lead: Duration::from_millis(20), span: Duration::from_millis(50) };

    /// Where the machine is busy, deadlines may have passed before the engine hears of them; that makes no timer
    /// early or lost either.
    fn all_fire_and_none_early<E: Live>() {
        let Run { lateness, .. } = run::<E>(MILLISECOND, &PLAN);
        assert_eq!((lateness.lost, lateness.again, lateness.early), (0, 0, 0), "{}", E::NAME);
    }

    #[test]
    fn all_of_every_engine_fire_and_none_early() {
        all_fire_and_none_early::<Wheel>();
        all_fire_and_none_early::<WheelSleeps>();
        all_fire_and_none_early::<OneShard>();
        all_fire_and_none_early::<TokioTime>();
        all_fire_and_none_early::<Exact>();
        all_fire_and_none_early::<Ticked>();
        #[cfg(tokio_unstable)]
        all_fire_and_none_early::<TokioAlternative>();
        all_fire_and_none_early::<AsyncIo>();
        all_fire_and_none_early::<FuturesTimer>();
    }

    #[test]
    fn a_peer_that_fires_early_is_measured_all_the_same() {
        // Time enough to place all before the first is due: it may lose one that it fires while it is polled.
        let plan = Plan { lead: LEAD, ..PLAN };
        let Run { lateness, .. } = run::<Pingora>(MILLISECOND, &plan);
        assert_eq!((lateness.lost, lateness.again), (0, 0));
        assert!(lateness.early < PLAN.timers as u64, "it is early in one millisecond of ten");
    }

    #[test]
    fn deadlines_are_even() {
        let mut dues = (0..PLAN.timers).map(|timer| PLAN.due(timer)).collect::<Vec<_>>();
        dues.sort_unstable();
        assert_eq!(dues[0], PLAN.lead);
        let step = PLAN.span / PLAN.timers as u32;
        let even = |pair: &[Duration]| (pair[1] - pair[0]).abs_diff(step) < Duration::from_nanos(3);
        assert!(dues.windows(2).all(even));
    }

    #[test]
    fn every_timer_is_placed_once() {
        let orders = PLAN.orders();
        assert_eq!(orders.len(), PLACERS);
        let mut timers = orders.concat();
        timers.sort_unstable();
        assert!(timers.into_iter().eq((0..PLAN.timers).map(|timer| (timer, PLAN.due(timer)))));
    }
}

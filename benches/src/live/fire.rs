//! Many timers, due evenly over some seconds: how late they fire, and what placing and firing take.
//!
//! Two threads place them, each every second timer, in a seeded random order. Placing begins
//! [`LEAD`] before the first deadline. A timer gets the `Instant` that its lateness counts from.

use std::thread;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

use super::ledger::{Lateness, Ledger};
use super::timer::{Live, MILLISECOND};
use crate::names::LATE;
use crate::suite::{Outcome, Task};

pub(super) const NEVER: [&str; 3] = ["timers lost", "timers fired again", "timers early"];
pub(super) const FIRING: &str = "processor time from all placed to all fired, ms";

/// From the start of placing to the first deadline.
const LEAD: Duration = Duration::from_secs(1);

/// A timer is lost if it has not fired so long after the last deadline.
const PATIENCE: Duration = Duration::from_secs(30);

const PLACERS: usize = 2;

/// How many timers there are, and when they are due.
#[derive(Clone, Copy)]
struct Plan {
    timers: usize,
    /// From the start of placing to the first deadline.
    lead: Duration,
    /// From the first deadline to the last.
    span: Duration,
}

impl Plan {
    /// Returns when a timer is due, from the start of placing. A thread's timers have consecutive
    /// numbers, so that their places in the ledger are adjacent; the threads' deadlines interleave.
    fn due(&self, timer: usize) -> Duration {
        let share = self.share();
        let rank = timer % share * PLACERS + timer / share;
        self.lead + self.span.mul_f64(rank as f64 / self.timers as f64)
    }

    /// Returns how many timers a thread places; the last thread may have fewer.
    fn share(&self) -> usize {
        self.timers.div_ceil(PLACERS)
    }

    /// Returns the timers of each thread with their deadlines, in the order of placing.
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

struct Fired {
    placed: Duration,
    placing: Duration,
    firing: Duration,
    lateness: Lateness,
}

/// Places all timers of `plan` and waits until they have fired.
fn fire<E: Live>(tick: Duration, plan: &Plan) -> Fired {
    let engine = E::start(tick);
    let orders = plan.orders();
    let ledger = Ledger::leak(plan.timers);
    let (spent, begin) = (ProcessTime::now(), Instant::now());
    let kept = place(&engine, begin, ledger, &orders);
    let (placing, placed) = (spent.elapsed(), begin.elapsed());
    let spent = ProcessTime::now();
    ledger.wait(begin + plan.lead + plan.span, PATIENCE);
    let firing = spent.elapsed();
    let lateness = ledger.lateness(|timer| begin + plan.due(timer));
    drop(kept);
    Fired { placed, placing, firing, lateness }
}

/// Lets each thread place its timers; returns what has to be kept.
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

/// Fires with ticks of 1 ms.
pub(super) fn coarse<E: Live>(task: &Task) -> Outcome {
    measure::<E>(task, MILLISECOND)
}

/// Fires with ticks of 100 µs.
pub(super) fn fine<E: Live>(task: &Task) -> Outcome {
    measure::<E>(task, MILLISECOND / 10)
}

fn measure<E: Live>(task: &Task, tick: Duration) -> Outcome {
    let fired = fire::<E>(tick, &Plan { timers: task.timers, lead: LEAD, span: task.span });
    if fired.placed > LEAD {
        eprintln!("{}: placing took {:?}, longer than the first timers had", E::NAME, fired.placed);
    }
    let (late, mut outcome) = (&fired.lateness, Outcome::default());
    for (what, count) in NEVER.into_iter().zip([late.lost, late.again, late.early]) {
        outcome.figure(what, count as f64);
    }
    LATE.into_iter().for_each(|(share, what)| outcome.figure(what, late.quantile(share)));
    outcome.figure("late, the last of all, µs", late.quantile(1.0));
    for (what, time) in [
        ("placing, time on the wall, ms", fired.placed),
        ("placing, processor time, ms", fired.placing),
        (FIRING, fired.firing),
    ] {
        outcome.figure(what, time.as_secs_f64() * 1e3);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::heap_thread::{Exact, Ticked};
    use crate::live::shardwheel::{OneShard, Shardwheel, ShardwheelSleeps};
    use crate::live::tokio::Tokio;

    const PLAN: Plan =
        Plan { timers: 2001, lead: Duration::from_millis(20), span: Duration::from_millis(50) };

    /// On a busy machine a deadline may pass before the engine gets its timer; the timer is neither
    /// early nor lost.
    fn all_fire_and_none_early<E: Live>() {
        let late = fire::<E>(MILLISECOND, &PLAN).lateness;
        assert_eq!((late.lost, late.again, late.early), (0, 0, 0), "{}", E::NAME);
    }

    #[test]
    fn all_timers_of_every_engine_fire_and_none_early() {
        all_fire_and_none_early::<Shardwheel>();
        all_fire_and_none_early::<ShardwheelSleeps>();
        all_fire_and_none_early::<OneShard>();
        all_fire_and_none_early::<Tokio>();
        all_fire_and_none_early::<Exact>();
        all_fire_and_none_early::<Ticked>();
    }

    #[test]
    fn deadlines_are_even_and_each_timer_is_placed_once() {
        let mut timers = PLAN.orders().concat();
        timers.sort_unstable();
        assert!(timers.iter().copied().eq((0..PLAN.timers).map(|timer| (timer, PLAN.due(timer)))));
        timers.sort_unstable_by_key(|timer| timer.1);
        assert_eq!(timers[0].1, PLAN.lead);
        let step = PLAN.span / PLAN.timers as u32;
        assert!(timers.windows(2).all(|pair| (pair[1].1 - pair[0].1).abs_diff(step).as_nanos() < 3));
    }
}

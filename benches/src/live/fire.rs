//! Many timers, due evenly over some seconds: how late they fire, and what placing and firing take.
//!
//! Two threads place them, each every second timer, in a seeded random order. Placing begins
//! [`LEAD`] before the first deadline. A timer gets the `Instant` that its lateness counts from.

use std::thread;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

use super::ledger::Ledger;
use super::timer::{Live, MILLISECOND};
use crate::suite::{Outcome, Task};

pub(super) const FIRING: &str = "processor time from all placed to all fired, ms";

/// From the start of placing to the first deadline.
const LEAD: Duration = Duration::from_secs(1);

/// A timer is lost if it has not fired so long after the last deadline.
const PATIENCE: Duration = Duration::from_secs(30);

const PLACERS: usize = 2;

/// Returns when a timer is due, from the start of placing. A thread's timers have consecutive
/// numbers, so that their places in the ledger are adjacent; the threads' deadlines interleave.
fn due(task: &Task, timer: usize) -> Duration {
    let share = task.timers.div_ceil(PLACERS);
    let rank = timer % share * PLACERS + timer / share;
    LEAD + task.span.mul_f64(rank as f64 / task.timers as f64)
}

/// Returns the timers of each thread with their deadlines, in the order of placing.
fn orders(task: &Task) -> Vec<Vec<(usize, Duration)>> {
    let mut timers = (0..task.timers).map(|timer| (timer, due(task, timer))).collect::<Vec<_>>();
    let mut rng = fastrand::Rng::with_seed(task.timers as u64);
    let shuffled = |share: &mut [_]| {
        rng.shuffle(share);
        share.to_vec()
    };
    timers.chunks_mut(task.timers.div_ceil(PLACERS)).map(shuffled).collect()
}

/// Places all timers and waits until they have fired: how late they were, and the processor time
/// after placing.
fn fire<E: Live>(task: &Task, tick: Duration) -> Outcome {
    let (engine, orders, ledger) = (E::start(tick), orders(task), Ledger::leak(task.timers));
    let (begin, mut outcome) = (Instant::now(), Outcome::default());
    let kept = place(&engine, begin, ledger, orders);
    if begin.elapsed() > LEAD {
        eprintln!("{}: placing took {:?}, longer than the first timers had", E::NAME, begin.elapsed());
    }
    let spent = ProcessTime::now();
    ledger.wait(begin + LEAD + task.span, PATIENCE);
    let firing = spent.elapsed();
    ledger.judge(|timer| begin + due(task, timer), &mut outcome);
    outcome.figure(FIRING, firing.as_secs_f64() * 1e3);
    drop(kept);
    outcome
}

/// Lets each thread place its timers; returns what has to be kept.
fn place<E: Live>(
    engine: &E,
    begin: Instant,
    ledger: &'static Ledger,
    orders: Vec<Vec<(usize, Duration)>>,
) -> Vec<Vec<E::Kept>> {
    thread::scope(|scope| {
        let spawn = |order: Vec<_>| {
            scope.spawn(move || {
                let _entered = engine.enter();
                let place = |(timer, due)| engine.place(begin + due, ledger.note(timer));
                order.into_iter().map(place).collect::<Vec<_>>()
            })
        };
        let placers = orders.into_iter().map(spawn).collect::<Vec<_>>();
        placers.into_iter().map(|placer| placer.join().expect("a placing thread panicked")).collect()
    })
}

pub(super) fn coarse<E: Live>(task: &Task) -> Outcome {
    fire::<E>(task, MILLISECOND)
}

pub(super) fn fine<E: Live>(task: &Task) -> Outcome {
    fire::<E>(task, MILLISECOND / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_even_and_each_timer_is_placed_once() {
        let task = Task::small(2001);
        let mut timers = orders(&task).concat();
        timers.sort_unstable();
        assert!(timers.iter().copied().eq((0..2001).map(|timer| (timer, due(&task, timer)))));
        timers.sort_unstable_by_key(|timer| timer.1);
        assert_eq!(timers[0].1, LEAD);
        let step = task.span / 2001;
        assert!(timers.windows(2).all(|pair| (pair[1].1 - pair[0].1).abs_diff(step).as_nanos() < 3));
    }
}

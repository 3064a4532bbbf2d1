//! Many timers, due evenly over some seconds: how late they fire, and what firing them takes.
//!
//! Two or more threads place them in turns, each its share in a seeded random order. Placing begins
//! [`LEAD`] before the first deadline. A timer gets the `Instant` that its lateness counts from.

use std::thread;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

use super::ledger::Ledger;
use super::switches::{switches, wakes_between};
use super::timer::{Live, MILLISECOND};
use crate::suite::{Outcome, Task};

pub(super) const FIRING: &str = "processor time from all placed to all fired, ms";
pub(super) const WAKES_A_TICK: &str = "wake-ups a tick, all threads";

/// From the start of placing to the first deadline.
const LEAD: Duration = Duration::from_secs(1);

/// A timer is lost if it has not fired so long after the last deadline.
const PATIENCE: Duration = Duration::from_secs(30);

/// Threads that place timers: two, or one for each of sixteen shards.
const TWO: usize = 2;
const SIXTEEN: usize = 16;

/// Returns when a timer is due, from the start of placing. A thread's timers have consecutive
/// numbers, so that their places in the ledger are adjacent; the threads' deadlines interleave.
fn due(task: &Task, placers: usize, timer: usize) -> Duration {
    let share = task.timers.div_ceil(placers);
    let rank = timer % share * placers + timer / share;
    LEAD + task.span.mul_f64(rank as f64 / task.timers as f64)
}

/// The timers of each thread with their deadlines, in the order of placing.
type Orders = Vec<Vec<(usize, Duration)>>;

fn orders(task: &Task, placers: usize) -> Orders {
    let mut timers = (0..task.timers).map(|timer| (timer, due(task, placers, timer))).collect::<Vec<_>>();
    let mut rng = fastrand::Rng::with_seed(task.timers as u64);
    let shuffled = |share: &mut [_]| {
        rng.shuffle(share);
        share.to_vec()
    };
    timers.chunks_mut(task.timers.div_ceil(placers)).map(shuffled).collect()
}

/// Places all timers and waits until they have fired: lateness, processor time and wake-ups.
fn fire<E: Live>(task: &Task, tick: Duration, placers: usize) -> Outcome {
    let (engine, orders, ledger) = (E::start(tick), orders(task, placers), Ledger::leak(task.timers));
    let (begin, mut outcome) = (Instant::now(), Outcome::default());
    let kept = place(&engine, begin, ledger, orders);
    if begin.elapsed() > LEAD {
        eprintln!("{}: placing took {:?}, longer than the first timers had", E::NAME, begin.elapsed());
    }
    let last = begin + LEAD + task.span;
    let ticks = (last - Instant::now().max(begin + LEAD)).div_duration_f64(tick);
    let (before, spent) = (switches(), ProcessTime::now());
    ledger.wait(last, PATIENCE);
    let (firing, after) = (spent.elapsed(), switches());
    ledger.judge(|timer| begin + due(task, placers, timer), &mut outcome);
    outcome.figure(FIRING, firing.as_secs_f64() * 1e3);
    let wakes = before.zip(after).map(|(before, after)| wakes_between(&before, &after) as f64 / ticks);
    outcome.figure(WAKES_A_TICK, wakes);
    drop(kept);
    outcome
}

/// Lets each thread place its timers; returns what their owner has to keep until they have fired.
fn place<E: Live>(engine: &E, begin: Instant, ledger: &'static Ledger, orders: Orders) -> Vec<Vec<E::Kept>> {
    thread::scope(|scope| {
        let spawn = |order: Vec<_>| {
            scope.spawn(move || {
                engine.inside(move |engine| {
                    let place = |(timer, due)| engine.place(begin + due, ledger.note(timer));
                    order.into_iter().map(place).collect::<Vec<_>>()
                })
            })
        };
        let placers = orders.into_iter().map(spawn).collect::<Vec<_>>();
        placers.into_iter().map(|placer| placer.join().expect("a placing thread panicked")).collect()
    })
}

pub(super) fn coarse<E: Live>(task: &Task) -> Outcome {
    fire::<E>(task, MILLISECOND, TWO)
}

pub(super) fn fine<E: Live>(task: &Task) -> Outcome {
    fire::<E>(task, MILLISECOND / 10, TWO)
}

/// Each thread schedules on a shard of its own, if there are as many.
pub(super) fn wakes<E: Live>(task: &Task) -> Outcome {
    fire::<E>(task, MILLISECOND, SIXTEEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_even_and_each_timer_is_placed_once() {
        let task = Task::small(2001);
        let mut timers = orders(&task, TWO).concat();
        timers.sort_unstable();
        assert!(timers.iter().copied().eq((0..2001).map(|timer| (timer, due(&task, TWO, timer)))));
        timers.sort_unstable_by_key(|timer| timer.1);
        assert_eq!(timers[0].1, LEAD);
        let step = task.span / 2001;
        assert!(timers.windows(2).all(|pair| (pair[1].1 - pair[0].1).abs_diff(step).as_nanos() < 3));
    }
}

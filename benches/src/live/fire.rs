//! Many timers, due evenly over some seconds: how late they fire, and what firing them takes.
//!
//! Two threads place them in turns, each its share in a seeded random order. Placing begins
//! [`LEAD`] before the first deadline. A timer gets the `Instant` that its lateness counts from.

use std::thread;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

use super::ledger::Ledger;
use super::timer::Live;
use crate::suite::{Outcome, Task};

const FIRING: &str = "processor time from all placed to all fired, ms";

/// From the start of placing to the first deadline.
const LEAD: Duration = Duration::from_secs(1);

/// A timer is lost if it has not fired so long after the last deadline.
const PATIENCE: Duration = Duration::from_secs(30);

/// Threads that place timers.
const PLACERS: usize = 2;

/// Returns when a timer is due, from the start of placing. A thread's timers have consecutive
/// numbers, so that their places in the ledger are adjacent; the threads' deadlines interleave.
fn due(task: &Task, timer: usize) -> Duration {
    let share = task.timers.div_ceil(PLACERS);
    let rank = timer % share * PLACERS + timer / share;
    LEAD + task.span.mul_f64(rank as f64 / task.timers as f64)
}

/// The timers of each thread with their deadlines, in the order of placing.
type Orders = Vec<Vec<(usize, Duration)>>;

fn orders(task: &Task) -> Orders {
    let mut timers = (0..task.timers).map(|timer| (timer, due(task, timer))).collect::<Vec<_>>();
    let mut rng = fastrand::Rng::with_seed(task.timers as u64);
    let shuffled = |share: &mut [_]| {
        rng.shuffle(share);
        share.to_vec()
    };
    timers.chunks_mut(task.timers.div_ceil(PLACERS)).map(shuffled).collect()
}

/// Places all timers and waits until they have fired: lateness and processor time.
pub(super) fn fire<E: Live>(task: &Task) -> Outcome {
    let (engine, orders, ledger) = (E::start(), orders(task), Ledger::leak(task.timers));
    let (begin, mut outcome) = (Instant::now(), Outcome::default());
    let kept = place(&engine, begin, ledger, orders);
    if begin.elapsed() > LEAD {
        eprintln!("{}: placing took {:?}, longer than the first timers had", E::NAME, begin.elapsed());
    }
    let last = begin + LEAD + task.span;
    let spent = ProcessTime::now();
    ledger.wait(last, PATIENCE);
    let firing = spent.elapsed();
    let wrong = ledger.judge(|timer| begin + due(task, timer), &mut outcome);
    assert_eq!(wrong, [0; 3], "{}: timers lost, fired again and early", E::NAME);
    outcome.figure(FIRING, firing.as_secs_f64() * 1e3);
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

//! Single operations, each timed by itself: on a quiet engine, and while threads use the same one.
//!
//! Each of the threads schedules a timer and cancels the one that it scheduled a thousand before. The
//! measuring thread moves the clock, by a tick at which one timer is due and by a tick at which none
//! is. A figure includes the reading of the clock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::checksum::Checksum;
use crate::engines::{Cancel, Engine, Producer};
use crate::machine::pin_in_turn;
use crate::passes::{LOST, schedule_all};
use crate::samples::Times;
use crate::suite::{Outcome, Task};
use crate::workload::{Spread, Workload};

/// What is timed. To fire is to move the clock by a tick at which one timer is due; to advance, by
/// one at which nothing is.
pub(crate) const TIMED: [&str; 4] = ["schedule", "cancel", "fire", "advance"];

/// Timers that are pending all the time, and those of each thread.
const STANDING: usize = if cfg!(test) { 1_000 } else { 100_000 };
const OUTSTANDING: usize = if cfg!(test) { 10 } else { 1_000 };

/// All timers but those of [`Clock`] are due after this tick, which the clock does not reach, and
/// before its double: the flat wheel has so many buckets.
const OUT_OF_THE_WAY: u64 = 1_000_000;

/// Turns of a quiet run: in each a timer is scheduled, one is cancelled, and the clock moves twice.
const TURNS: u64 = if cfg!(test) { 1_000 } else { 100_000 };

/// How long threads use the engine, and the pause of the clock after some turns meanwhile.
const LASTS: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 2_000 });
const PAUSE: Duration = Duration::from_micros(20);
const TURNS_BETWEEN_PAUSES: usize = 16;

/// The most threads: a test asks for more.
const THREADS: usize = 16;

/// Times single operations, beside as many threads as the task has timers.
pub(crate) fn tails<E: Engine<Producer: Cancel + Send>>(task: &Task) -> Outcome {
    let mut engine = E::new();
    let mut work = Workload::new(Spread::ThirtyMinutes, STANDING, task.seed(0));
    work.delays.iter_mut().for_each(|delay| *delay = OUT_OF_THE_WAY + *delay % OUT_OF_THE_WAY);
    schedule_all(&engine.producer(), 0, &work);
    let (mut users, mut clock) = (Vec::new(), Clock::new());
    if task.timers == 0 {
        let mut user = User::new(engine.producer(), task.seed(1));
        for _ in 0..TURNS {
            user.turn();
            clock.turn(&mut engine);
        }
        users.push(user.times);
    } else {
        users = beside::<E>(&mut engine, &mut clock, task);
    }
    assert_eq!(clock.fired.count(), clock.now / 2, "{} did not fire what was due", E::NAME);
    let [mut scheduled, mut cancelled] = [(); 2].map(|()| Times::new());
    users.iter().for_each(|[schedule, cancel]| {
        scheduled.add(schedule);
        cancelled.add(cancel);
    });
    let [fire, advance] = &clock.times;
    let mut outcome = Outcome::new(0);
    for (what, times) in TIMED.into_iter().zip([&scheduled, &cancelled, fire, advance]) {
        outcome.figures.extend(times.percentiles(what));
    }
    outcome
}

/// Moves the clock while threads schedule and cancel; returns the times of the threads.
fn beside<E: Engine<Producer: Cancel + Send>>(
    engine: &mut E,
    clock: &mut Clock,
    task: &Task,
) -> Vec<[Times; 2]> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let spawn = |nth: usize| {
            let (producer, ended) = (engine.producer(), &ended);
            scope.spawn(move || {
                // The measuring thread is on the first core.
                pin_in_turn(nth + 1);
                let mut user = User::new(producer, task.seed(1 + nth));
                // Ordering: Relaxed; the flag guards nothing.
                while !ended.load(Ordering::Relaxed) {
                    user.turn();
                }
                user.times
            })
        };
        let threads = (0..task.timers.min(THREADS)).map(spawn).collect::<Vec<_>>();
        let start = Instant::now();
        while start.elapsed() < LASTS && clock.now < OUT_OF_THE_WAY - 1_000 {
            (0..TURNS_BETWEEN_PAUSES).for_each(|_| clock.turn(engine));
            thread::sleep(PAUSE);
        }
        ended.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
    })
}

/// A thread that schedules and cancels.
struct User<P: Cancel> {
    producer: P,
    rng: fastrand::Rng,
    outstanding: VecDeque<P::Handle>,
    times: [Times; 2],
}

impl<P: Cancel> User<P> {
    fn new(producer: P, seed: u64) -> Self {
        let (rng, outstanding) = (fastrand::Rng::with_seed(seed), VecDeque::with_capacity(OUTSTANDING + 1));
        Self { producer, rng, outstanding, times: [(); 2].map(|()| Times::new()) }
    }

    fn turn(&mut self) {
        let deadline = OUT_OF_THE_WAY + self.rng.u64(..OUT_OF_THE_WAY);
        let handle = self.times[0].time(|| self.producer.schedule(deadline, 0));
        self.outstanding.push_back(handle);
        if self.outstanding.len() > OUTSTANDING {
            let oldest = self.outstanding.pop_front().expect("it is not empty");
            let cancelled = self.times[1].time(|| self.producer.cancel(oldest));
            assert!(cancelled.is_some(), "{LOST}");
        }
    }
}

/// The clock of an engine: two ticks a turn, a timer is due at the first.
struct Clock {
    now: u64,
    fired: Checksum,
    times: [Times; 2],
}

impl Clock {
    fn new() -> Self {
        Self { now: 0, fired: Checksum::default(), times: [(); 2].map(|()| Times::new()) }
    }

    fn turn<E: Engine>(&mut self, engine: &mut E) {
        engine.producer().schedule(self.now + 1, 0);
        for times in &mut self.times {
            self.now += 1;
            times.time(|| engine.advance(self.now, &mut self.fired));
        }
    }
}

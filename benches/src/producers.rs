//! Several producer threads at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Checksum, Engine, Workload, pin};

/// Lets each of `prepare` make a job, on a thread pinned to a core of its own, then runs the jobs at the same
/// time; returns the time from the start of the first to the end of the last.
///
/// # Panics
///
/// Where a job panics, or making it does.
pub fn race<R, J: FnOnce() -> R, P: FnOnce() -> J + Send>(prepare: Vec<P>) -> Duration {
    race_then(prepare, drop).0
}

/// As [`race`]; when all jobs have ended, each thread makes `then` of what its own has returned.
///
/// # Panics
///
/// Where a job panics, or making it does, or `then`.
pub fn race_then<R, J, P, F>(prepare: Vec<P>, then: impl Fn(R) -> F + Sync) -> (Duration, Vec<F>)
where
    J: FnOnce() -> R,
    P: FnOnce() -> J + Send,
    F: Send,
{
    let (then, [missing, running]) = (&then, &[(); 2].map(|()| AtomicUsize::new(prepare.len())));
    let ends = thread::scope(|scope| {
        let spawn = |(nth, prepare)| {
            scope.spawn(move || {
                let arrivals = [Arrival(missing), Arrival(running)];
                let (span, result) = run(nth, prepare, arrivals);
                (span, then(result))
            })
        };
        let threads = prepare.into_iter().enumerate().map(spawn).collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect::<Vec<_>>()
    });
    let (spans, made) = ends.into_iter().unzip::<_, _, Vec<_>, _>();
    let start = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    (end.zip(start).map_or(Duration::ZERO, |(end, start)| end - start), made)
}

fn run<R, J: FnOnce() -> R>(
    nth: usize,
    prepare: impl FnOnce() -> J,
    [start, end]: [Arrival<'_>; 2],
) -> ((Instant, Instant), R) {
    pin(nth);
    let job = prepare();
    start.wait_for_all();
    let start = Instant::now();
    let result = job();
    let span = (start, Instant::now());
    end.wait_for_all();
    (span, result)
}

/// A thread's place at the start or at the end; dropping it without waiting lets the others go, so that a panic ends the
/// run instead of hanging it.
struct Arrival<'a>(&'a AtomicUsize);

impl Arrival<'_> {
    /// Returns once every thread has come here. The threads spin, so that they leave together: waking from
    /// a barrier that sleeps would take as long as a short job.
    fn wait_for_all(self) {
        let missing = self.0;
        drop(self);
        // Ordering: Relaxed; the number alone matters, what the jobs use was shared when their thread began.
        while missing.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        // Ordering: Relaxed; see `wait_for_all`.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many producers there are and how many engines they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One producer.
    One,
    /// Two producers, an engine for each.
    TwoOnTwo,
    /// Two producers on one engine.
    TwoOnOne,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Self; 3] = [Self::One, Self::TwoOnTwo, Self::TwoOnOne];

    /// What the tables call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "1 producer, 1 shard",
            Self::TwoOnTwo => "2 producers, 2 shards",
            Self::TwoOnOne => "2 producers, 1 shard",
        }
    }

    /// How many threads add timers.
    #[must_use]
    pub fn threads(self) -> usize {
        match self {
            Self::One => 1,
            Self::TwoOnTwo | Self::TwoOnOne => 2,
        }
    }

    /// The engines that this layout needs.
    #[must_use]
    pub fn engines<E: Engine>(self) -> Vec<E> {
        let engines = if self == Self::TwoOnTwo { 2 } else { 1 };
        (0..engines).map(|_| E::new()).collect()
    }

    /// The time that the jobs take which `prepare` makes, one for each of the layout's threads, each with a
    /// producer of its own.
    pub fn race<E: Engine<Producer: Send>, R, J: FnOnce() -> R>(
        self,
        engines: &[E],
        prepare: impl Fn(E::Producer) -> J + Sync,
    ) -> Duration {
        let prepare = &prepare;
        let with_producer = |engine: &E| {
            let producer = engine.producer();
            move || prepare(producer)
        };
        race(engines.iter().cycle().take(self.threads()).map(with_producer).collect())
    }

    /// Moves the clock of every engine to `now`, each on a thread of its own, and checks that each fired
    /// what its producers scheduled: `work` at tick `base`.
    pub fn drain<E: Engine + Send>(self, engines: &mut [E], base: u64, work: &Workload) -> Duration {
        let copies = self.threads() / engines.len();
        let mut sums = vec![Checksum::default(); engines.len()];
        let advance = |(engine, sum): (_, _)| move || move || E::advance(engine, base + work.span(), sum);
        let elapsed = race(engines.iter_mut().zip(&mut sums).map(advance).collect());
        let expected = work.expected(base, copies);
        sums.iter().for_each(|sum| sum.verify(&expected, E::NAME));
        elapsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Heap, Spread, Wheel, schedule_all};

    fn every_layout_fires_all<E: Engine<Producer: Send> + Send>() {
        let work = Workload::new(Spread::ThirtyMinutes, 1000, 7);
        for layout in Layout::ALL {
            let mut engines = layout.engines::<E>();
            layout.race(&engines, |producer| {
                let work = &work;
                move || schedule_all(&producer, 0, work)
            });
            layout.drain(&mut engines, 0, &work);
        }
    }

    #[test]
    fn wheels_fire_what_all_producers_scheduled() {
        every_layout_fires_all::<Wheel>();
    }

    #[test]
    fn heaps_fire_what_all_producers_scheduled() {
        every_layout_fires_all::<Heap>();
    }

    #[test]
    fn what_follows_a_job_is_not_timed() {
        let nap = Duration::from_millis(200);
        let (elapsed, made) = race_then(vec![|| || 1; 2], |result| {
            thread::sleep(nap);
            result + 1
        });
        assert_eq!(made, [2, 2]);
        assert!(elapsed < nap, "{elapsed:?}");
    }

    #[test]
    #[should_panic(expected = "a thread panicked")]
    fn a_panic_ends_the_race() {
        let prepare = |nth: usize| {
            move || {
                assert_ne!(nth, 1, "on purpose");
                || ()
            }
        };
        race(vec![prepare(0), prepare(1)]);
    }
}

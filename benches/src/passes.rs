//! Passes over a whole workload, each timed as a whole, and several threads at once.
//!
//! Reading the clock costs about as much as scheduling a timer, so no operation is timed by itself.
//! What a pass needs is allocated before it starts.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::checksum::Checksum;
use crate::engines::{Cancel, Engine, Producer};
use crate::machine::pin;
use crate::workload::Workload;

/// Pairs of schedule and cancel between two calls of the advancer, in the passes that call it.
pub(crate) const PAIRS_PER_ADVANCE: usize = 4096;

pub(crate) fn time(pass: impl FnOnce()) -> Duration {
    let start = Instant::now();
    pass();
    start.elapsed()
}

/// Schedules all of `work`, whose delays count from `base`.
pub(crate) fn schedule_all<P: Producer>(producer: &P, base: u64, work: &Workload) -> Duration {
    time(|| {
        for (delay, payload) in work.delays.iter().zip(0..) {
            black_box(producer.schedule(base + delay, payload));
        }
    })
}

/// Schedules all of `work` and replaces the content of `handles` with the new handles.
pub(crate) fn schedule_keeping<P: Producer>(
    producer: &P,
    base: u64,
    work: &Workload,
    handles: &mut Vec<P::Handle>,
) -> Duration {
    handles.clear();
    handles.reserve(work.delays.len());
    time(|| {
        for (delay, payload) in work.delays.iter().zip(0..) {
            handles.push(producer.schedule(base + delay, payload));
        }
    })
}

/// Gives each timer the deadline at its place in `delays`, counted from `base`, and replaces its
/// handle; panics if a timer is not pending.
pub(crate) fn extend_all<P: Cancel>(
    producer: &P,
    base: u64,
    handles: &mut [P::Handle],
    delays: &[u64],
) -> Duration {
    time(|| {
        for (handle, delay) in handles.iter_mut().zip(delays) {
            *handle = producer.extend(*handle, base + delay).expect("a pending timer can be extended");
        }
    })
}

/// Schedules each timer of `work` and cancels it at once; the advancer is not called.
pub(crate) fn pairs<P: Cancel>(producer: &P, base: u64, work: &Workload) -> Duration {
    time(|| pair_each(producer, base, &work.delays))
}

/// As [`pairs`], but calls the advancer after every 4,096 pairs, its clock staying at `base`. The
/// time includes those calls.
pub(crate) fn pairs_advanced<E>(engine: &mut E, base: u64, work: &Workload) -> Duration
where
    E: Engine<Producer: Cancel>,
{
    let producer = engine.producer();
    let mut fired = Checksum::default();
    let elapsed = time(|| {
        for delays in work.delays.chunks(PAIRS_PER_ADVANCE) {
            pair_each(&producer, base, delays);
            engine.advance(base, &mut fired);
        }
    });
    assert_eq!(fired.count(), 0, "a timer fired while the clock stood still");
    elapsed
}

#[inline]
fn pair_each<P: Cancel>(producer: &P, base: u64, delays: &[u64]) {
    for (delay, payload) in delays.iter().zip(0..) {
        let handle = producer.schedule(base + delay, payload);
        assert_eq!(producer.cancel(handle), Some(payload), "a pending timer was not cancelled");
    }
}

/// Moves the clock to `now` in one call; panics if what fires is not what is expected.
pub(crate) fn fire_all<E: Engine>(engine: &mut E, now: u64, expected: &Checksum) -> Duration {
    let mut fired = Checksum::default();
    let elapsed = time(|| engine.advance(now, &mut fired));
    fired.verify(expected, E::NAME);
    elapsed
}

/// Schedules and fires all of `work`; returns the times of both.
pub(crate) fn round_trip<E: Engine>(engine: &mut E, base: u64, work: &Workload) -> [Duration; 2] {
    let schedule = schedule_all(&engine.producer(), base, work);
    [schedule, fire_all(engine, base + work.span, &work.expected(base, 1))]
}

/// Timeouts that almost never fire: schedules 30 s ahead and cancels the timer of a thousand
/// earlier, again and again.
///
/// Its clock moves by one tick after each thousand pairs: a million pairs a second. Churns that
/// share an engine each have a clock, and one of them moves the engine's.
pub(crate) struct Churn<P: Cancel> {
    producer: P,
    ring: Vec<P::Handle>,
    clock: u64,
    /// The deadline of all timers in the ring.
    deadline: u64,
}

impl<P: Cancel> Churn<P> {
    const OUTSTANDING: usize = 1000;
    const AHEAD: u64 = 30_000;
    const PAYLOAD: u64 = 0;

    pub(crate) fn new(producer: P) -> Self {
        let schedule = |_| producer.schedule(Self::AHEAD, Self::PAYLOAD);
        let ring = (0..Self::OUTSTANDING).map(schedule).collect();
        Self { producer, ring, clock: 0, deadline: Self::AHEAD }
    }

    /// Runs `pairs` pairs, rounded down to thousands; returns their number and the time. `moved` is
    /// called with the clock at each tick, and the time includes it.
    pub(crate) fn run(&mut self, pairs: usize, mut moved: impl FnMut(u64)) -> (usize, Duration) {
        let ticks = pairs / Self::OUTSTANDING;
        let elapsed = time(|| (0..ticks).for_each(|_| moved(self.tick())));
        (ticks * Self::OUTSTANDING, elapsed)
    }

    pub(crate) fn pending(&self) -> Vec<(u64, u64)> {
        vec![(self.deadline, Self::PAYLOAD); self.ring.len()]
    }

    fn tick(&mut self) -> u64 {
        self.deadline = self.clock + Self::AHEAD;
        for oldest in &mut self.ring {
            let newest = self.producer.schedule(self.deadline, Self::PAYLOAD);
            let cancelled = self.producer.cancel(std::mem::replace(oldest, newest));
            assert!(cancelled.is_some(), "a pending timer was not cancelled");
        }
        self.clock += 1;
        self.clock
    }
}

/// Runs jobs at the same time, each on a thread pinned to a core of its own.
///
/// Each of `prepare` makes a job on its thread. When all jobs have ended, each thread calls `then`
/// with the result of its job. Returns the time from the start of the first job to the end of the
/// last, and what `then` returned. A panic in any of them ends the race with a panic.
pub(crate) fn race_then<R, J, P, F>(prepare: Vec<P>, then: impl Fn(R) -> F + Sync) -> (Duration, Vec<F>)
where
    J: FnOnce() -> R,
    P: FnOnce() -> J + Send,
    F: Send,
{
    let (then, [missing, running]) = (&then, &[(); 2].map(|()| AtomicUsize::new(prepare.len())));
    let ends = thread::scope(|scope| {
        let spawn = |(nth, prepare): (usize, P)| {
            scope.spawn(move || {
                let [start, end] = [Arrival(missing), Arrival(running)];
                pin(nth);
                let job = prepare();
                start.wait_for_all();
                let start = Instant::now();
                let result = job();
                let span = (start, Instant::now());
                end.wait_for_all();
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

/// A thread's place at the start or at the end. A drop without a wait lets the others go, so that a
/// panic ends the race instead of blocking it.
struct Arrival<'a>(&'a AtomicUsize);

impl Arrival<'_> {
    /// Returns once every thread has arrived. The threads spin, so that they leave together: a wake
    /// from a sleeping barrier takes as long as a short job.
    fn wait_for_all(self) {
        let missing = self.0;
        drop(self);
        // Ordering: Relaxed; only the number matters. The jobs share their data by the spawn.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a thread panicked")]
    fn a_panic_ends_the_race() {
        let prepare = |nth: usize| {
            move || {
                assert_ne!(nth, 1, "on purpose");
                || ()
            }
        };
        race_then(vec![prepare(0), prepare(1)], drop);
    }
}

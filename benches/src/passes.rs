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
use crate::rhythm::{AtOnce, fire};
use crate::workload::Workload;

pub(crate) const LOST: &str = "a pending timer was not cancelled";

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
    work: &Workload,
    handles: &mut Vec<P::Handle>,
) -> Duration {
    handles.clear();
    handles.reserve(work.delays.len());
    time(|| {
        for (delay, payload) in work.delays.iter().zip(0..) {
            handles.push(producer.schedule(*delay, payload));
        }
    })
}

/// Cancels each timer; panics if one is not pending.
pub(crate) fn cancel_all<P: Cancel>(producer: &P, handles: &[P::Handle]) -> Duration {
    time(|| handles.iter().for_each(|&handle| assert!(producer.cancel(handle).is_some(), "{LOST}")))
}

/// Schedules each timer of `work` and cancels it at once.
pub(crate) fn pairs<P: Cancel>(producer: &P, base: u64, work: &Workload) -> Duration {
    time(|| {
        for (delay, payload) in work.delays.iter().zip(0..) {
            let handle = producer.schedule(base + delay, payload);
            assert_eq!(producer.cancel(handle), Some(payload), "{LOST}");
        }
    })
}

/// Moves the clock to `now` in one call; panics if what fires is not what is expected.
pub(crate) fn fire_all<E: Engine>(engine: &mut E, now: u64, expected: &Checksum) -> Duration {
    fire::<E, AtOnce>(engine, 0..now, expected)
}

/// Schedules and fires all of `work`; returns the times of both.
pub(crate) fn round_trip<E: Engine>(engine: &mut E, base: u64, work: &Workload) -> [Duration; 2] {
    let schedule = schedule_all(&engine.producer(), base, work);
    [schedule, fire_all(engine, base + work.span, &work.expected(base, 1))]
}

/// Runs jobs at the same time, each on a thread pinned to a core of its own.
///
/// Each of `prepare` makes a job on its thread. When all jobs have ended, each thread calls `then`
/// with the result. Returns the time from the first start of a job to the last end.
pub(crate) fn race<R, J, P>(prepare: Vec<P>, then: impl Fn(R) + Sync) -> Duration
where
    J: FnOnce() -> R,
    P: FnOnce() -> J + Send,
{
    let (then, [missing, running]) = (&then, &[(); 2].map(|()| AtomicUsize::new(prepare.len())));
    let spans = thread::scope(|scope| {
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
                then(result);
                span
            })
        };
        let threads = prepare.into_iter().enumerate().map(spawn).collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect::<Vec<_>>()
    });
    let (start, end) = (spans.iter().map(|span| span.0).min(), spans.iter().map(|span| span.1).max());
    end.zip(start).map_or(Duration::ZERO, |(end, start)| end - start)
}

/// A thread's place at the start or at the end. A panic drops it, and the others go on.
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
        race(vec![prepare(0), prepare(1)], drop);
    }
}

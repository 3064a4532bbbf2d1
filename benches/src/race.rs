//! Several producer threads at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::machine::pin;

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
        let spawn = |(nth, prepare)| {
            scope.spawn(move || {
                let (span, result) = run(nth, prepare, [Arrival(missing), Arrival(running)]);
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
        race_then(vec![prepare(0), prepare(1)], drop);
    }
}

//! Loops over a whole workload, timed from outside.
//!
//! Reading a clock costs about as much as scheduling a timer, so no operation is timed alone: each function
//! here makes one pass over a workload and returns how long the pass took. What a pass needs is allocated
//! before it starts.

pub(crate) mod churn;

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::{Cancel, Checksum, Engine, Producer, Workload};

/// How many pairs of schedule and cancel come between two calls of the advancer, in the runs that call it
/// now and then.
pub const PAIRS_PER_ADVANCE: usize = 4096;

fn time(pass: impl FnOnce()) -> Duration {
    let start = Instant::now();
    pass();
    start.elapsed()
}

/// Schedules all of `work`, whose delays count from `base`.
pub fn schedule_all<P: Producer>(producer: &P, base: u64, work: &Workload) -> Duration {
    time(|| {
        for (delay, payload) in work.delays().iter().zip(0..) {
            black_box(producer.schedule(base + delay, payload));
        }
    })
}

/// Schedules all of `work` and keeps the handles, in place of what `handles` held.
pub fn schedule_keeping<P: Producer>(
    producer: &P,
    base: u64,
    work: &Workload,
    handles: &mut Vec<P::Handle>,
) -> Duration {
    handles.clear();
    handles.reserve(work.delays().len());
    time(|| {
        for (delay, payload) in work.delays().iter().zip(0..) {
            handles.push(producer.schedule(base + delay, payload));
        }
    })
}

/// Cancels every timer in the order of `handles`.
///
/// # Panics
///
/// Where a timer was no longer pending.
pub fn cancel_all<P: Cancel>(producer: &P, handles: &[P::Handle]) -> Duration {
    let mut cancelled = 0;
    let elapsed = time(|| {
        for &handle in handles {
            cancelled += usize::from(black_box(producer.cancel(handle)).is_some());
        }
    });
    assert_eq!(cancelled, handles.len(), "a pending timer was not cancelled");
    elapsed
}

/// Gives each timer the deadline at its place in `delays`, counted from `base`, and replaces its handle.
///
/// # Panics
///
/// Where a timer was no longer pending.
pub fn extend_all<P: Cancel>(producer: &P, base: u64, handles: &mut [P::Handle], delays: &[u64]) -> Duration {
    time(|| {
        for (handle, delay) in handles.iter_mut().zip(delays) {
            *handle = producer.extend(*handle, base + delay).expect("a pending timer can be extended");
        }
    })
}

/// Schedules each timer of `work` and cancels it at once; nobody calls the advancer.
pub fn pairs<P: Cancel>(producer: &P, base: u64, work: &Workload) -> Duration {
    time(|| pair_each(producer, base, work.delays()))
}

/// As [`pairs`], but the advancer is called after every [`PAIRS_PER_ADVANCE`], its clock standing still at
/// `base`. Those calls are timed too.
pub fn pairs_advanced<E>(engine: &mut E, base: u64, work: &Workload) -> Duration
where
    E: Engine<Producer: Cancel>,
{
    let producer = engine.producer();
    let mut fired = Checksum::default();
    let elapsed = time(|| {
        for delays in work.delays().chunks(PAIRS_PER_ADVANCE) {
            pair_each(&producer, base, delays);
            engine.advance(base, &mut fired);
        }
    });
    assert_eq!(fired.count(), 0, "a timer fired though the clock stood still");
    elapsed
}

#[inline]
fn pair_each<P: Cancel>(producer: &P, base: u64, delays: &[u64]) {
    for (delay, payload) in delays.iter().zip(0..) {
        let handle = producer.schedule(base + delay, payload);
        assert_eq!(producer.cancel(handle), Some(payload), "a pending timer was not cancelled");
    }
}

/// Moves the clock to `now` in one step and takes all that is due.
pub fn drain<E: Engine>(engine: &mut E, now: u64, fired: &mut Checksum) -> Duration {
    time(|| engine.advance(now, fired))
}

/// Moves the clock from `base` to `now` tick by tick, as a timer thread does, and takes all that is due.
pub fn advance_by_ticks<E: Engine>(engine: &mut E, base: u64, now: u64, fired: &mut Checksum) -> Duration {
    time(|| (base + 1..=now).for_each(|tick| engine.advance(tick, fired)))
}

/// Moves the clock on from `base` tick by tick and schedules a new timer for each one that fired, until as
/// many have fired as `work` has delays; returns the time and the clock.
///
/// The number of pending timers stays the same until, at the last tick, more may fire than `work` can replace.
pub fn steady<E: Engine>(
    engine: &mut E,
    base: u64,
    work: &Workload,
    fired: &mut Checksum,
) -> (Duration, u64) {
    let producer = engine.producer();
    let mut clock = base;
    let mut renewals = work.delays().iter().enumerate();
    let elapsed = time(|| {
        while renewals.len() > 0 {
            clock += 1;
            let before = fired.count();
            engine.advance(clock, fired);
            for (nth, delay) in renewals.by_ref().take((fired.count() - before) as usize) {
                black_box(producer.schedule(clock + delay, nth as u64));
            }
        }
    });
    (elapsed, clock)
}

//! When each timer fired.
//!
//! A timer has a place of its own in the ledger, and firing writes the time into it: one reading of
//! the clock and one store, so firing threads share nothing. The distribution is made at the end,
//! and every timer is accounted for: a timer that is lost, early or fired twice shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Wake;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// The place of a timer that has not fired.
const PENDING: u64 = u64::MAX;

/// The interval of the looks at the last timers.
const GLANCE: Duration = Duration::from_millis(1);

const DIGITS: u8 = 3;

/// A place for each timer; ns since the ledger was made, written by the thread that fires the timer.
pub(super) struct Ledger {
    start: Instant,
    fired: Vec<AtomicU64>,
    /// How many times a timer fired that had fired before.
    again: AtomicU64,
}

impl Ledger {
    /// Makes a ledger that is never freed, so that a note counts no references. Its memory is
    /// touched.
    pub(super) fn leak(timers: usize) -> &'static Self {
        let fired = (0..timers).map(|_| AtomicU64::new(PENDING)).collect();
        Box::leak(Box::new(Self { start: Instant::now(), fired, again: AtomicU64::new(0) }))
    }

    /// Returns the place of a timer, for its callback.
    pub(super) fn note(&'static self, timer: usize) -> Note {
        Note { ledger: self, timer: u32::try_from(timer).expect("fewer than 2^32 timers") }
    }

    /// Sleeps until `last`, when the last timer is due, then until all have fired or `patience` is
    /// over.
    pub(super) fn wait(&self, last: Instant, patience: Duration) {
        thread::sleep(last.saturating_duration_since(Instant::now()));
        let mut seen = 0;
        while last.elapsed() < patience {
            let fired = |place: &&AtomicU64| place.load(Ordering::Relaxed) != PENDING;
            seen += self.fired[seen..].iter().take_while(fired).count();
            if seen == self.fired.len() {
                return;
            }
            thread::sleep(GLANCE);
        }
    }

    /// Compares each timer's time with its deadline, `due` of its number.
    pub(super) fn lateness(&self, due: impl Fn(usize) -> Instant) -> Lateness {
        let nanos = Histogram::new(DIGITS).expect("a histogram can have three digits");
        let again = self.again.load(Ordering::Relaxed);
        let mut lateness = Lateness { lost: 0, early: 0, again, nanos };
        for (timer, place) in self.fired.iter().enumerate() {
            let fired = place.load(Ordering::Relaxed);
            let late =
                (self.start + Duration::from_nanos(fired % PENDING)).checked_duration_since(due(timer));
            match (fired, late) {
                (PENDING, _) => lateness.lost += 1,
                (_, None) => lateness.early += 1,
                (_, Some(late)) => lateness.nanos.record(late.as_nanos() as u64).expect("it grows as needed"),
            }
        }
        lateness
    }
}

/// A timer's place in a ledger: what its callback or its waker holds.
#[derive(Clone, Copy)]
pub(super) struct Note {
    ledger: &'static Ledger,
    timer: u32,
}

impl Note {
    /// Records that the timer fires now.
    #[inline]
    pub(super) fn write(self) {
        let now = self.ledger.start.elapsed().as_nanos() as u64;
        let place = &self.ledger.fired[self.timer as usize];
        // Ordering: Relaxed; a place publishes no other memory, and two threads write to the same
        // place only if an engine fires a timer twice.
        if place.load(Ordering::Relaxed) == PENDING {
            place.store(now, Ordering::Relaxed);
        } else {
            self.ledger.again.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.write();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.write();
    }
}

/// How late timers fired, and how many were lost, early, or fired again.
pub(super) struct Lateness {
    pub(super) lost: u64,
    pub(super) early: u64,
    pub(super) again: u64,
    nanos: Histogram<u64>,
}

impl Lateness {
    /// Returns the lateness in µs that this share of the timers did not exceed.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        self.nanos.value_at_quantile(share) as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timer_is_accounted_for() {
        let ledger = Ledger::leak(4);
        [0, 1, 2, 1].into_iter().for_each(|timer| ledger.note(timer).write());
        ledger.wait(Instant::now(), Duration::from_millis(5));
        let hour = Duration::from_secs(3600);
        let lateness = ledger.lateness(|timer| if timer == 2 { ledger.start + hour } else { ledger.start });
        assert_eq!((lateness.lost, lateness.early, lateness.again), (1, 1, 1));
        assert!(lateness.quantile(0.5) <= lateness.quantile(1.0) && lateness.quantile(1.0) > 0.0);
    }
}

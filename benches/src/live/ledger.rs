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

use crate::names::{LATE, late};
use crate::suite::Outcome;

/// The place of a timer that has not fired.
const PENDING: u64 = u64::MAX;

/// A place for each timer: ns since the ledger was made, written by the thread that fires it.
pub(super) struct Ledger {
    start: Instant,
    fired: Vec<AtomicU64>,
    /// How many times a timer fired that had fired before.
    again: AtomicU64,
}

impl Ledger {
    /// Makes a ledger that is never freed: a note counts no references. Its memory is touched.
    pub(super) fn leak(timers: usize) -> &'static Self {
        let fired = (0..timers).map(|_| AtomicU64::new(PENDING)).collect();
        Box::leak(Box::new(Self { start: Instant::now(), fired, again: AtomicU64::new(0) }))
    }

    /// Returns the place of a timer, for its callback.
    pub(super) fn note(&'static self, timer: usize) -> Note {
        Note { ledger: self, timer: u32::try_from(timer).expect("fewer than 2^32 timers") }
    }

    /// Sleeps until the last timer is due, then until all have fired or `patience` is over.
    pub(super) fn wait(&self, last: Instant, patience: Duration) {
        thread::sleep(last.saturating_duration_since(Instant::now()));
        let mut seen = 0;
        while last.elapsed() < patience {
            let fired = |place: &&AtomicU64| place.load(Ordering::Relaxed) != PENDING;
            seen += self.fired[seen..].iter().take_while(fired).count();
            if seen == self.fired.len() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Compares each timer's time with its deadline, `due` of its number, and adds the figures. Returns
    /// how many were lost, fired again, and were early.
    pub(super) fn judge(&self, due: impl Fn(usize) -> Instant, outcome: &mut Outcome) -> [u64; 3] {
        let mut nanos = Histogram::<u64>::new(3).expect("a histogram can have three digits");
        let (mut lost, mut early) = (0, 0);
        for (timer, place) in self.fired.iter().enumerate() {
            let fired = place.load(Ordering::Relaxed);
            let at = self.start + Duration::from_nanos(fired % PENDING);
            match (fired, at.checked_duration_since(due(timer))) {
                (PENDING, _) => lost += 1,
                (_, None) => early += 1,
                (_, Some(late)) => nanos.record(late.as_nanos() as u64).expect("it grows as needed"),
            }
        }
        for share in LATE {
            outcome.figure(late(share), nanos.value_at_quantile(share) as f64 / 1e3);
        }
        [lost, self.again.load(Ordering::Relaxed), early]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timer_is_accounted_for() {
        let (ledger, mut outcome) = (Ledger::leak(4), Outcome::default());
        [0, 1, 2, 1].into_iter().for_each(|timer| ledger.note(timer).write());
        ledger.wait(Instant::now(), Duration::from_millis(5));
        let hour = Duration::from_secs(3600);
        let due = |timer| if timer == 2 { ledger.start + hour } else { ledger.start };
        assert_eq!(ledger.judge(due, &mut outcome), [1; 3]);
        assert!(outcome.figures.iter().all(|(_, late)| *late > 0.0));
    }
}

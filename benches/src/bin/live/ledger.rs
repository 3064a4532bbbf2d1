//! When each timer fired.
//!
//! A timer has a place of its own in the ledger, and firing writes the time into it: one reading of the clock
//! and one store, with nothing that all firing threads would have to share. The distribution is made from the
//! places when all is over, and every timer is accounted for: one that is lost, early or fired twice is seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Wake;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// In the place of a timer that has not fired.
const PENDING: u64 = u64::MAX;

/// How often it is looked whether the last timers have fired.
const GLANCE: Duration = Duration::from_millis(1);

/// A place for each timer. Times count from when the ledger was made.
pub(crate) struct Ledger {
    start: Instant,
    /// Nanoseconds; written by the thread that fires the timer.
    fired: Vec<AtomicU64>,
    /// How many times a timer fired that had fired before.
    again: AtomicU64,
}

impl Ledger {
    /// A ledger that lives as long as the process, so that noting a time counts no references. Its memory has
    /// been touched.
    pub(crate) fn leak(timers: usize) -> &'static Self {
        let fired = (0..timers).map(|_| AtomicU64::new(PENDING)).collect();
        Box::leak(Box::new(Self { start: Instant::now(), fired, again: AtomicU64::new(0) }))
    }

    /// The place of a timer, for its callback.
    pub(crate) fn note(&'static self, timer: usize) -> Note {
        let timer = u32::try_from(timer).expect("fewer than 2^32 timers");
        Note { ledger: self, timer }
    }

    fn write(&self, timer: u32) {
        let now = self.start.elapsed().as_nanos() as u64;
        let place = &self.fired[timer as usize];
        // Ordering: Relaxed; a place says nothing about any other memory, and only firing twice, which no engine
        // should, could have two threads write to the same one.
        if place.load(Ordering::Relaxed) == PENDING {
            place.store(now, Ordering::Relaxed);
        } else {
            self.again.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sleeps until `last`, when the last timer is due, then looks again and again until all have fired; gives
    /// up after `patience`.
    pub(crate) fn wait(&self, last: Instant, patience: Duration) {
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

    /// Compares every timer's time with its deadline, `due` of its number.
    pub(crate) fn verdict(&self, due: impl Fn(usize) -> Instant) -> Lateness {
        let mut lateness = Lateness::new(self.again.load(Ordering::Relaxed));
        for (timer, place) in self.fired.iter().enumerate() {
            match place.load(Ordering::Relaxed) {
                PENDING => lateness.lost += 1,
                fired => lateness.add(due(timer), self.start + Duration::from_nanos(fired)),
            }
        }
        lateness
    }
}

/// A timer's place in a ledger: what its callback or its waker holds.
#[derive(Clone, Copy)]
pub(crate) struct Note {
    ledger: &'static Ledger,
    timer: u32,
}

impl Note {
    /// Says that the timer fires now.
    #[inline]
    pub(crate) fn write(self) {
        self.ledger.write(self.timer);
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

/// How late timers were, and what should not have happened at all.
pub(crate) struct Lateness {
    pub(crate) lost: u64,
    pub(crate) early: u64,
    pub(crate) again: u64,
    nanos: Histogram<u64>,
}

impl Lateness {
    fn new(again: u64) -> Self {
        const SIGNIFICANT_DIGITS: u8 = 3;
        let nanos = Histogram::new(SIGNIFICANT_DIGITS).expect("a number of digits from 0 to 5");
        Self { lost: 0, early: 0, again, nanos }
    }

    fn add(&mut self, due: Instant, fired: Instant) {
        match fired.checked_duration_since(due) {
            Some(late) => self.nanos.record(late.as_nanos() as u64).expect("the histogram grows as needed"),
            None => self.early += 1,
        }
    }

    /// The lateness, in microseconds, that this share of the timers did not exceed.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        micros(self.nanos.value_at_quantile(share))
    }

    /// The greatest lateness, in microseconds.
    pub(crate) fn max(&self) -> f64 {
        micros(self.nanos.max())
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timer_is_accounted_for() {
        let ledger = Ledger::leak(4);
        [0, 1, 2, 1].into_iter().for_each(|timer| ledger.note(timer).write());
        let hour = Duration::from_secs(3600);
        let due = |timer| if timer == 2 { ledger.start + hour } else { ledger.start };
        let lateness = ledger.verdict(due);
        assert_eq!((lateness.lost, lateness.early, lateness.again), (1, 1, 1));
        assert!(lateness.quantile(0.5) <= lateness.max() && lateness.max() > 0.0);
    }

    #[test]
    fn waiting_ends() {
        let ledger = Ledger::leak(1);
        let patience = Duration::from_millis(5);
        ledger.wait(Instant::now(), patience);
        ledger.note(0).write();
        ledger.wait(Instant::now(), Duration::from_secs(3600));
    }
}

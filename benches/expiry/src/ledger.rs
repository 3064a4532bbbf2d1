//! When each entry was due, and when it was reported.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// An entry that has not been reported.
const NOT_YET: i64 = i64::MIN;

/// Due times and reports of all entries, by their numbers.
pub(crate) struct Ledger {
    begin: Instant,
    lead: Duration,
    span: Duration,
    /// Nanoseconds after the deadline. Written by the listeners' threads.
    late: Box<[AtomicI64]>,
    is_closed: AtomicBool,
}

impl Ledger {
    pub(crate) fn new(entries: usize, lead: Duration, span: Duration) -> Self {
        let late = (0..entries).map(|_| AtomicI64::new(NOT_YET)).collect();
        Self { begin: Instant::now(), lead, span, late, is_closed: AtomicBool::new(false) }
    }

    /// The numbers of the entries, scattered: neighbours are not due one after the other.
    pub(crate) fn entries(&self) -> impl Iterator<Item = u32> {
        /// Odd, and prime to any number of entries that is not a multiple of it.
        const STEP: usize = 7_919;
        let count = self.late.len();
        (0..count).map(move |nth| (nth * STEP % count) as u32)
    }

    pub(crate) fn len(&self) -> usize {
        self.late.len()
    }

    fn deadline(&self, entry: u32) -> Instant {
        self.begin + self.lead + self.span.mul_f64(f64::from(entry) / self.late.len() as f64)
    }

    pub(crate) fn last_deadline(&self) -> Instant {
        self.begin + self.lead + self.span
    }

    /// The time to live that an entry has now.
    pub(crate) fn ttl(&self, entry: u32) -> Duration {
        self.deadline(entry).saturating_duration_since(Instant::now())
    }

    /// Notes that an entry is reported now.
    pub(crate) fn report(&self, entry: u32) {
        let (now, deadline) = (Instant::now(), self.deadline(entry));
        let late = match now.checked_duration_since(deadline) {
            Some(late) => late.as_nanos() as i64,
            None => -(deadline.duration_since(now).as_nanos() as i64),
        };
        // Ordering: Relaxed, figures.
        if !self.is_closed.load(Ordering::Relaxed) {
            // Ordering: Relaxed, as above.
            self.late[entry as usize].store(late, Ordering::Relaxed);
        }
    }

    /// Later reports do not count.
    pub(crate) fn close(&self) {
        // Ordering: Relaxed, see `report`.
        self.is_closed.store(true, Ordering::Relaxed);
    }

    fn sorted(&self) -> Vec<i64> {
        // Ordering: Relaxed, see `report`.
        let late = self.late.iter().map(|late| late.load(Ordering::Relaxed));
        let mut late = late.filter(|late| *late != NOT_YET).collect::<Vec<_>>();
        late.sort_unstable();
        late
    }

    #[cfg(test)]
    pub(crate) fn reported(&self) -> usize {
        self.sorted().len()
    }

    #[cfg(test)]
    pub(crate) fn early(&self) -> usize {
        self.sorted().partition_point(|late| *late < 0)
    }

    /// The cells of a table: reported, early, 50 %, 99 %, max.
    pub(crate) fn row(&self) -> String {
        let late = self.sorted();
        let early = late.partition_point(|late| *late < 0);
        let Some(last) = late.len().checked_sub(1) else { return format!("0 | {early} | | | ") };
        let at = |share: f64| late[(last as f64 * share).ceil() as usize] as f64 / 1e6;
        format!("{} | {early} | {:.2} | {:.2} | {:.2}", late.len(), at(0.5), at(0.99), at(1.0))
    }
}

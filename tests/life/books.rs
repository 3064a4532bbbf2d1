//! The outcome of each timer: it fires once, in time, or is dropped once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shardwheel::ManualClock;

/// The length of a tick.
pub(crate) const TICK: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(crate) struct Sums {
    /// How late a timer may be beside a tick, in ns: the length of a suspend, while it ends.
    slack: AtomicU64,
    opened: AtomicU64,
    fired: AtomicU64,
    dropped: AtomicU64,
}

/// The sums of all timers of one clock.
#[derive(Clone)]
pub(crate) struct Books {
    pub(crate) clock: ManualClock,
    sums: Arc<Sums>,
}

/// When a timer is due, in ns of the clock; `DONE` once it has had its outcome.
#[derive(Clone)]
pub(crate) struct Due(Arc<AtomicU64>);

/// The entry of one timer, which its callback holds.
pub(crate) struct Entry {
    books: Books,
    due: Due,
}

const DONE: u64 = u64::MAX;

impl Due {
    fn set(&self, at: Duration) {
        self.0.store(at.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Whether the timer has fired or was dropped.
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Ordering::Relaxed) == DONE
    }
}

impl Books {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        Self { clock: clock.clone(), sums: Arc::default() }
    }

    /// Opens an entry for a timer that is due after `delay`.
    pub(crate) fn open(&self, delay: Duration) -> (Due, Entry) {
        self.sums.opened.fetch_add(1, Ordering::Relaxed);
        let due = Due(Arc::new(AtomicU64::new(0)));
        due.set(self.clock.elapsed() + delay);
        (due.clone(), Entry { books: self.clone(), due })
    }

    /// Notes that a timer was put off until after `delay`.
    pub(crate) fn put_off(&self, due: &Due, delay: Duration) {
        due.set(self.clock.elapsed() + delay);
    }

    /// Runs `code`, at whose begin all that is due may be late by `slack`.
    pub(crate) fn with_slack(&self, slack: Duration, code: impl FnOnce()) {
        self.sums.slack.store(slack.as_nanos() as u64, Ordering::Relaxed);
        code();
        self.sums.slack.store(0, Ordering::Relaxed);
    }

    /// The timers without an outcome, by the books.
    pub(crate) fn pending(&self) -> u64 {
        let [opened, fired, dropped] = self.outcomes();
        opened - fired - dropped
    }

    /// How many timers were opened, have fired, and were dropped.
    pub(crate) fn outcomes(&self) -> [u64; 3] {
        let Sums { opened, fired, dropped, .. } = &*self.sums;
        [opened, fired, dropped].map(|sum| sum.load(Ordering::Relaxed))
    }

    /// Checks that what was due at `due` is neither early nor too late.
    pub(crate) fn check_time(&self, due: Duration) {
        let (now, slack) = (self.clock.elapsed(), self.sums.slack.load(Ordering::Relaxed));
        assert!(now >= due, "due at {due:?}, fired at {now:?}");
        assert!(now < due + TICK + Duration::from_nanos(slack), "due at {due:?}, fired at {now:?}");
    }
}

impl Entry {
    pub(crate) fn fire(&self) {
        let due = self.due.0.swap(DONE, Ordering::Relaxed);
        assert_ne!(due, DONE, "a timer has fired twice");
        self.books.check_time(Duration::from_nanos(due));
        self.books.sums.fired.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.due.0.swap(DONE, Ordering::Relaxed) != DONE {
            self.books.sums.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

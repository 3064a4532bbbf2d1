//! A driven timer whose clock somebody sets back and forth.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shardwheel::{Clock, Driver, Timer};

/// A clock that may be set.
struct StepClock {
    base: Instant,
    nanos: AtomicU64,
    /// The latest time that it has shown.
    latest: AtomicU64,
}

impl Clock for StepClock {
    fn now(&self) -> Instant {
        self.base + Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

impl StepClock {
    fn set(&self, nanos: u64) {
        self.nanos.store(nanos, Ordering::Relaxed);
        self.latest.fetch_max(nanos, Ordering::Relaxed);
    }

    fn latest(&self) -> Instant {
        self.base + Duration::from_nanos(self.latest.load(Ordering::Relaxed))
    }
}

pub(crate) struct Stepping {
    timer: Timer,
    driver: Driver,
    clock: Arc<StepClock>,
    scheduled: u64,
    fired: Arc<AtomicU64>,
}

/// Where the clock stands at first, so that it can be set back.
const START: Duration = Duration::from_secs(24 * 3_600);

impl Stepping {
    pub(crate) fn new() -> Self {
        let nanos = START.as_nanos() as u64;
        let (nanos, latest) = (AtomicU64::new(nanos), AtomicU64::new(nanos));
        let clock = Arc::new(StepClock { base: Instant::now(), nanos, latest });
        let builder = Timer::builder().clock(Arc::clone(&clock));
        let (timer, driver) = builder.build_driven().expect("settings within their limits");
        Self { timer, driver, clock, scheduled: 0, fired: Arc::default() }
    }

    /// Sets a timer, now and then.
    pub(crate) fn act(&mut self, random: &mut fastrand::Rng) {
        if random.u32(..4) > 0 {
            return;
        }
        let delay = Duration::from_millis(random.u64(..2 * 3_600_000));
        let due = self.timer.now() + delay;
        let (clock, fired) = (Arc::clone(&self.clock), Arc::clone(&self.fired));
        let fire = move || {
            assert!(clock.latest() >= due, "early by {:?}", due - clock.latest());
            fired.fetch_add(1, Ordering::Relaxed);
        };
        self.timer.schedule_after(delay, fire).expect("it is open");
        self.scheduled += 1;
    }

    /// Time passes; now and then the clock is set back or forth by up to an hour.
    pub(crate) fn pass(&mut self, time: Duration, random: &mut fastrand::Rng) {
        let mut nanos = self.clock.nanos.load(Ordering::Relaxed) + time.as_nanos() as u64;
        if random.u32(..500) == 0 {
            let step = random.u64(..3_600_000_000_000);
            nanos = if random.bool() { nanos + step } else { nanos.saturating_sub(step) };
        }
        self.clock.set(nanos);
        while self.driver.turn() > 0 {}
    }

    /// What is not pending has fired, once.
    pub(crate) fn check(&self) {
        let (stats, fired) = (self.timer.stats(), self.fired.load(Ordering::Relaxed));
        assert_eq!((stats.fired, stats.scheduled), (fired, self.scheduled));
        assert_eq!(fired + stats.pending as u64, self.scheduled);
    }

    /// All that is left fires when its time has come.
    pub(crate) fn end(mut self) {
        let hours = Duration::from_secs(3 * 3_600).as_nanos() as u64;
        self.clock.set(self.clock.latest.load(Ordering::Relaxed) + hours);
        while self.driver.turn() > 0 {}
        assert_eq!(self.fired.load(Ordering::Relaxed), self.scheduled);
    }
}

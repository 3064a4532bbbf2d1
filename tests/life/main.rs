//! A server's life in virtual time: years of values in a delay queue, on a driven timer whose clock
//! is set back and forth.
//!
//! The choices of a seed drive it, minute by minute: values are inserted, reset, removed and
//! received, and at the end of each day threads come and go. No value comes out early, none stays
//! when its time has passed, and every day all counts balance and memory is bounded. (`simulation`
//! does the same for callbacks, sleeps and shards, with an exact time for each.)
//!
//! Twenty days are one of the tests. `SHARDWHEEL_LIFE_DAYS` sets another number: ten years take some
//! minutes in a release build. `SHARDWHEEL_LIFE_SEED` repeats an earlier life.

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use shardwheel::{Clock, DelayQueue, Driver, QueueKey, Timer};

use support::{HOUR, ms};

/// Values in the queue, at most.
const VALUES: usize = 3_000;

/// Nodes that a night may leave memory for: four segments.
const NODES_OF_A_NIGHT: usize = 4 * (2 << 20) / 64;

/// A clock that may be set, in milliseconds. It begins with a day, so that it can be set back.
struct StepClock {
    base: Instant,
    millis: AtomicU64,
}

impl Clock for StepClock {
    fn now(&self) -> Instant {
        self.base + ms(self.millis.load(Ordering::Relaxed))
    }
}

struct Life {
    random: Rng,
    timer: Timer,
    driver: Driver,
    clock: Arc<StepClock>,
    /// The latest time that the clock has shown.
    latest: Instant,
    queue: DelayQueue<u64>,
    /// What is in the queue, and the time from which it may come out.
    held: BTreeMap<u64, (QueueKey, Instant)>,
    inserted: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let clock = Arc::new(StepClock { base: Instant::now(), millis: AtomicU64::new(24 * 3_600_000) });
        let builder = Timer::builder().clock(Arc::clone(&clock));
        let (timer, driver) = builder.build_driven().expect("settings within their limits");
        let (queue, latest) = (DelayQueue::new(&timer), clock.now());
        let random = Rng::with_seed(seed);
        Self { random, timer, driver, clock, latest, queue, held: BTreeMap::new(), inserted: 0 }
    }

    /// At most three days.
    fn delay(&mut self) -> Duration {
        ms(self.random.u64(1..3 * 24 * 3_600_000))
    }

    /// What happens in a minute.
    fn act(&mut self) {
        for _ in 0..self.random.usize(..6).min(VALUES - self.held.len()) {
            let (delay, value) = (self.delay(), self.inserted);
            let due = self.timer.now() + delay;
            let key = self.queue.insert(value, delay).expect("it is open");
            self.held.insert(value, (key, due));
            self.inserted += 1;
        }
        let from = self.random.u64(..=self.inserted);
        let Some((&value, _)) = self.held.range(from..).next() else { return };
        let (delay, now) = (self.delay(), self.timer.now());
        let (key, due) = self.held.get_mut(&value).expect("it was picked");
        if self.random.bool() {
            assert!(self.queue.reset(key, delay), "what has not been received can be moved");
            *due = now + delay;
        } else {
            assert_eq!(self.queue.remove(key), Some(value));
            self.held.remove(&value);
        }
    }

    /// Time passes; now and then the clock is set back or forth by up to an hour. What is due comes
    /// out.
    fn pass(&mut self, time: Duration) {
        let step = self.random.u64(..3_600_000);
        let now = self.clock.millis.load(Ordering::Relaxed) + time.as_millis() as u64;
        let now = match self.random.u32(..1_000) {
            0 => now + step,
            1 => now - step,
            _ => now,
        };
        self.clock.millis.store(now, Ordering::Relaxed);
        self.latest = self.latest.max(self.clock.now());
        while self.driver.turn() > 0 {}
        while let Some(expired) = self.queue.try_recv() {
            let (key, due) = self.held.remove(&expired.value).expect("it comes out once");
            assert!(key == expired.key && due <= self.latest, "early by {:?}", due - self.latest);
        }
        // The last tick may still be on.
        let overdue = self.held.values().find(|(_, due)| *due + ms(1) < self.latest);
        assert!(overdue.is_none(), "overdue at {:?}: {overdue:?}", self.latest);
    }

    /// Threads come, insert and remove, and go.
    fn run_threads(&mut self) {
        let work = |mut random: Rng| {
            for _ in 0..200 {
                let key = self.queue.insert(0, HOUR + ms(random.u64(..3_600_000))).expect("it is open");
                assert_eq!(self.queue.remove(&key), Some(0));
            }
        };
        thread::scope(|scope| {
            for random in [(); 4].map(|()| self.random.fork()) {
                scope.spawn(|| work(random));
            }
        });
    }

    /// Every count balances.
    fn end_day(&self) {
        let stats = self.timer.stats();
        assert_eq!(stats.scheduled, stats.fired + stats.cancelled + stats.pending as u64, "{stats:?}");
        assert_eq!((self.queue.len(), stats.pending), (self.held.len(), self.held.len()), "{stats:?}");
        assert!(stats.node_capacity <= NODES_OF_A_NIGHT, "{stats:?}");
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn every_count_balances_at_the_end_of_each_day() {
    let days = number("SHARDWHEEL_LIFE_DAYS").unwrap_or(20);
    let seed = number("SHARDWHEEL_LIFE_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("{days} days; SHARDWHEEL_LIFE_SEED={seed} repeats them");
    let mut life = Life::new(seed);
    for _ in 0..days {
        for _ in 0..24 * 60 {
            life.act();
            life.pass(ms(60_000));
        }
        life.run_threads();
        life.end_day();
    }
    println!("{:?}", life.timer.stats());
    assert!(life.timer.shutdown().next().is_none(), "there was no callback");
    let left = std::iter::from_fn(|| life.queue.try_recv()).count() + life.queue.unexpired().count();
    assert_eq!(left, life.held.len(), "after the timer's end all values are there");
}

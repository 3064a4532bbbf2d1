//! A delay queue on a driven timer, whose clock is set back and forth: no value comes out early,
//! none stays when its time has passed, all counts balance, and memory is bounded, though threads
//! come and go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Clock, DelayQueue, Driver, QueueKey, Timer};

use crate::draw::Choices;
use crate::log::{Log, Played};
use crate::support::{HOUR, ms, secs};

const STEPS: u32 = 100;

/// Values in the queue, at most.
const VALUES: usize = 3_000;

/// Nodes that a day may leave memory for: four segments.
const NODES_OF_A_DAY: usize = 4 * (2 << 20) / 64;

const MILLIS_OF_AN_HOUR: usize = 3_600_000;

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

struct Scene {
    draw: Choices<'static>,
    log: Log,
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

/// Plays the choices of a seed.
pub(crate) fn play(seed: u64, log: Log) -> Played {
    let clock = Arc::new(StepClock { base: Instant::now(), millis: AtomicU64::new(24 * 3_600_000) });
    let builder = Timer::builder().clock(Arc::clone(&clock));
    let (timer, driver) = builder.build_driven().expect("settings within their limits");
    let (queue, begin) = (DelayQueue::new(&timer), clock.now());
    let draw = Choices::Seed(fastrand::Rng::with_seed(seed));
    let mut scene =
        Scene { draw, log, timer, driver, clock, latest: begin, queue, held: BTreeMap::new(), inserted: 0 };
    for step in 0..STEPS {
        scene.act();
        scene.pass();
        if step % 20 == 0 {
            scene.run_threads();
            scene.check();
        }
    }
    scene.end();
    let (seconds, fired) = ((scene.latest - begin).as_secs(), scene.timer.stats().fired);
    Played { seconds, fired, hash: scene.log.hash() }
}

impl Scene {
    /// At most three days.
    fn delay(&mut self) -> Duration {
        ms(1 + self.draw.below(3 * 24 * MILLIS_OF_AN_HOUR) as u64)
    }

    /// Values are inserted; one is moved or removed.
    fn act(&mut self) {
        for _ in 0..self.draw.below(40).min(VALUES - self.held.len()) {
            let (delay, value) = (self.delay(), self.inserted);
            let due = self.timer.now() + delay;
            let key = self.queue.insert(value, delay).expect("it is open");
            self.log.add(("insert", value, delay));
            self.held.insert(value, (key, due));
            self.inserted += 1;
        }
        for _ in 0..8 {
            let from = self.draw.below(self.inserted as usize + 1) as u64;
            let Some((&value, _)) = self.held.range(from..).next() else { return };
            let (delay, now, moves) = (self.delay(), self.timer.now(), self.draw.once_in(2));
            self.log.add(("change", value, delay, moves));
            let (key, due) = self.held.get_mut(&value).expect("it was picked");
            if moves {
                assert!(self.queue.reset(key, delay), "what has not been received can be moved");
                *due = now + delay;
            } else {
                assert_eq!(self.queue.remove(key), Some(value));
                self.held.remove(&value);
            }
        }
    }

    /// Time passes, up to twelve hours; now and then the clock is set back by up to an hour. What is
    /// due comes out.
    fn pass(&mut self) {
        let (forth, back) = (self.draw.below(12 * MILLIS_OF_AN_HOUR), self.draw.below(MILLIS_OF_AN_HOUR));
        let is_set_back = self.draw.once_in(50);
        let now = self.clock.millis.load(Ordering::Relaxed);
        let now = if is_set_back { now - back as u64 } else { now + forth as u64 };
        self.clock.millis.store(now, Ordering::Relaxed);
        self.latest = self.latest.max(self.clock.now());
        self.log.add(("pass", now));
        while self.driver.turn() > 0 {}
        while let Some(expired) = self.queue.try_recv() {
            self.log.add(("received", expired.value));
            let (key, due) = self.held.remove(&expired.value).expect("it comes out once");
            assert!(key == expired.key && due <= self.latest, "early by {:?}", due - self.latest);
        }
        // The last tick may still be on.
        let overdue = self.held.values().find(|(_, due)| *due + ms(1) < self.latest);
        assert!(overdue.is_none(), "overdue at {:?}: {overdue:?}", self.latest);
    }

    /// Threads come, insert and remove, and go.
    fn run_threads(&mut self) {
        let work = |thread: u64| {
            for number in 0..50 {
                let key = self.queue.insert(0, HOUR + secs(number * thread)).expect("it is open");
                assert_eq!(self.queue.remove(&key), Some(0));
            }
        };
        thread::scope(|scope| (0..4).for_each(|thread| _ = scope.spawn(move || work(thread))));
    }

    /// Every count balances.
    fn check(&self) {
        let stats = self.timer.stats();
        assert_eq!(stats.scheduled, stats.fired + stats.cancelled + stats.pending as u64, "{stats:?}");
        assert_eq!((self.queue.len(), stats.pending), (self.held.len(), self.held.len()), "{stats:?}");
        assert!(stats.node_capacity <= NODES_OF_A_DAY, "{stats:?}");
    }

    /// After the timer's end all values are there.
    fn end(&mut self) {
        self.check();
        assert!(self.timer.shutdown().next().is_none(), "there was no callback");
        let left = std::iter::from_fn(|| self.queue.try_recv()).count() + self.queue.unexpired().count();
        assert_eq!(left, self.held.len(), "values after the end");
    }
}

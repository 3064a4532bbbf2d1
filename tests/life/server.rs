//! What a server does with one timer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use shardwheel::{ManualClock, Sleep, Timer, TimerKey};

use crate::books::{Books, Due, Entry, TICK};
use crate::queue::Queue;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Connections that are open at once, at most.
const CONNECTIONS: usize = 2_000;

/// Nodes that a night may leave memory for: four segments of each shard.
const NODES_OF_A_NIGHT: usize = 2 * 4 * (2 << 20) / 64;

/// A connection that is closed if nothing comes for `idle`.
struct Connection {
    key: TimerKey,
    due: Due,
    idle: Duration,
}

pub(crate) struct Server {
    timer: Timer,
    books: Books,
    connections: Vec<Connection>,
    queue: Queue,
    /// With the time at which each is due.
    sleeps: Vec<(Sleep, Duration)>,
    hourly: Arc<AtomicU64>,
    daily: Arc<AtomicU64>,
}

impl Server {
    pub(crate) fn new(timer: &Timer, clock: &ManualClock) -> Self {
        let [hourly, daily] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let count = |counter: &Arc<AtomicU64>| {
            let counter = Arc::clone(counter);
            move || _ = counter.fetch_add(1, Ordering::Relaxed)
        };
        timer.schedule_every(HOUR, count(&hourly)).expect("it is open");
        timer.schedule_with(|previous| Some(previous + DAY), count(&daily)).expect("it is open");
        let (books, queue) = (Books::new(clock), Queue::new(timer));
        let (connections, sleeps) = (Vec::new(), Vec::new());
        Self { timer: timer.clone(), books, connections, queue, sleeps, hourly, daily }
    }

    /// What happens in a minute.
    pub(crate) fn act(&mut self, random: &mut fastrand::Rng) {
        for _ in 0..random.usize(..8) {
            self.connect(random);
        }
        for _ in 0..random.usize(..24) {
            self.receive(random);
        }
        if random.u32(..4) == 0 {
            request(&self.timer, &self.books, 0, random.u32(..12));
        }
        self.sleep(random);
        self.queue.act(&self.books, random);
    }

    fn connect(&mut self, random: &mut fastrand::Rng) {
        if self.connections.len() == CONNECTIONS {
            return;
        }
        let idle = Duration::from_millis(random.u64(30_000..900_000));
        let (due, entry) = self.books.open(idle);
        let key = self.timer.schedule_after(idle, move || entry.fire()).expect("it is open");
        self.connections.push(Connection { key, due, idle });
    }

    /// A packet of some connection comes, or its end.
    fn receive(&mut self, random: &mut fastrand::Rng) {
        if self.connections.is_empty() {
            return;
        }
        let nth = random.usize(..self.connections.len());
        let Connection { key, due, idle } = &mut self.connections[nth];
        let was_done = due.is_done();
        assert_eq!(self.timer.is_pending(*key), !was_done);
        if random.u32(..8) == 0 {
            assert_eq!(self.timer.cancel(*key), !was_done);
            assert!(due.is_done(), "a cancel drops the callback");
        } else if let Some(moved) = self.timer.reschedule_after(*key, *idle) {
            assert!(!was_done);
            *key = moved;
            self.books.put_off(due, *idle);
        } else {
            assert!(was_done, "a timer that has not fired can be put off");
        }
        if due.is_done() {
            self.connections.swap_remove(nth);
        }
    }

    /// A task sleeps, one is given up, and one looks whether its sleep is over.
    fn sleep(&mut self, random: &mut fastrand::Rng) {
        if self.sleeps.len() < 500 && random.u32(..8) == 0 {
            let length = Duration::from_millis(random.u64(..40 * 24 * 3_600_000));
            self.sleeps.push((self.timer.sleep(length), self.books.clock.elapsed() + length));
        }
        if self.sleeps.is_empty() {
            return;
        }
        let nth = random.usize(..self.sleeps.len());
        let (sleep, due) = &mut self.sleeps[nth];
        let now = self.books.clock.elapsed();
        let mut poll = || Pin::new(&mut *sleep).poll(&mut Context::from_waker(Waker::noop()));
        // Every 128th answer of a sleep that is over is pending first, and the next one is ready.
        let mut answer = poll();
        if answer.is_pending() && now >= *due + TICK {
            answer = poll();
        }
        match answer {
            Poll::Ready(ended) => {
                assert!(ended.is_ok() && now >= *due, "due at {due:?}, over at {now:?}");
                drop(self.sleeps.swap_remove(nth));
            }
            Poll::Pending => {
                assert!(now < *due + TICK, "due at {due:?}, pending at {now:?}");
                if random.u32(..20) == 0 {
                    drop(self.sleeps.swap_remove(nth));
                }
            }
        }
    }

    /// The machine stands still for that long.
    pub(crate) fn suspend(&self, length: Duration) {
        self.books.with_slack(length, || self.books.clock.jump(length));
    }

    /// Threads come, schedule and cancel, and go; some timers outlive them.
    pub(crate) fn run_threads(&self, random: &mut fastrand::Rng) {
        thread::scope(|scope| {
            for _ in 0..4 {
                let (timer, books, mut random) = (&self.timer, &self.books, random.fork());
                scope.spawn(move || {
                    for _ in 0..200 {
                        let delay = Duration::from_millis(random.u64(1..48 * 3_600_000));
                        let (due, entry) = books.open(delay);
                        let key = timer.schedule_after(delay, move || entry.fire()).expect("it is open");
                        if random.u32(..4) > 0 {
                            assert!(timer.cancel(key) && due.is_done());
                        }
                    }
                });
            }
        });
    }

    /// Everything balances.
    pub(crate) fn check_day(&self, day: u64) {
        let stats = self.timer.stats();
        let ended = stats.fired + stats.cancelled + stats.handed_back;
        assert_eq!(stats.scheduled + stats.recurred, ended + stats.pending as u64, "{stats:?}");
        let by_books = self.books.pending() + self.queue.pending() + 2;
        let sleeping = stats.pending as u64 - by_books;
        assert!(sleeping <= self.sleeps.len() as u64, "{sleeping} of {}", self.sleeps.len());
        let runs = [&self.hourly, &self.daily].map(|counter| counter.load(Ordering::Relaxed));
        assert_eq!(runs, [24 * day, day], "hourly and daily");
        assert_eq!(stats.panics, 0);
        assert!(stats.node_capacity <= NODES_OF_A_NIGHT, "{} nodes", stats.node_capacity);
    }

    /// The sums, for a reader.
    pub(crate) fn line(&self) -> String {
        let [opened, fired, dropped] = self.books.outcomes();
        let (stats, received) = (self.timer.stats(), self.queue.received());
        format!(
            "{opened} callbacks, {fired} fired, {dropped} cancelled; {received} values; {} scheduled in all, \
             {} pending, {} nodes",
            stats.scheduled, stats.pending, stats.node_capacity
        )
    }

    /// The timer ends, and hands back what is pending.
    pub(crate) fn end(self) {
        let pending = self.books.pending();
        drop(self.sleeps);
        let unfired = self.timer.shutdown();
        // The hourly and the daily job are callbacks, too.
        assert_eq!(unfired.len() as u64, pending + 2);
        drop(unfired);
        assert_eq!(self.books.pending(), 0);
        self.queue.end();
        assert_eq!(self.timer.stats().pending, 0);
    }
}

/// Sends a request, which fails so many times; each attempt waits twice as long as the one before.
fn request(timer: &Timer, books: &Books, attempt: u32, failures: u32) {
    let delay = Duration::from_secs(1 << attempt);
    let (_, entry) = books.open(delay);
    let (weak, books) = (timer.downgrade(), books.clone());
    let retry = move || answer(entry, &books, weak.upgrade(), attempt, failures);
    timer.schedule_after(delay, retry).expect("it is open");
}

fn answer(entry: Entry, books: &Books, timer: Option<Timer>, attempt: u32, failures: u32) {
    entry.fire();
    if let Some(timer) = timer.filter(|_| attempt < failures) {
        request(&timer, books, attempt + 1, failures);
    }
}

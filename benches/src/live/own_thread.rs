//! A timer as a program writes it for itself: a thread, a mutex, a condition variable, and a heap or
//! a wheel.
//!
//! The thread takes up to 64 due timers out under one lock and calls them without it. It cannot
//! cancel, which makes it faster. [`Exact`] has a heap: a new timer wakes the thread only if it is
//! the first of all, and the thread wakes for almost each timer. [`Flat`] has a wheel with a bucket
//! for each tick of a minute, and its thread wakes at each tick.

use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::ledger::Note;
use super::timer::{Live, MILLISECOND, Schedules};
use crate::engines::{Due, pop_due};

const BATCH: usize = 64;
const SOUND: &str = "no thread panics with the lock";

pub(super) type Task = Box<dyn FnOnce() + Send>;

/// What is pending. Deadlines are ns since the start.
pub(super) trait Store: Default + Send + 'static {
    const NAME: &'static str;

    fn push(&mut self, deadline: u64, item: Task);
    fn pop_due(&mut self, now: u64) -> Option<Task>;
    /// When the thread has to wake for it.
    fn first(&self) -> Option<u64>;
}

impl Store for BinaryHeap<Due<Task>> {
    const NAME: &'static str = "heap thread";

    fn push(&mut self, deadline: u64, item: Task) {
        self.push(Due { deadline, item });
    }

    fn pop_due(&mut self, now: u64) -> Option<Task> {
        pop_due(self, now).map(|due| due.item)
    }

    fn first(&self) -> Option<u64> {
        self.peek().map(|first| first.deadline)
    }
}

/// A bucket for each tick. No timer may be due later than the last bucket.
#[derive(Default)]
pub(super) struct Wheel {
    buckets: Vec<Vec<Task>>,
    /// The tick that is being fired, and the number of pending timers.
    now: u64,
    pending: usize,
}

const TICK: u64 = MILLISECOND.as_nanos() as u64;
const BUCKETS: u64 = 1 << 16;

impl Store for Wheel {
    const NAME: &'static str = "wheel thread";

    fn push(&mut self, deadline: u64, item: Task) {
        let tick = deadline.div_ceil(TICK).max(self.now + 1);
        assert!(tick < self.now + BUCKETS, "the wheel is too small");
        self.buckets.resize_with(BUCKETS as usize, Vec::new);
        self.buckets[(tick % BUCKETS) as usize].push(item);
        self.pending += 1;
    }

    fn pop_due(&mut self, now: u64) -> Option<Task> {
        while self.pending > 0 && self.now <= now / TICK {
            if let Some(item) = self.buckets[(self.now % BUCKETS) as usize].pop() {
                self.pending -= 1;
                return Some(item);
            }
            self.now += 1;
        }
        None
    }

    fn first(&self) -> Option<u64> {
        (self.pending > 0).then_some(self.now * TICK)
    }
}

#[derive(Default)]
struct State<S> {
    store: S,
    closed: bool,
}

struct Shared<S> {
    start: Instant,
    state: Mutex<State<S>>,
    changed: Condvar,
}

impl<S: Store> Shared<S> {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn push(&self, deadline: u64, item: Task) {
        let mut state = self.state.lock().expect(SOUND);
        let is_first = state.store.first().is_none_or(|first| deadline < first);
        state.store.push(deadline, item);
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// The thread: calls what is due, and waits for the next deadline or a timer before it.
    fn run(&self) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut state = self.state.lock().expect(SOUND);
        while !state.closed {
            let now = self.now();
            batch.extend(std::iter::from_fn(|| state.store.pop_due(now)).take(BATCH));
            if batch.is_empty() {
                state = self.wait(state);
            } else {
                drop(state);
                batch.drain(..).for_each(|item: Task| item());
                state = self.state.lock().expect(SOUND);
            }
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<S>>) -> MutexGuard<'a, State<S>> {
        match state.store.first() {
            None => self.changed.wait(state).expect(SOUND),
            Some(first) => {
                let ahead = Duration::from_nanos(first.saturating_sub(self.now()));
                self.changed.wait_timeout(state, ahead).expect(SOUND).0
            }
        }
    }
}

pub(super) struct OwnThread<S: Store> {
    shared: Arc<Shared<S>>,
    thread: Option<JoinHandle<()>>,
}

pub(super) type Exact = OwnThread<BinaryHeap<Due<Task>>>;
pub(super) type Flat = OwnThread<Wheel>;

impl<S: Store> OwnThread<S> {
    fn schedule_at(&self, due: Instant, task: Task) {
        self.shared.push(due.saturating_duration_since(self.shared.start).as_nanos() as u64, task);
    }
}

impl<S: Store> Live for OwnThread<S> {
    const NAME: &'static str = S::NAME;

    type Kept = ();

    fn start() -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { start: Instant::now(), state, changed });
        let threads = Arc::clone(&shared);
        let thread = Some(thread::spawn(move || threads.run()));
        Self { shared, thread }
    }

    fn place(&self, due: Instant, note: Note) {
        self.schedule_at(due, Box::new(move || note.write()));
    }
}

impl<S: Store> Schedules for OwnThread<S> {
    type Key = ();

    #[inline]
    fn schedule_after<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) {
        self.schedule_at(Instant::now() + delay, Box::new(task));
    }
}

impl<S: Store> Drop for OwnThread<S> {
    fn drop(&mut self) {
        self.shared.state.lock().expect(SOUND).closed = true;
        self.shared.changed.notify_one();
        self.thread.take().map(JoinHandle::join);
    }
}

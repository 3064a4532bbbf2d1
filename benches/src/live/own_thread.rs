//! A timer as a program writes it for itself: a thread, a heap behind a mutex, a condition variable.
//!
//! A new timer wakes the thread only if it is the first of all, and the thread wakes for almost each
//! timer. It takes up to 64 due timers out under one lock and calls them without it. It cannot
//! cancel, which makes it faster.

use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::ledger::Note;
use super::timer::{Live, Schedules};
use crate::engines::{Due, pop_due};

const BATCH: usize = 64;
const SOUND: &str = "no thread panics with the lock";

type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    /// Deadlines are ns since the start.
    heap: BinaryHeap<Due<Task>>,
    closed: bool,
}

struct Shared {
    start: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn push(&self, deadline: u64, item: Task) {
        let mut state = self.state.lock().expect(SOUND);
        let is_first = state.heap.peek().is_none_or(|first| deadline < first.deadline);
        state.heap.push(Due { deadline, item });
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
            batch.extend(std::iter::from_fn(|| pop_due(&mut state.heap, now)).take(BATCH));
            if batch.is_empty() {
                state = self.wait(state);
            } else {
                drop(state);
                batch.drain(..).for_each(|due| (due.item)());
                state = self.state.lock().expect(SOUND);
            }
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        match state.heap.peek().map(|first| first.deadline) {
            None => self.changed.wait(state).expect(SOUND),
            Some(first) => {
                let ahead = Duration::from_nanos(first.saturating_sub(self.now()));
                self.changed.wait_timeout(state, ahead).expect(SOUND).0
            }
        }
    }
}

pub(super) struct HeapThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl HeapThread {
    fn schedule_at(&self, due: Instant, task: Task) {
        self.shared.push(due.saturating_duration_since(self.shared.start).as_nanos() as u64, task);
    }
}

impl Live for HeapThread {
    const NAME: &'static str = "heap thread";

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

impl Schedules for HeapThread {
    type Key = ();

    #[inline]
    fn schedule_after<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) {
        self.schedule_at(Instant::now() + delay, Box::new(task));
    }
}

impl Drop for HeapThread {
    fn drop(&mut self) {
        self.shared.state.lock().expect(SOUND).closed = true;
        self.shared.changed.notify_one();
        self.thread.take().map(JoinHandle::join);
    }
}

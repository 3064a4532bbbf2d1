//! A thread with a binary heap behind a mutex, and a condition variable to wake it: what a program has that
//! writes its own timer.
//!
//! Whoever adds a timer pushes it, and wakes the thread only where the new timer comes before all others. The
//! thread takes up to [`BATCH`] due timers out under one lock and calls them without it, so that a callback may
//! add timers and a slow one holds up nobody who does. Entries have 24 bytes and compare by deadline alone. It
//! cannot cancel, which makes it the faster for the others.
//!
//! There are two of it. One goes by the deadlines themselves, as such a thread usually does: it is hardly ever
//! late, and wakes for each timer. The other rounds deadlines up to ticks, as the other engines do, and
//! so wakes at most once a tick.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::engine::{Live, Schedules};
use crate::ledger::Note;

/// How many due timers are taken out under one lock.
const BATCH: usize = 64;

type Task = Box<dyn FnOnce() + Send>;

struct Entry {
    /// Nanoseconds since the start.
    due: Reverse<u64>,
    task: Task,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

#[derive(Default)]
struct State {
    heap: BinaryHeap<Entry>,
    closed: bool,
}

impl State {
    /// Moves due timers to `batch`, until it is full.
    fn take_due(&mut self, now: u64, batch: &mut Vec<Task>) {
        while batch.len() < BATCH {
            match self.heap.peek_mut() {
                Some(first) if first.due.0 <= now => batch.push(PeekMut::pop(first).task),
                _ => return,
            }
        }
    }
}

struct Shared {
    start: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding the heap")
    }

    fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }

    fn push(&self, due: u64, task: Task) {
        let first = {
            let mut state = self.lock();
            let first = state.heap.peek().is_none_or(|first| due < first.due.0);
            state.heap.push(Entry { due: Reverse(due), task });
            first
        };
        if first {
            self.changed.notify_one();
        }
    }

    /// The thread: calls what is due, and waits for the next deadline or a timer before it.
    fn run(&self) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut state = self.lock();
        while !state.closed {
            state.take_due(self.now(), &mut batch);
            if batch.is_empty() {
                state = self.wait(state);
            } else {
                drop(state);
                batch.drain(..).for_each(|task| task());
                state = self.lock();
            }
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        const SOUND: &str = "nobody panics while holding the heap";
        match state.heap.peek() {
            None => self.changed.wait(state).expect(SOUND),
            Some(first) => {
                let ahead = Duration::from_nanos(first.due.0.saturating_sub(self.now()));
                self.changed.wait_timeout(state, ahead).expect(SOUND).0
            }
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A heap and its thread; on ticks where `TICKED`.
pub(crate) struct HeapThread<const TICKED: bool> {
    shared: Arc<Shared>,
    /// Nanoseconds that deadlines are rounded up to a multiple of.
    tick: u64,
    thread: Option<JoinHandle<()>>,
}

/// Goes by the deadlines themselves.
pub(crate) type Exact = HeapThread<false>;

/// Rounds deadlines up to ticks.
pub(crate) type Ticked = HeapThread<true>;

impl<const TICKED: bool> HeapThread<TICKED> {
    fn schedule_at(&self, due: Instant, task: Task) {
        let due = nanos(due.saturating_duration_since(self.shared.start));
        self.shared.push(due.checked_next_multiple_of(self.tick).unwrap_or(u64::MAX), task);
    }
}

impl<const TICKED: bool> Live for HeapThread<TICKED> {
    const NAME: &'static str = if TICKED { "heap thread on ticks" } else { "heap thread" };

    type Kept = ();

    fn start(tick: Duration) -> Self {
        let state = Mutex::new(State::default());
        let shared = Arc::new(Shared { start: Instant::now(), state, changed: Condvar::new() });
        let threads = Arc::clone(&shared);
        let thread = Some(thread::spawn(move || threads.run()));
        Self { shared, tick: if TICKED { nanos(tick) } else { 1 }, thread }
    }

    fn place(&self, due: Instant, note: Note) {
        self.schedule_at(due, Box::new(move || note.write()));
    }
}

impl<const TICKED: bool> Schedules for HeapThread<TICKED> {
    type Key = ();

    #[inline]
    fn schedule_after<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) {
        self.schedule_at(Instant::now() + delay, Box::new(task));
    }
}

impl<const TICKED: bool> Drop for HeapThread<TICKED> {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            eprintln!("the heap's thread panicked: {panic:?}");
        }
    }
}

//! Shuttle's types in the place of the standard library's: see `src/sync/mod.rs`. A thread gives
//! way to another one at each operation of theirs, and a scheduler says to which.
//!
//! Shuttle has no time, so there is a clock here. It is a task of the model, so the scheduler also
//! decides when time passes: each step of the clock goes to the first moment for which a thread
//! waits, or a little beyond it, and wakes that thread. A thread that works takes no time by
//! itself, but any amount of time may pass between two of its operations.

use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::OnceLock;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use shuttle::rand::Rng;

pub(crate) use atomic_waker::AtomicWaker;
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard, mpsc};
pub(crate) use shuttle::thread::yield_now;

/// The time, and what waits for more of it.
struct State {
    elapsed: Duration,
    /// The threads that wait with a limit, and until when.
    waits: Vec<(Duration, shuttle::thread::Thread)>,
    /// Wakes the clock, which waits while no thread does.
    idle: Option<Waker>,
}

impl State {
    const NEW: Self = Self { elapsed: Duration::ZERO, waits: Vec::new(), idle: None };
}

std::thread_local! {
    /// All threads of a model are coroutines of one thread of the system. It runs one model at a
    /// time.
    static STATE: RefCell<State> = const { RefCell::new(State::NEW) };
}

fn with<R>(code: impl FnOnce(&mut State) -> R) -> R {
    STATE.with(|state| code(&mut state.borrow_mut()))
}

pub(crate) fn now() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(Instant::now) + with(|state| state.elapsed)
}

/// The clock of a model, for the model's body.
#[derive(Debug)]
pub struct VirtualClock;

impl VirtualClock {
    /// Starts the clock. The model does not wait for the clock's end.
    pub fn start() {
        with(|state| *state = State::NEW);
        // The drop of the handle detaches the task.
        drop(shuttle::future::spawn(run_clock()));
    }

    /// The time now.
    #[must_use]
    pub fn now() -> Instant {
        now()
    }

    /// Blocks the calling thread until so much time has passed.
    pub fn sleep(duration: Duration) {
        thread::sleep(duration);
    }
}

/// How far a step of the clock goes beyond the moment that a thread waits for.
const BEYOND: [Duration; 4] =
    [Duration::ZERO, Duration::from_nanos(1), Duration::from_micros(300), Duration::from_millis(3)];

async fn run_clock() {
    loop {
        let first = poll_fn(|context| {
            with(|state| {
                let first = state.waits.iter().map(|(until, _)| *until).min();
                state.idle = first.is_none().then(|| context.waker().clone());
                first.map_or(Poll::Pending, Poll::Ready)
            })
        });
        let until = first.await + BEYOND[shuttle::rand::thread_rng().gen_range(0..BEYOND.len())];
        let due = with(|state| {
            state.elapsed = state.elapsed.max(until);
            let elapsed = state.elapsed;
            state.waits.extract_if(.., |(until, _)| *until <= elapsed).collect::<Vec<_>>()
        });
        due.into_iter().for_each(|(_, thread)| thread.unpark());
        // A scheduler that goes by priorities lets the other threads go on first.
        shuttle::future::yield_now().await;
    }
}

pub(crate) mod thread {
    pub(crate) use shuttle::thread::{Builder, JoinHandle, Thread, current, park};
    pub(crate) use std::thread::available_parallelism;

    use std::time::Duration;

    /// Waits for the thread's token, or until the clock has passed the limit.
    pub(crate) fn park_timeout(limit: Duration) {
        let me = current();
        let idle = super::with(|state| {
            state.waits.push((state.elapsed + limit, me.clone()));
            state.idle.take()
        });
        idle.into_iter().for_each(std::task::Waker::wake);
        park();
        super::with(|state| state.waits.retain(|(_, thread)| thread.id() != me.id()));
    }

    pub(crate) fn sleep(duration: Duration) {
        let elapsed = || super::with(|state| state.elapsed);
        let until = elapsed() + duration;
        while elapsed() < until {
            park_timeout(until - elapsed());
        }
    }
}

/// A model reads hints as well: its threads are few, but its schedules are of whole timers.
pub(crate) fn hint<H>(read: impl FnOnce() -> H) -> Option<H> {
    Some(read())
}

/// The number of the calling thread in its model.
pub(crate) fn model_thread() -> Option<usize> {
    Some(shuttle::thread::current().id().into())
}

/// A value for each thread of a model, with the parts of `std::thread::LocalKey` that the crate
/// uses.
pub(crate) struct Local<T: 'static>(pub(crate) shuttle::thread::LocalKey<T>);

impl<T> Local<T> {
    pub(crate) fn try_with<R>(
        &'static self,
        code: impl FnOnce(&T) -> R,
    ) -> Result<R, shuttle::thread::AccessError> {
        self.0.try_with(code)
    }
}

impl<T: Copy> Local<std::cell::Cell<T>> {
    pub(crate) fn get(&'static self) -> T {
        self.0.with(std::cell::Cell::get)
    }

    pub(crate) fn set(&'static self, value: T) {
        self.0.with(|cell| cell.set(value));
    }

    pub(crate) fn replace(&'static self, value: T) -> T {
        self.0.with(|cell| cell.replace(value))
    }
}

macro_rules! local {
    ($($(#[$about:meta])* static $name:ident: $value:ty = const { $init:expr };)*) => {$(
        $(#[$about])*
        static $name: $crate::sync::imp::Local<$value> = $crate::sync::imp::Local(shuttle::thread::LocalKey {
            init: || $init,
            _p: std::marker::PhantomData,
        });
    )*};
}
pub(crate) use local as thread_local;

/// Empty: only loom needs to see `plain` data.
#[derive(Debug)]
pub(crate) struct Trace;

impl Trace {
    pub(crate) fn begin() -> Self {
        Self
    }

    pub(crate) fn model_change(&self) {}

    pub(crate) fn model_look(&self) {}
}

/// `std::cell::UnsafeCell` with the interface of loom's cell.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with_mut<R>(&self, code: impl FnOnce(*mut T) -> R) -> R {
        code(self.0.get())
    }
}

//! tokio: a timer that lives on a runtime's workers.
//!
//! One task [runs](shardwheel::Driver::run) the timer. It waits for the next deadline by a sleep of
//! tokio's, so tokio has one timer entry, however many sleeps are pending.
//!
//! # Two roundings
//!
//! tokio rounds a deadline up to its own milliseconds, and a worker that parks waits for whole
//! milliseconds from then: a sleep is some 1 ms late at the median. The timer rounds up to its tick
//! before that. The ticks would add if they were alike, since neither knows where the other's
//! begin. So [`tokio_timer`] has a tick that is much shorter. It costs no wake-ups: when the
//! task runs, it fires all that has come due since, and tokio lets it wait for the next millisecond.
//!
//! # What tokio offers
//!
//! A timer entry: a lock and an insert into tokio's wheel for each wake-up, and one more poll of a
//! task. The hooks `on_thread_park` and `on_thread_unpark` cost a call at each park, and no task,
//! but the program sets them when it builds the runtime, and they cannot shorten the park. There is
//! no hook for a runtime that exists, so this uses the entry. On several workers, what the task
//! wakes may run on another worker, which has to be woken: tokio's own timer wakes its tasks while
//! the worker is parked, and so wakes other workers less often.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant as StdInstant};

use shardwheel::{BuildError, Driver, Timer, TimerBuilder};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until};

/// The tick of [`tokio_timer`]: what it adds to tokio's own rounding.
const TICK: Duration = Duration::from_micros(64);

/// Makes a [`Timer`] that lives on the workers of the tokio runtime of the caller, and needs no
/// thread of its own.
///
/// All that a `Timer` has is on it: `sleep`, `timeout`, `interval`, callbacks, `DelayQueue`. It
/// works from any thread, and on each runtime: of one thread or several, and within a `LocalSet`.
/// One task, on one timer entry of tokio's, wakes the sleeps and runs the callbacks. So a task that
/// blocks its worker delays them, as it delays tokio's.
///
/// Its tick is 64 µs, which is what it adds to tokio's rounding to milliseconds. It has one shard.
///
/// The task ends when the `Timer` ends: with its last handle, or when it is
/// [shut down](Timer::shutdown). The end of the runtime shuts the `Timer` down: what waits on it in
/// other runtimes gets an error then, and is not lost.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::DelayQueue;
/// use shardwheel_compat::tokio_timer;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let timer = tokio_timer()?;
/// timer.sleep(Duration::from_millis(5)).await?;
/// let answer = timer.timeout(Duration::from_secs(1), async { 42 }).await?;
/// assert_eq!(answer, 42);
///
/// let sessions = DelayQueue::new(&timer);
/// sessions.insert("a session", Duration::from_millis(5))?;
/// let expired = sessions.next().await.expect("it goes on");
/// assert_eq!(expired.value, "a session");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`TimerBuilder::build_driven`].
///
/// # Panics
///
/// Outside of a runtime, and in one without timers (`enable_time`).
///
/// # Performance
///
/// A sleep costs what it costs on any `Timer`. A wake-up costs tokio's own and one more poll of a task.
pub fn tokio_timer() -> Result<Timer, BuildError> {
    tokio_timer_with(Timer::builder().tick(TICK))
}

/// Makes a [`Timer`] as [`tokio_timer`] does, from settings of the caller's: a bound, a hook, another
/// tick (the builder's own of 1 ms makes sleeps later by half of that), or a shard for each worker.
///
/// With a [`Clock`](shardwheel::Clock) of the caller's, the `Timer` goes by that clock only if tokio's does:
/// while that clock shows less than a deadline that tokio's has reached, the task polls without a pause.
/// For tests by virtual time there is `virtual_time`, in the feature `tokio-testing`. With a
/// [`ManualClock`](shardwheel::ManualClock), nothing wakes the task when the clock is moved.
///
/// # Errors
///
/// As [`TimerBuilder::build_driven`].
///
/// # Panics
///
/// As [`tokio_timer`].
pub fn tokio_timer_with(builder: TimerBuilder) -> Result<Timer, BuildError> {
    // Panics here, and not in the task, if the runtime has no timers.
    drop(sleep_until(Instant::now()));
    let runtime = Handle::current();
    let (timer, driver) = builder.build_driven()?;
    runtime.spawn(Looped::new(driver));
    Ok(timer)
}

/// The task: it owns the driver and tokio's timer entry, and ends with the `Timer`.
struct Looped(Arc<Shared>);

struct Shared {
    /// What turns. Nothing waits for this lock.
    turned: Mutex<Turned>,
    /// The task's waker, from its first poll on.
    task: OnceLock<Waker>,
    /// The task has found `turned` locked: who unlocks wakes it.
    waits: AtomicBool,
}

struct Turned {
    driver: Driver,
    /// tokio's timer entry, of which the waker is `EntryWaker`.
    sleep: Pin<Box<Sleep>>,
    sleeps_until: Option<StdInstant>,
    entry_waker: Waker,
}

/// Turns the `Timer` where tokio fires its timers: see the module.
struct EntryWaker(Weak<Shared>);

impl Looped {
    fn new(driver: Driver) -> Self {
        Self(Arc::new_cyclic(|shared| {
            let turned = Turned {
                driver,
                sleep: Box::pin(sleep_until(Instant::now())),
                sleeps_until: None,
                entry_waker: Waker::from(Arc::new(EntryWaker(Weak::clone(shared)))),
            };
            Shared { turned: Mutex::new(turned), task: OnceLock::new(), waits: AtomicBool::new(false) }
        }))
    }
}

impl Future for Looped {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = &*self.0;
        shared.waits.store(true, SeqCst);
        let Ok(mut turned) = shared.turned.try_lock() else { return Poll::Pending };
        shared.waits.store(false, SeqCst);
        shared.task.get_or_init(|| {
            turned.driver.register_waker(context.waker());
            context.waker().clone()
        });
        if turned.set_entry() {
            turned.driver.turn();
            context.waker().wake_by_ref();
        }
        if turned.driver.has_ended() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Wake for EntryWaker {
    fn wake(self: Arc<Self>) {
        let Some(shared) = self.0.upgrade() else { return };
        let again = match shared.turned.try_lock() {
            Ok(mut turned) => {
                turned.driver.turn();
                turned.set_entry()
            }
            Err(_) => true,
        };
        if again | shared.waits.swap(false, SeqCst) {
            shared.task.get().expect("an entry is made by the task's poll").wake_by_ref();
        }
    }
}

impl Turned {
    /// Sets tokio's timer entry to the next deadline. Returns whether that has passed already.
    fn set_entry(&mut self) -> bool {
        let next = self.driver.next_deadline();
        if next == self.sleeps_until && !self.sleep.is_elapsed() {
            return false;
        }
        self.sleeps_until = next;
        let Some(next) = next else { return false };
        self.sleep.as_mut().reset(next.into());
        let mut context = Context::from_waker(&self.entry_waker);
        self.sleep.as_mut().poll(&mut context).is_ready()
    }
}

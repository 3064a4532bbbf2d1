//! tokio: a timer that lives on a runtime's workers.
//!
//! The timer has one timer entry of tokio's, however many sleeps are pending, and a task. The entry
//! waits for the next deadline. Its waker is not the task's: it [turns](shardwheel::Driver::turn)
//! the timer itself, where tokio fires the entry. The task owns the driver, so it ends with the
//! `Timer` or with the runtime. A producer wakes it for an earlier deadline, to which it sets the
//! entry.
//!
//! # Why the waker turns
//!
//! tokio fires its timers while a worker is parked, and wakes another worker once, after all of
//! them. A task that turns the timer wakes the sleeps' tasks one by one, while its worker is not
//! parked: each of these wakes may wake another worker, which steals that one task, runs it and
//! parks again. On two workers, 51 tasks with 2,800 sleeps of 5 and 20 ms made 416 of 526 futex
//! wakes in such turns, and 415 to 1,192 voluntary context switches, with tokio's own timer 180 to
//! 284. With the waker there are no more than with tokio's own.
//!
//! # Who sets the entry
//!
//! On a runtime of one thread, the task does after a turn that has fired something: what has been
//! woken runs first, and sets the next deadline, without a wake of the task for each. With several
//! workers, another one would wake up to take the task: 318 switches in the place of 186. There the
//! waker sets the entry at once.
//!
//! # Two roundings
//!
//! tokio rounds a deadline up to its own milliseconds, and a worker that parks waits for whole
//! milliseconds from then: a sleep is some 1 ms late at the median. The timer rounds up to its tick
//! before that. The ticks would add if they were alike, since neither knows where the other's
//! begin. So [`tokio_timer`] has a tick that is much shorter. It costs no wake-ups: a turn fires
//! all that has come due since, and tokio lets it wait for the next millisecond.
//!
//! # What tokio offers
//!
//! A timer entry: a lock and an insert into tokio's wheel for each wake-up. The hooks
//! `on_thread_park` and `on_thread_unpark` cost a call at each park, and no entry, but the program
//! sets them when it builds the runtime, and they cannot shorten the park. There is no hook for a
//! runtime that exists.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant as StdInstant};

use shardwheel::{BuildError, Driver, Timer, TimerBuilder};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Instant, Sleep, sleep_until};

/// The tick of [`tokio_timer`]: what it adds to tokio's own rounding.
const TICK: Duration = Duration::from_micros(64);

/// Makes a [`Timer`] that lives on the workers of the tokio runtime of the caller, and needs no
/// thread of its own.
///
/// All that a `Timer` has is on it: `sleep`, `timeout`, `interval`, callbacks, `DelayQueue`. It
/// works from any thread, and on each runtime: of one thread or several, and within a `LocalSet`.
/// Sleeps are woken where tokio wakes its own, when a worker has no task to run. So tasks that block
/// all workers delay them, as they delay tokio's.
///
/// Its tick is 64 µs, which is what it adds to tokio's rounding to milliseconds. It has one shard.
///
/// Callbacks run there too, mostly outside of any task. They may spawn tasks. Until a callback
/// returns, the runtime serves no other timer and no socket, so it should be short, and must not
/// call `block_in_place`. An executor runs longer ones in tasks:
///
/// ```
/// use std::time::Duration;
/// use shardwheel::{Job, Timer};
/// use shardwheel_compat::tokio_timer_with;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let runtime = tokio::runtime::Handle::current();
/// let spawn = move |job: Job| drop(runtime.spawn(async { job.run() }));
/// let timer = tokio_timer_with(Timer::builder().tick(Duration::from_micros(64)).executor(spawn))?;
/// # drop(timer);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
/// A sleep costs what it costs on any `Timer`. A wake-up costs tokio's own, a turn, and one poll of a
/// task if what was woken sets an earlier deadline.
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
    let is_one_thread = runtime.runtime_flavor() == RuntimeFlavor::CurrentThread;
    runtime.spawn(Run::new(driver, is_one_thread));
    Ok(timer)
}

/// The task: it owns what turns the timer.
struct Run(Arc<Shared>);

struct Shared {
    /// Never waited for: see `is_wanted`.
    turner: Mutex<Turner>,
    /// The task's waker, from its first poll on. A task has one waker for all its life.
    task: OnceLock<Waker>,
    /// Set by the task if it finds `turner` locked. The entry's waker wakes it after the unlock.
    is_wanted: AtomicBool,
    /// Whether the task sets the entry after a turn that has fired something: see *Who sets the
    /// entry*.
    sets_later: bool,
}

struct Turner {
    driver: Driver,
    /// tokio's timer entry.
    entry: Pin<Box<Sleep>>,
    /// The deadline of the entry.
    deadline: Option<StdInstant>,
    /// An `EntryWaker`.
    waker: Waker,
}

/// Turns the timer when tokio fires the entry. Weak, since the entry holds it.
struct EntryWaker(Weak<Shared>);

impl Run {
    fn new(driver: Driver, sets_later: bool) -> Self {
        Self(Arc::new_cyclic(|shared| {
            let waker = Waker::from(Arc::new(EntryWaker(Weak::clone(shared))));
            let entry = Box::pin(sleep_until(Instant::now()));
            let turner = Mutex::new(Turner { driver, entry, deadline: None, waker });
            Shared { turner, task: OnceLock::new(), is_wanted: AtomicBool::new(false), sets_later }
        }))
    }
}

impl Future for Run {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = &*self.0;
        // Ordering: Relaxed, ordered by the fence.
        shared.is_wanted.store(true, Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence after the unlock: either this finds the lock free,
        // or the entry's waker finds the flag.
        fence(Ordering::SeqCst);
        let Ok(mut turner) = shared.turner.try_lock() else { return Poll::Pending };
        // Ordering: Relaxed, a hint: a wake too many does no harm.
        shared.is_wanted.store(false, Ordering::Relaxed);
        shared.task.get_or_init(|| {
            // Once: a second time would repeat the wake that has caused this poll.
            turner.driver.register_waker(context.waker());
            context.waker().clone()
        });
        if turner.set_entry() {
            turner.driver.turn();
            context.waker().wake_by_ref();
        }
        if turner.driver.has_ended() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Wake for EntryWaker {
    fn wake(self: Arc<Self>) {
        let Some(shared) = self.0.upgrade() else { return };
        let must_poll = match shared.turner.try_lock() {
            Ok(mut turner) => (turner.driver.turn() > 0 && shared.sets_later) || turner.set_entry(),
            // The task has it, and is polled once more.
            Err(_) => true,
        };
        // Ordering: SeqCst, pairs with the fence in `poll`.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, ordered by the fence.
        if must_poll | shared.is_wanted.swap(false, Ordering::Relaxed) {
            shared.task.get().expect("the task sets the entry first").wake_by_ref();
        }
    }
}

impl Turner {
    /// Sets the entry to the timer's next deadline. Returns whether that has passed.
    fn set_entry(&mut self) -> bool {
        let next = self.driver.next_deadline();
        if next == self.deadline && !self.entry.is_elapsed() {
            return false;
        }
        self.deadline = next;
        let Some(next) = next else { return false };
        self.entry.as_mut().reset(next.into());
        self.entry.as_mut().poll(&mut Context::from_waker(&self.waker)).is_ready()
    }
}

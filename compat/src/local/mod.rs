//! A timer of one thread, whose sleeps the thread's own runtime wakes.
//!
//! The runtimes that keep their tasks on one thread share [`LocalTimer`]. Each has a file of its own
//! with what differs: how the runtime sleeps, and how it spawns the one task that
//! [runs](shardwheel::Driver::run) the shard.
//!
//! # What the runtimes offer
//!
//! No `block_on` has a hook that could turn a shard, or shorten the wait of the loop. So the task
//! waits by a timer of the runtime's. A wake-up costs an insert and a removal there, where it is the
//! only entry, and two polls of the task.
//!
//! | runtime | a loop of one's own | its own timer | its wakers work | at its end |
//! |---|---|---|---|---|
//! | compio 0.18 | `Runtime::run`, `poll_with(timeout)` | a tree, nanoseconds | anywhere | drops all tasks |
//! | monoio 0.2 | no | a wheel, whole milliseconds | on its thread, while it runs | leaks tasks that wait |
//! | glommio 0.9 | no | a tree, nanoseconds | anywhere | leaks tasks that wait |
//!
//! A loop of the program's own needs no task: it calls [`turn`](shardwheel::Driver::turn), and waits
//! until [`next_deadline`](shardwheel::Driver::next_deadline). It takes the place of `block_on` and
//! `#[compio::main]`. monoio's wakers work anywhere with its feature `sync`.

mod future;
#[cfg(all(feature = "monoio", target_os = "linux"))]
mod on_loop;

use std::fmt;
use std::future::{Future, IntoFuture};
use std::rc::Rc;
use std::time::{Duration, Instant};

use shardwheel::{BuildError, Interval, Sleep, Timeout, Timer, TimerBuilder};

pub use self::future::Local;
#[cfg(all(feature = "monoio", target_os = "linux"))]
pub(crate) use self::on_loop::{is_on_loop, on_loop};

/// Polls: only monoio's wakers ask where they are woken.
#[cfg(not(all(feature = "monoio", target_os = "linux")))]
fn on_loop<R>(poll: impl FnOnce() -> R) -> R {
    poll()
}

/// The tick, unless the caller sets it: what the timer adds to the runtime's own rounding.
pub(crate) const TICK: Duration = Duration::from_micros(64);

/// A [`Timer`] of the calling thread: a shard that a task of the thread's own runtime turns. Made by
/// `compio_timer`, `monoio_timer` or `glommio_timer`.
///
/// No other thread takes part in its sleeps, timeouts and intervals. Each is scheduled, fired and
/// woken on this thread, and neither the handle nor what it returns can leave the thread. The
/// runtime has one timer entry in all, however many sleeps are pending.
///
/// Clones are handles of the same timer. The drop of the last one ends it, unless there is a clone
/// of [`timer`](Self::timer): the task ends, and sleeps that are pending resolve to an error. So does
/// the end of a compio runtime. monoio and glommio leak the tasks that wait when they end: drop the
/// handles before. A task that does not return to its runtime delays the timer, as it delays the
/// runtime's own.
///
/// The tick is 64 µs; from a builder it is the builder's, by default 1 ms. It adds to the runtime's
/// own rounding, which is to milliseconds on monoio.
///
/// # Examples
///
/// Neither a handle nor a sleep can go to another thread:
///
/// ```compile_fail,E0277
/// fn on_another_thread(timer: shardwheel_compat::LocalTimer) {
///     std::thread::spawn(move || drop(timer));
/// }
/// ```
///
/// ```compile_fail,E0277
/// fn on_another_thread(timer: &shardwheel_compat::LocalTimer) {
///     let sleep = timer.sleep(std::time::Duration::from_secs(1));
///     std::thread::spawn(move || drop(sleep));
/// }
/// ```
///
/// # Performance
///
/// A sleep costs what it costs on any `Timer`. A wake-up of the thread costs the runtime's own, and
/// two polls of a task.
#[derive(Clone)]
pub struct LocalTimer {
    timer: Rc<Timer>,
}

impl LocalTimer {
    /// Makes the timer, and the task that runs it until it ends.
    pub(crate) fn new<S, F>(
        builder: TimerBuilder,
        sleep_until: S,
    ) -> Result<(Self, impl Future<Output = ()> + 'static), BuildError>
    where
        S: FnMut(Instant) -> F + 'static,
        F: Future<Output = ()> + 'static,
    {
        let (timer, mut driver) = builder.build_driven()?;
        let run = async move { driver.run(sleep_until).await };
        Ok((Self { timer: Rc::new(timer) }, run))
    }

    /// Returns the [`Timer`] behind it: for callbacks, delay queues and statistics.
    ///
    /// Callbacks run on this thread, between two tasks. A clone of the `Timer` may go to another
    /// thread, and be used there.
    #[must_use]
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Returns a future that waits for `duration`, as [`Timer::sleep`] does.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn sleep(&self, duration: Duration) -> Local<Sleep> {
        Local::new(self.timer.sleep(duration))
    }

    /// Returns a future that waits until `deadline`, as [`Timer::sleep_until`] does.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn sleep_until(&self, deadline: Instant) -> Local<Sleep> {
        Local::new(self.timer.sleep_until(deadline))
    }

    /// Limits the time of a future, as [`Timer::timeout`] does. The future need not be `Send`.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn timeout<F: IntoFuture>(&self, duration: Duration, future: F) -> Local<Timeout<F::IntoFuture>> {
        Local::new(self.timer.timeout(duration, future))
    }

    /// Limits the time of a future, as [`Timer::timeout_at`] does.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn timeout_at<F: IntoFuture>(&self, deadline: Instant, future: F) -> Local<Timeout<F::IntoFuture>> {
        Local::new(self.timer.timeout_at(deadline, future))
    }

    /// Returns moments one `period` apart, the first at once, as [`Timer::interval`] does.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn interval(&self, period: Duration) -> Local<Interval> {
        Local::new(self.timer.interval(period))
    }

    /// Returns moments one `period` apart, the first at `start`, as [`Timer::interval_at`] does.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn interval_at(&self, start: Instant, period: Duration) -> Local<Interval> {
        Local::new(self.timer.interval_at(start, period))
    }
}

impl fmt::Debug for LocalTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalTimer").field(&self.timer).finish()
    }
}

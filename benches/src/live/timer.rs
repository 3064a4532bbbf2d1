//! The timers that run in real time: the traits, `Timer` of `shardwheel`, and the two timers of `tokio`.
//!
//! Every engine is a [`Live`]. Sleeps and closures are traits of their own, and an engine takes part
//! in the sections that it can do.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use shardwheel::{ScheduleError, Sleep, Timer, TimerKey};
use tokio::runtime::{Builder, Runtime};

use super::ledger::Note;
use crate::names::ALTERNATIVE;

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

const WORKERS: usize = 2;

/// A timer with threads that goes by real time.
pub(super) trait Live: Sized + Sync {
    const NAME: &'static str;

    /// What the owner of a timer keeps until it has fired.
    type Kept: Send + 'static;

    /// Starts it, with ticks of 1 ms if it has a choice.
    fn start() -> Self;

    /// Returns what a thread holds while it uses the timer.
    fn enter(&self) -> impl Sized {}

    /// Runs a job that places timers: on the calling thread, or where the engine expects it.
    fn inside<R: Send + 'static>(&self, job: impl FnOnce(&Self) -> R + Send + 'static) -> R {
        let _entered = self.enter();
        job(self)
    }

    /// Lets the engine's own thread write `note` at `due`.
    fn place(&self, due: Instant, note: Note) -> Self::Kept;
}

pub(super) trait Sleeps: Live {
    fn sleep(&self, duration: Duration) -> impl Future;
}

pub(super) trait Schedules: Live {
    type Key;

    fn schedule_after<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Key;
}

/// A sleep that was polled, and its waker: both are kept, so that firing frees neither.
type Polled<S> = (Pin<Box<S>>, Waker);

/// Polls `sleep` once, with a waker that writes the note.
fn poll_once<S: Future>(sleep: S, note: Note) -> Polled<S> {
    let waker = Waker::from(Arc::new(note));
    let mut sleep = Box::pin(sleep);
    if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
        note.write();
    }
    (sleep, waker)
}

/// As it comes, with a shard for each core, or with one.
fn start(one_shard: bool) -> Timer {
    let builder = Timer::builder().tick(MILLISECOND);
    // A revolution of 16 s, longer than all delays.
    let builder = if one_shard { builder.shards(1).wheel_size(1 << 14) } else { builder };
    builder.build().expect("a timer can start")
}

fn accepted<F>(scheduled: Result<TimerKey, ScheduleError<F>>) -> TimerKey {
    scheduled.unwrap_or_else(|refused| panic!("a timer without a bound refused a timer: {refused}"))
}

/// A `Timer` that calls closures. With one shard it has a single thread, and wheels so large that no
/// timer is moved before it fires.
pub(super) struct Calls<const ONE_SHARD: bool>(Timer);

pub(super) type Shardwheel = Calls<false>;
pub(super) type OneShard = Calls<true>;

impl<const ONE_SHARD: bool> Live for Calls<ONE_SHARD> {
    const NAME: &'static str = if ONE_SHARD { "shardwheel one shard" } else { "shardwheel" };

    type Kept = ();

    fn start() -> Self {
        Self(start(ONE_SHARD))
    }

    fn place(&self, due: Instant, note: Note) {
        accepted(self.0.schedule_at(due, move || note.write()));
    }
}

impl<const ONE_SHARD: bool> Sleeps for Calls<ONE_SHARD> {
    #[inline]
    fn sleep(&self, duration: Duration) -> impl Future {
        self.0.sleep(duration)
    }
}

impl<const ONE_SHARD: bool> Schedules for Calls<ONE_SHARD> {
    type Key = TimerKey;

    #[inline]
    fn schedule_after<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> TimerKey {
        accepted(self.0.schedule_after(delay, task))
    }
}

/// A `Timer` that wakes sleeps, as `tokio` does.
pub(super) struct ShardwheelSleeps(Timer);

impl Live for ShardwheelSleeps {
    const NAME: &'static str = "shardwheel sleeps";

    type Kept = Polled<Sleep>;

    fn start() -> Self {
        Self(start(false))
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(self.0.sleep_until(due), note)
    }
}

/// The timer of a `tokio` runtime that has no tasks; its ticks are 1 ms. The threads that place its
/// sleeps poll them once and keep them.
pub(super) struct Tokio(Runtime);

impl Live for Tokio {
    const NAME: &'static str = "tokio";

    type Kept = Polled<tokio::time::Sleep>;

    fn start() -> Self {
        let built = Builder::new_multi_thread().worker_threads(WORKERS).enable_time().build();
        Self(built.expect("a runtime can start"))
    }

    fn enter(&self) -> impl Sized {
        self.0.enter()
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(tokio::time::sleep_until(due.into()), note)
    }
}

impl Sleeps for Tokio {
    #[inline]
    fn sleep(&self, duration: Duration) -> impl Future {
        tokio::time::sleep(duration)
    }
}

/// The alternative timer of `tokio`, with a wheel for each worker. It is made for sleeps that tasks
/// create, so tasks place them: a thread outside of the workers takes a lock and wakes a worker.
pub(super) struct TokioAlternative(Arc<Runtime>);

impl Live for TokioAlternative {
    const NAME: &'static str = ALTERNATIVE;

    type Kept = Polled<tokio::time::Sleep>;

    fn start() -> Self {
        let mut builder = Builder::new_multi_thread();
        enable_alternative(builder.worker_threads(WORKERS));
        Self(Arc::new(builder.build().expect("a runtime can start")))
    }

    fn enter(&self) -> impl Sized {
        self.0.enter()
    }

    fn inside<R: Send + 'static>(&self, job: impl FnOnce(&Self) -> R + Send + 'static) -> R {
        let engine = Self(Arc::clone(&self.0));
        self.0.block_on(self.0.spawn(async move { job(&engine) })).expect("a placing task panicked")
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(tokio::time::sleep_until(due.into()), note)
    }
}

#[cfg(tokio_unstable)]
fn enable_alternative(builder: &mut Builder) {
    builder.enable_alt_timer();
}

#[cfg(not(tokio_unstable))]
fn enable_alternative(_: &mut Builder) {
    panic!("the alternative timer needs a build with `--cfg tokio_unstable`");
}

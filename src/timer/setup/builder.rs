//! The settings of a `Timer`.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::config::ConfigBuilder;
use crate::timer::guard::{CallbackPanic, PanicHook};
use crate::timer::shard::{Executor, Job, Placement};
use crate::timer::threads::{Drivers, ThreadHook};
use crate::unwind::DropQuietly;

/// Builds a [`Timer`](crate::Timer); made by [`Timer::builder`](crate::Timer::builder).
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct TimerBuilder {
    pub(super) config: ConfigBuilder,
    pub(super) shards: Option<usize>,
    pub(super) drivers: Drivers,
    pub(super) placement: Placement,
    pub(super) pin_to_cores: bool,
    pub(super) name: Option<String>,
    pub(super) stack_size: Option<usize>,
    pub(super) on_thread_start: Option<ThreadHook>,
    pub(super) on_thread_stop: Option<ThreadHook>,
    pub(super) executor: Option<DropQuietly<Arc<dyn Executor>>>,
    pub(super) clock: Option<DropQuietly<Arc<dyn Clock>>>,
    pub(super) slack: Duration,
    pub(super) on_panic: Option<PanicHook>,
}

impl TimerBuilder {
    /// Sets the length of one tick, to which deadlines are rounded up. Default: 1 ms.
    ///
    /// The `Timer`'s thread sleeps until the next tick at which a timer is due or has to be moved
    /// to a finer wheel. It wakes earlier when a producer schedules an earlier timer or cancels
    /// have left many nodes to free, and, while a shard is idle, to give memory back. With a clock
    /// of the user's it also wakes on the way to a deadline, see [`Clock`].
    ///
    /// On Windows a thread wakes at the system's own period, 15.6 ms by default, whatever the tick:
    /// see [`platforms`](crate::platforms#windows).
    pub fn tick(mut self, tick: Duration) -> Self {
        self.config = self.config.tick(tick);
        self
    }

    /// Sets how long after its deadline a timer may be due, so that timers fire together. Default:
    /// zero.
    ///
    /// A server whose timeouts may all come 10 ms late says so here, once. The `Timer` then chooses
    /// ticks as [`schedule_within`](crate::Timer::schedule_within) does: of those from the deadline
    /// to the end of the slack, the one that is a multiple of the greatest power of two. Nothing
    /// fires early, and a slack that is shorter than a tick changes nothing. There is no limit:
    /// with a slack of a year, a timer may be a year late.
    ///
    /// It holds for callbacks, sleeps, timeouts, intervals and values of delay queues, also when
    /// they are rescheduled or reset. A call that names a window has that window instead:
    /// `schedule_within`, [`sleep_within`](crate::Timer::sleep_within),
    /// [`timeout_within`](crate::Timer::timeout_within); `at..=at` is exact. So does
    /// [`Interval::slack`](crate::Interval::slack). A recurring timer does not drift, but one whose
    /// period is shorter than the slack has several occurrences at a time.
    ///
    /// # Examples
    ///
    /// A thousand sleeps of about a second need a few wake-ups instead of a thousand:
    ///
    /// ```
    /// use std::collections::BTreeSet;
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let builder = Timer::builder().clock(clock.clone()).slack(Duration::from_millis(100));
    /// let timer = builder.build()?;
    /// let mut times = BTreeSet::new();
    /// for _ in 0..1_000 {
    ///     let key = timer.schedule_after(Duration::from_secs(1), || ())?;
    ///     times.insert(timer.deadline(key));
    ///     clock.advance(Duration::from_millis(1));
    /// }
    /// assert!(times.len() <= 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn slack(mut self, slack: Duration) -> Self {
        self.slack = slack;
        self
    }

    /// Sets the number of buckets in a wheel: a power of two, see [`ConfigBuilder::wheel_size`].
    /// Default: [`DEFAULT_WHEEL_SIZE`](crate::DEFAULT_WHEEL_SIZE).
    pub fn wheel_size(mut self, wheel_size: usize) -> Self {
        self.config = self.config.wheel_size(wheel_size);
        self
    }

    /// Sets the number of shards, and of threads that drive them: 1 to 1024. Default: the number of
    /// available cores.
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Sets which threads drive the shards. Default: [`Drivers::AsNeeded`]. A manual clock has no
    /// threads.
    pub fn drivers(mut self, drivers: Drivers) -> Self {
        self.drivers = drivers;
        self
    }

    /// Sets which shard a thread schedules on. Default: [`Placement::OwnShard`].
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Sets whether each shard has a thread that is pinned to a core of its own. Default: false.
    ///
    /// This implies [`Drivers::OnePerShard`].
    ///
    /// With fewer cores than shards, `build` fails. If the system refuses to pin a thread, the
    /// thread runs unpinned, and [`Figures::core`](crate::Figures::core) is `None`. A manual clock
    /// has no threads to pin.
    ///
    /// Linux, Android, FreeBSD and Windows pin threads. macOS does not: on Intel processors the
    /// threads may get a hint to stay apart, on Apple's processors nothing. `Figures::core` is
    /// `None` there. On other systems this setting does nothing but imply the drivers. See
    /// [`platforms`](crate::platforms).
    #[cfg(feature = "affinity")]
    pub fn pin_to_cores(mut self, pin: bool) -> Self {
        self.pin_to_cores = pin;
        self
    }

    /// Sets how many timers may be pending at once, in all shards together; at least 1. Default: no
    /// bound.
    ///
    /// A bound costs each schedule and each end of a timer one operation on a counter that all
    /// threads share.
    pub fn max_pending(mut self, max_pending: usize) -> Self {
        self.config = self.config.max_pending(max_pending);
        self
    }

    /// Sets the name of the threads: this name, a hyphen and the thread's number. Default:
    /// `shardwheel`.
    ///
    /// A name with a zero byte makes `build` fail. Some systems show only the beginning of a name.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the size of the threads' stacks, in bytes. Default: the standard library's, 2 MiB.
    ///
    /// Callbacks run on these stacks. If the system refuses the size, `build` fails.
    pub fn thread_stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Sets a function that each of the `Timer`'s threads calls first, before `build` returns.
    ///
    /// A panic in it is caught, counted and [reported](Self::on_panic), and the thread works on. A
    /// manual clock and a driven `Timer` have no threads.
    pub fn on_thread_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_thread_start = Some(DropQuietly::new(Arc::new(hook)));
        self
    }

    /// Sets a function that each of the `Timer`'s threads calls last.
    ///
    /// A panic in it is handled as one in [`on_thread_start`](Self::on_thread_start). A shutdown
    /// waits for it for 20 ms.
    pub fn on_thread_stop(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_thread_stop = Some(DropQuietly::new(Arc::new(hook)));
        self
    }

    /// Sets where callbacks run. Default: on the `Timer`'s threads.
    ///
    /// A closure needs the type of its parameter, `|job: Job|`, unless it is given to
    /// [`executor_fn`](Self::executor_fn).
    pub fn executor(mut self, executor: impl Executor) -> Self {
        self.executor = Some(DropQuietly::new(Arc::new(executor)));
        self
    }

    /// Sets a closure that runs callbacks, as [`executor`](Self::executor) does. Its parameter
    /// needs no type.
    ///
    /// # Examples
    ///
    /// ```
    /// use shardwheel::Timer;
    ///
    /// let timer = Timer::builder().executor_fn(|job| job.run()).build()?;
    /// # Ok::<(), shardwheel::BuildError>(())
    /// ```
    pub fn executor_fn(self, execute: impl Fn(Job) + Send + Sync + 'static) -> Self {
        self.executor(execute)
    }

    /// Sets the source of time. Default: [`MonotonicClock`](crate::MonotonicClock). To keep a
    /// handle of a manual clock, give a clone.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(DropQuietly::new(Arc::new(clock)));
        self
    }

    /// Sets a hook that is called for each panic that the `Timer` catches in user code: as often as
    /// [`panics`](crate::Figures::panics) counts.
    ///
    /// It is called on the thread that panicked, for a callback, a schedule, a waker, a clock, an
    /// executor, or the drop of a callback, a schedule, a waker, a value of a
    /// [`DelayQueue`](crate::DelayQueue) or an executor. Default: no hook. (The process's panic
    /// hook, which prints the message, has been called by then.) A recurring timer continues after
    /// a panic in its callback, unless it is cancelled. A panic in its schedule ends it.
    ///
    /// A panic that reaches the caller, as that of a callback that [`cancel`](crate::Timer::cancel)
    /// drops, is not caught, so it does not count. Panics of the hook itself, in the drops of a
    /// clock, a hook or a panic's payload, and of a [`Driver`](crate::Driver)'s waker that was
    /// registered while the system had no memory, end without effect.
    pub fn on_panic(mut self, hook: impl Fn(&CallbackPanic<'_>) + Send + Sync + 'static) -> Self {
        self.on_panic = Some(DropQuietly::new(Arc::new(hook)));
        self
    }
}

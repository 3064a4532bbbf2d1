//! Builds a timer: checks the settings once, makes the shards, and starts the drivers.
//!
//! Each driver's thread is set up, and its shard's core, before `build` returns. With a manual
//! clock there are no threads: the clock runs the workers. `build_driven` starts none either.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Timer;
use super::affinity;
use super::drive::Inner;
use super::driven::Driver;
use super::driver_thread::{DriverThread, ThreadHook};
use super::drivers::{Drivers, Notifier, Pool, ShardWaker, limits};
use super::executor::{Executor, Job};
use super::guard::{CallbackPanic, Hook};
use super::placement::{Placement, Shards};
use super::shard_handle::ShardHandle;
use super::time::{Time, nanos};
use super::worker::Worker;
use crate::clock::{Clock, Driven, FastClock, unpoisoned};
use crate::config::{Config, ConfigBuilder};
use crate::error::BuildError;
use crate::hardware;
use crate::shard::{Bound, ShardId, shard_within};
use crate::sync::plain::AtomicU64;
use crate::sync::{Mutex, Ordering, mpsc, now, thread};
use crate::unwind::DropQuietly;

/// The most shards that a timer can have: each may need a thread.
const MAX_SHARDS: usize = 1024;

/// WebAssembly has threads only where its atomics are enabled, and the standard library starts none
/// in a browser. (It has no clock there either, so `Instant::now` would panic.)
const HAS_THREADS: bool =
    !cfg!(all(target_family = "wasm", any(target_os = "unknown", not(target_feature = "atomics"))));

/// Builds a [`Timer`]; made by [`Timer::builder`].
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct TimerBuilder {
    config: ConfigBuilder,
    shards: Option<usize>,
    drivers: Drivers,
    placement: Placement,
    pin_to_cores: bool,
    name: Option<String>,
    stack_size: Option<usize>,
    on_thread_start: Option<ThreadHook>,
    on_thread_stop: Option<ThreadHook>,
    executor: Option<DropQuietly<Arc<dyn Executor>>>,
    clock: Option<DropQuietly<Arc<dyn Clock>>>,
    slack: Duration,
    on_panic: Option<Hook>,
}

impl Timer {
    /// Makes a timer with the defaults of [`builder`](Self::builder), and starts its threads.
    ///
    /// The timer ends when its last handle is dropped, and what is pending is dropped with it: keep
    /// a handle, or use the [`global`](Self::global) timer.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    ///
    /// let timer = Timer::new()?;
    /// timer.schedule_after(Duration::from_millis(5), || println!("five milliseconds later"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`], if the system gives no memory or starts no thread.
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// Returns a builder with the defaults: a tick of 1 ms, one shard for each available core,
    /// threads that are not pinned, no bound on pending timers, the system's monotonic clock.
    pub fn builder() -> TimerBuilder {
        TimerBuilder::default()
    }
}

impl TimerBuilder {
    /// Sets the length of one tick, to which deadlines are rounded up. Default: 1 ms.
    ///
    /// The timer's thread sleeps until the next tick at which a timer is due or has to be moved to
    /// a finer wheel. It wakes earlier when a producer schedules an earlier timer or cancels have
    /// left many nodes to free, and, while a shard is idle, to give memory back. With a clock of
    /// the user's it also wakes on the way to a deadline, see [`Clock`].
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
    /// A server whose timeouts may all come 10 ms late says so here, once. The timer then chooses
    /// ticks as [`schedule_within`](Timer::schedule_within) does: of those from the deadline to the
    /// end of the slack, the one that is a multiple of the greatest power of two. Nothing fires
    /// early, and a slack that is shorter than a tick changes nothing. There is no limit: with a
    /// slack of a year, a timer may be a year late.
    ///
    /// It holds for callbacks, sleeps, timeouts, intervals and values of delay queues, also when
    /// they are rescheduled or reset. What names a window has that window instead:
    /// `schedule_within`, [`sleep_within`](Timer::sleep_within),
    /// [`timeout_within`](Timer::timeout_within); `at..=at` is exact. So has an
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

    /// Sets a function that each of the timer's threads calls first, before `build` returns.
    ///
    /// A panic in it is caught, counted and [reported](Self::on_panic), and the thread works on. A
    /// manual clock and a driven timer have no threads.
    pub fn on_thread_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_thread_start = Some(DropQuietly::new(Arc::new(hook)));
        self
    }

    /// Sets a function that each of the timer's threads calls last.
    ///
    /// A panic in it is handled as one in [`on_thread_start`](Self::on_thread_start). A shutdown
    /// waits for it for 20 ms.
    pub fn on_thread_stop(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_thread_stop = Some(DropQuietly::new(Arc::new(hook)));
        self
    }

    /// Sets where callbacks run. Default: on the timer's threads.
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

    /// Sets a hook that is called for each panic that the timer catches in user code: as often as
    /// [`panics`](crate::Figures::panics) counts.
    ///
    /// It is called on the thread that panicked, for a callback, a schedule, a waker, a clock, an
    /// executor, or the drop of a callback, a schedule, a waker, a value of a
    /// [`DelayQueue`](crate::DelayQueue) or an executor. Default: no hook. (The process's panic
    /// hook, which prints the message, has been called by then.) A recurring timer continues after
    /// a panic in its callback, unless it is cancelled. A panic in its schedule ends it.
    ///
    /// A panic that reaches the caller, as that of a callback that [`cancel`](Timer::cancel) drops,
    /// is not caught, so it does not count. Panics of the hook itself, in the drops of a clock, a
    /// hook or a panic's payload, and of a [`Driver`]'s waker that was registered
    /// while the system had no memory, end without effect.
    pub fn on_panic(mut self, hook: impl Fn(&CallbackPanic<'_>) + Send + Sync + 'static) -> Self {
        self.on_panic = Some(DropQuietly::new(Arc::new(hook)));
        self
    }

    /// Builds the timer and starts its threads.
    ///
    /// # Errors
    ///
    /// A [`BuildError`] that names the setting, its value and the limit, or that holds the system's
    /// error.
    ///
    /// # Performance
    ///
    /// Starts threads. The first timer of a process starts one more, which ends within some 10 ms:
    /// it registers the process for `membarrier(2)` on Linux, and calibrates a clock.
    pub fn build(self) -> Result<Timer, BuildError> {
        let (config, shards) = self.validate(|| thread::available_parallelism().map_or(1, usize::from))?;
        let manual = self.clock.as_ref().and_then(|clock| clock.as_manual());
        if !HAS_THREADS && manual.is_none() {
            let message = "this platform has no threads; a timer on a manual clock or by `build_driven`, or \
                           a shard, needs none";
            let error = io::Error::new(io::ErrorKind::Unsupported, message);
            return Err(BuildError::Spawn { shard: 0, error });
        }
        let cores = if self.pin_to_cores { affinity::cores() } else { Vec::new() };
        // A system that does not list its cores cannot pin a thread either.
        if (1..shards).contains(&cores.len()) {
            return Err(BuildError::TooFewCores { shards, cores: cores.len() });
        }
        let time = Time::start(self.clock.clone(), config.tick());
        if let Some(clock) = manual {
            hardware::has_membarrier();
            let timer = self.assemble(&config, time, (1, shards), 0)?;
            let (pool, _) = timer.inner.locate(0);
            let driven: Arc<dyn Driven> = pool.clone();
            clock.drive(Arc::downgrade(&driven));
            return Ok(timer);
        }
        prepare_process_aside();
        let is_shared = self.drivers == Drivers::AsNeeded && !self.pin_to_cores;
        let (pools, each) = if is_shared { (1, shards) } else { (shards, 1) };
        let timer = self.assemble(&config, time, (pools, each), each)?;
        self.start(&timer, &cores)?;
        Ok(timer)
    }

    /// Builds a timer without threads, and the driver that runs it in an event loop of the
    /// caller's.
    ///
    /// Callbacks are `Send + 'static` here as well: any thread may schedule and cancel. What is
    /// not, such as an `Rc`, stays with the loop: a callback sends its name through a channel, or
    /// the loop turns a [`shard`](crate::shard()) of its own, whose payloads are names.
    ///
    /// It has one shard unless [`shards`](Self::shards) says otherwise; more make sense where many
    /// threads schedule. The settings of threads have no effect. With a
    /// [`ManualClock`](crate::ManualClock), the clock's `advance` only moves the time, and
    /// [`Driver::turn`] runs what is due by it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let (timer, mut driver) = Timer::builder().clock(clock.clone()).build_driven()?;
    /// timer.schedule_after(Duration::from_secs(1), || println!("a second later"))?;
    /// assert_eq!(driver.turn(), 0);
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(driver.turn(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    ///
    /// # Panics
    ///
    /// If the standard library has no clock: in a browser (`wasm32-unknown-unknown`).
    ///
    /// # Performance
    ///
    /// Starts no thread, so the first timer of a process takes some milliseconds; on Linux some 10
    /// if the process has several threads: see [`shard()`](crate::shard()).
    pub fn build_driven(self) -> Result<(Timer, Driver), BuildError> {
        let (config, shards) = self.validate(|| 1)?;
        let time = Time::start(self.clock.clone(), config.tick());
        prepare_process();
        let timer = self.assemble(&config, time, (1, shards), 1)?;
        let driver = Driver::new(&timer.inner);
        Ok((timer, driver))
    }

    fn validate(&self, shards: impl FnOnce() -> usize) -> Result<(Config, usize), BuildError> {
        let config = self.config.clone().build()?;
        let shards = self.shards.unwrap_or_else(shards);
        if !(1..=MAX_SHARDS).contains(&shards) {
            return Err(BuildError::ShardsOutOfRange { value: shards, min: 1, max: MAX_SHARDS });
        }
        if let Some(name) = self.name.clone().filter(|name| name.contains('\0')) {
            return Err(BuildError::ThreadName { name });
        }
        Ok((config, shards))
    }

    /// Makes the shards, and the pools in which their workers lie: so many pools, with so many
    /// shards and drivers each.
    fn assemble(
        &self,
        config: &Config,
        mut time: Time,
        (pools, each): (usize, usize),
        drivers: usize,
    ) -> Result<Timer, BuildError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Ordering: Relaxed, the number alone matters. No other timer has it, and it is never 0.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let first = ShardId::block(pools * each);
        time.slack = nanos(self.slack);
        let (bound, mut handles) = (Bound::new(config.max_pending()), Vec::new());
        let mut worker = |shard: usize, waker| {
            let no_memory = BuildError::OutOfMemory { shard };
            let (scheduler, advancer) = shard_within(config, &bound, first.after(shard)).ok_or(no_memory)?;
            let handle = Arc::new(ShardHandle::new(scheduler, time.clone(), self.on_panic.clone(), waker));
            handles.push(Arc::clone(&handle));
            Ok(Box::new(Worker::new((id, shard), advancer, handle, self.executor.as_deref().cloned())))
        };
        let pool = |pool| {
            let notifier = Notifier::new(each, drivers, limits(time.tick()));
            let worker = |number| worker(pool * each + number, ShardWaker::waker(&notifier, number));
            let workers = (0..each).map(worker).collect::<Result<Vec<_>, BuildError>>()?;
            Ok(Pool::new(notifier, workers))
        };
        let pools = (0..pools).map(pool).collect::<Result<_, BuildError>>()?;
        let shards = Shards::new(id, handles.into(), self.placement);
        let inner = Inner { shards, first, pools, threads: Mutex::default() };
        Ok(Timer { inner: Arc::new(inner), members: None })
    }

    /// Starts the drivers, and waits until each is set up. If a thread does not start, the drop of
    /// the timer ends those that did.
    fn start(&self, timer: &Timer, cores: &[usize]) -> Result<(), BuildError> {
        let (inner, time) = (&timer.inner, &timer.first_shard().time);
        // The system's time. The timer's time is the same, unless it is by a clock of the user's.
        let start = if time.is_users() { now() } else { time.start };
        let (ready, started) = mpsc::channel::<()>();
        for (shard, home) in inner.shards.handles.iter().enumerate() {
            let (pool, number) = inner.locate(shard);
            let (pool, home) = (Arc::clone(pool), Arc::clone(home));
            let (on_start, on_stop) = (self.on_thread_start.clone(), self.on_thread_stop.clone());
            let driver = DriverThread { pool, number, home, start, on_start, on_stop };
            let (core, ready) = (cores.get(shard).copied(), ready.clone());
            let name = self.name.as_deref().unwrap_or("shardwheel");
            let thread = thread::Builder::new().name(format!("{name}-{shard}"));
            let thread = self.stack_size.into_iter().fold(thread, thread::Builder::stack_size);
            let thread = thread.spawn(move || driver.run(core, || drop(ready)));
            let thread = thread.map_err(|error| BuildError::Spawn { shard, error })?;
            unpoisoned(inner.threads.lock()).push(thread);
        }
        drop(ready);
        started.into_iter().for_each(drop);
        Ok(())
    }
}

/// Does what the first timer of a process needs, and what takes milliseconds.
fn prepare_process() {
    hardware::has_membarrier();
    FastClock::calibrate();
}

/// The same on a thread that ends after that. A timer that is made from async code does not hold
/// its runtime up. If there is no such thread, the clock is slower, and a shard registers when it
/// has to.
fn prepare_process_aside() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    // Ordering: Relaxed, the threads share nothing else.
    if !IS_DONE.swap(true, Ordering::Relaxed) {
        let _ = std::thread::Builder::new().name("shardwheel-start".into()).spawn(prepare_process);
    }
}

//! Makes a `Timer`: checks the settings once, makes the shards and the pools of their workers, and
//! starts the threads.
//!
//! Each thread is set up, and its shard's core, before `build` returns. With a manual clock there
//! are no threads: the clock runs the workers. `build_driven` starts none either.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::builder::TimerBuilder;
use super::event_loop::Driver;
use crate::clock::{FastClock, RunByClock, unpoisoned};
use crate::config::Config;
use crate::error::BuildError;
use crate::hardware;
use crate::shard::{Bound, ShardId, shard_within};
use crate::sync::plain::AtomicU64;
use crate::sync::{Mutex, Ordering, mpsc, now, thread};
use crate::timer::end::Inner;
use crate::timer::handle::Timer;
use crate::timer::shard::{ShardHandle, Shards, cores};
use crate::timer::threads::{Drivers, Notifier, Pool, PoolThread, ShardWaker, Worker, patience_and_leeway};
use crate::timer::time::{Time, nanos};

/// The most shards that a timer can have: each may need a thread.
const MAX_SHARDS: usize = 1024;

/// WebAssembly has threads only where its atomics are enabled, and the standard library starts none
/// in a browser. There, timeouts turn the timer, with the feature `web`.
const HAS_THREADS: bool =
    !cfg!(all(target_family = "wasm", any(target_os = "unknown", not(target_feature = "atomics"))));

impl Timer {
    /// Makes a `Timer` with the defaults of [`builder`](Self::builder), and starts its threads.
    ///
    /// The `Timer` ends when its last handle is dropped, and what is pending is dropped with it:
    /// keep a handle, or use the [global `Timer`](Self::global).
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
    /// Builds the `Timer` and starts its threads.
    ///
    /// # Errors
    ///
    /// A [`BuildError`] that names the setting, its value and the limit, or that holds the system's
    /// error.
    ///
    /// # Performance
    ///
    /// Starts threads. The first `Timer` of a process starts one more, which ends within some
    /// 10 ms: it registers the process for `membarrier(2)` on Linux, and calibrates a clock.
    pub fn build(self) -> Result<Timer, BuildError> {
        let (config, shards) = self.validate(|| thread::available_parallelism().map_or(1, usize::from))?;
        let manual = self.clock.as_ref().and_then(|clock| clock.as_manual());
        if !HAS_THREADS && manual.is_none() {
            return super::browser::build(self);
        }
        let cores = if self.pin_to_cores { cores() } else { Vec::new() };
        // A system that does not list its cores cannot pin a thread either.
        if (1..shards).contains(&cores.len()) {
            return Err(BuildError::TooFewCores { shards, cores: cores.len() });
        }
        let time = Time::start(self.clock.clone(), config.tick());
        if let Some(clock) = manual {
            hardware::has_membarrier();
            let timer = self.assemble(&config, time, (1, shards), 0)?;
            let (pool, _) = timer.inner.locate(0);
            let driven: Arc<dyn RunByClock> = pool.clone();
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

    /// Builds a `Timer` without threads, and the driver that runs it in an event loop of the
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
    /// If the standard library has no clock: on `wasm32-unknown-unknown` without the feature `web`.
    ///
    /// # Performance
    ///
    /// Starts no thread, so the first `Timer` of a process takes some milliseconds; on Linux some
    /// 10 if the process has several threads: see [`shard()`](crate::shard()).
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

    /// Makes `pools` pools, each with the workers of `each` shards and with `drivers` threads.
    pub(in crate::timer) fn assemble(
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
            let notifier = Notifier::new(each, drivers, patience_and_leeway(time.tick()));
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
    pub(in crate::timer) fn start(&self, timer: &Timer, cores: &[usize]) -> Result<(), BuildError> {
        let (inner, time) = (&timer.inner, &timer.first_shard().time);
        // The system's time. The timer's time is the same, unless it is by a clock of the user's.
        let start = if time.is_users() { now() } else { time.start };
        let (ready, started) = mpsc::channel::<()>();
        for (shard, home) in inner.shards.handles.iter().enumerate() {
            let (pool, number) = inner.locate(shard);
            let (pool, home) = (Arc::clone(pool), Arc::clone(home));
            let (on_start, on_stop) = (self.on_thread_start.clone(), self.on_thread_stop.clone());
            let driver = PoolThread { pool, number, home, start, on_start, on_stop };
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
pub(in crate::timer) fn prepare_process() {
    hardware::has_membarrier();
    FastClock::calibrate();
}

/// The same on a thread that ends after that. A timer that is made from async code does not hold
/// its runtime up. If there is no such thread, the clock is slower, and a shard registers when it
/// has to.
pub(in crate::timer) fn prepare_process_aside() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    // Ordering: Relaxed, the threads share nothing else.
    if !IS_DONE.swap(true, Ordering::Relaxed) {
        let _ = std::thread::Builder::new().name("shardwheel-start".into()).spawn(prepare_process);
    }
}

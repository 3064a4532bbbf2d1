//! tracing: warnings for a slow callback, a panic and a refused timer.

use std::error::Error;
use std::time::{Duration, Instant};

use shardwheel::{CallbackPanic, Executor, Job, ScheduleError, SleepError, TimeoutError, TimerBuilder};
use tracing::warn;

/// Warns of callbacks that take longer than a threshold, and of panics.
///
/// [`install`](Self::install) adds it to a `Timer` whose callbacks run on the `Timer`'s own
/// threads. Where an executor runs them, it calls [`run`](Self::run) in place of [`Job::run`], and
/// the builder's `on_panic` gets [`panicked`](Self::panicked).
///
/// The warnings have the target `shardwheel`, a text (the field `message`, as in every event of
/// tracing) and these fields: `took` and `threshold` (a slow callback), `key` and `panic` (a panic
/// and its message; no `key` where other user code than a callback has panicked), `error` and
/// `what` (a refused timer, [`WarnRefused`]).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::Timer;
/// use shardwheel_compat::TimerTracing;
///
/// let tracing = TimerTracing::new(Duration::from_millis(10));
/// let timer = tracing.install(Timer::builder().shards(1)).build()?;
/// timer.schedule_after(Duration::from_millis(5), || panic!("this becomes a warning"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With callbacks on a thread pool:
///
/// ```
/// use std::sync::mpsc;
/// use std::thread;
/// use std::time::Duration;
/// use shardwheel::{Job, Timer};
/// use shardwheel_compat::TimerTracing;
///
/// let tracing = TimerTracing::new(Duration::from_millis(10));
/// let (send, receive) = mpsc::channel::<Job>();
/// thread::spawn(move || receive.into_iter().for_each(|job| tracing.run(job)));
///
/// let timer = Timer::builder()
///     .executor(move |job| drop(send.send(job)))
///     .on_panic(TimerTracing::panicked)
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Performance
///
/// Two readings of the clock for each callback. As with any executor, a recurring callback returns
/// to its shard over a channel.
#[derive(Clone, Copy, Debug)]
pub struct TimerTracing {
    threshold: Duration,
}

impl TimerTracing {
    /// Warns of callbacks that take longer than `threshold`.
    #[must_use]
    pub fn new(threshold: Duration) -> Self {
        Self { threshold }
    }

    /// Adds the warnings to a `Timer` without an executor and without a hook for panics: it sets
    /// both.
    pub fn install(self, builder: TimerBuilder) -> TimerBuilder {
        builder.executor(self).on_panic(Self::panicked)
    }

    /// Runs a job, and warns if it takes longer than the threshold.
    pub fn run(&self, job: Job) {
        let begin = Instant::now();
        job.run();
        let (took, threshold) = (begin.elapsed(), self.threshold);
        if took > threshold {
            warn!(target: "shardwheel", ?took, ?threshold, "a callback was slow");
        }
    }

    /// Warns of a panic; for [`TimerBuilder::on_panic`].
    pub fn panicked(panic: &CallbackPanic<'_>) {
        let message = panic.message().unwrap_or("not a string");
        match panic.key() {
            Some(key) => warn!(target: "shardwheel", ?key, panic = message, "a callback panicked"),
            None => warn!(target: "shardwheel", panic = message, "user code of a timer panicked"),
        }
    }
}

/// Runs each job at once, on the `Timer`'s thread.
impl Executor for TimerTracing {
    fn execute(&self, job: Job) {
        self.run(job);
    }
}

/// Warns if the `Timer` has refused: for the results of calls that schedule, of sleeps and of
/// timeouts.
///
/// A time limit that has passed is no refusal.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::Timer;
/// use shardwheel_compat::WarnRefused;
///
/// let timer = Timer::builder().shards(1).max_pending(1).build()?;
/// timer.schedule_after(Duration::from_secs(60), || ())?;
/// let refused = timer.schedule_after(Duration::from_secs(60), || ()).warn_refused("a check");
/// assert!(refused.is_err()); // and there was a warning that names "a check" and the limit, 1
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait WarnRefused: Sized {
    /// Warns if this is a refusal; `what` names what was refused. Returns the result as it is.
    #[must_use = "the result may be an error"]
    fn warn_refused(self, what: &str) -> Self;
}

impl<T, F> WarnRefused for Result<T, ScheduleError<F>> {
    fn warn_refused(self, what: &str) -> Self {
        self.inspect_err(|refused| warn_refused(refused, what))
    }
}

impl<T> WarnRefused for Result<T, SleepError> {
    fn warn_refused(self, what: &str) -> Self {
        self.inspect_err(|refused| warn_refused(refused, what))
    }
}

impl<T> WarnRefused for Result<T, TimeoutError> {
    fn warn_refused(self, what: &str) -> Self {
        if let Err(TimeoutError::Sleep(refused)) = &self {
            warn_refused(refused, what);
        }
        self
    }
}

pub(crate) fn warn_refused(refused: &(impl Error + ?Sized), what: &str) {
    warn!(target: "shardwheel", error = %refused, what, "the timer refused");
}

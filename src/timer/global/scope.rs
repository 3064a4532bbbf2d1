//! Scopes: what the code that runs on a thread has inherited, and the scope of a manual clock.
//!
//! A scope sets the thread's [`Inherited`] while it runs a closure or polls a future, and then
//! restores the former value, also if a panic ends it. The thread alone reads and writes it, so
//! there are no races, and no models of them.
//!
//! The scope of a manual clock has a `Timer` of its own, which is the global one for the code
//! within. The futures of the free functions count their uses of it, so its memory goes back after
//! the end of the scope, when the last of them is dropped. [`Timer::global`] returns a reference
//! for ever: a scope in which it is called keeps its `Timer`'s memory.
//!
//! The end of the scope shuts the `Timer` down. A sleep that outlives the scope goes on on the
//! process's `Timer` (`Sleep::poll_global`), and other calls return the error.

use std::cell::RefCell;
use std::future::IntoFuture;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::{fmt, mem};

use pin_project_lite::pin_project;

use crate::clock::{Clock, ManualClock};
use crate::sync::thread_local;
use crate::time::{Duration, Instant};
use crate::timer::handle::Timer;
use crate::timer::shard::ShardHandle;
use crate::timer::task::Task;

/// What a scope gives to the code within.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inherited {
    /// Has the timer that is the global one here.
    pub(crate) scope: Option<Arc<Scope>>,
    /// When all time limits end at the latest.
    pub(crate) deadline: Option<Instant>,
    /// That deadline by another clock than that of the timer that is global here.
    own: Option<Own>,
}

/// A shard, for the clock of its timer, or `None` for the system's clock; and a deadline by it.
type Own = (Option<Arc<ShardHandle>>, Instant);

/// Whether these shards go by one clock; `None` is for the system's.
fn is_one_clock(one: Option<&ShardHandle>, other: Option<&ShardHandle>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.time.has_clock_of(&other.time),
        (Some(shard), None) | (None, Some(shard)) => !shard.time.is_users(),
        (None, None) => true,
    }
}

/// The time by one clock, whose time is `there`, that is as far away as `deadline` is by another one,
/// whose time is `here`. A deadline that has passed there is now.
fn as_far_away(deadline: Instant, here: Instant, there: Instant) -> Instant {
    there.checked_add(deadline.saturating_duration_since(here)).unwrap_or(deadline)
}

thread_local! {
    static INHERITED: RefCell<Inherited> = const { RefCell::new(Inherited { scope: None, deadline: None, own: None }) };
}

impl Inherited {
    /// What the running code has inherited. At the end of the thread that is nothing.
    #[inline]
    pub(crate) fn current() -> Self {
        INHERITED.try_with(|inherited| inherited.borrow().clone()).unwrap_or_default()
    }

    /// A deadline by the clock of the timer that is global here.
    pub(crate) fn of(deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..Self::default() }
    }

    /// A deadline by the clock of the shard's timer. For what goes by another clock, it is as far
    /// away as it is by that clock.
    pub(crate) fn by(shard: &Arc<ShardHandle>, deadline: Instant) -> Self {
        let current = Self::current();
        if is_one_clock(current.global_shard().map(Arc::as_ref), Some(shard)) {
            return Self::of(deadline);
        }
        let global = as_far_away(deadline, shard.now_instant(), current.now());
        Self { deadline: Some(global), own: Some((Some(Arc::clone(shard)), deadline)), scope: None }
    }

    /// The time of the timer that is global here.
    pub(crate) fn now(&self) -> Instant {
        self.scope.as_ref().map_or_else(crate::sync::now, |scope| scope.clock.now())
    }

    /// A shard of the timer that is global here; `None` for that of the process.
    fn global_shard(&self) -> Option<&Arc<ShardHandle>> {
        self.scope.as_ref().map(|scope| &scope.timer.inner.shards.handles[0])
    }

    /// The deadline by the clock of the shard's timer.
    #[inline]
    pub(crate) fn deadline_for(&self, shard: &ShardHandle) -> Option<Instant> {
        match &self.own {
            Some((own, at)) if is_one_clock(own.as_deref(), Some(shard)) => Some(*at),
            _ => self.deadline,
        }
    }

    /// The deadline by the clock of one timer, in a scope within `outer`: the earlier counts.
    fn own_within(&self, outer: &Self) -> Option<Own> {
        match (&self.own, &outer.own) {
            (Some((shard, at)), Some((other, earlier)))
                if is_one_clock(other.as_deref(), shard.as_deref()) =>
            {
                Some((shard.clone(), *at.min(earlier)))
            }
            // Earlier by as much as by the clock of the global timer.
            (Some((shard, at)), _) => {
                let both = self.deadline.zip(outer.deadline);
                let cut = both.map(|(own, outer)| own.saturating_duration_since(outer));
                Some((shard.clone(), at.checked_sub(cut.unwrap_or_default()).unwrap_or(*at)))
            }
            // A deadline that is not `by` a timer is compared with the time of each timer's clock.
            (None, Some((shard, at))) => {
                Some((shard.clone(), self.deadline.map_or(*at, |deadline| deadline.min(*at))))
            }
            (None, None) => None,
        }
    }

    /// The deadline as it is in a scope within this one. By the clock of that scope it is as far away
    /// as by the clock that is global here, or exact if it is known by that clock; timers that go by
    /// the clock that is global here still end at it. `None` if the clock is the same.
    fn deadline_within(&self, inner: &Scope) -> Option<Self> {
        let (deadline, shard, global) = (self.deadline?, inner.timer.first_shard(), self.global_shard());
        if is_one_clock(global.map(Arc::as_ref), Some(shard)) {
            return None;
        }
        let is_known = |(own, _): &&Own| is_one_clock(own.as_deref(), Some(shard));
        let known = self.own.as_ref().filter(is_known).map(|&(_, at)| at);
        let at = known.unwrap_or_else(|| as_far_away(deadline, self.now(), shard.now_instant()));
        // One other clock is kept: that of a timer for which the deadline was made, if there is one.
        let other = self.own.clone().filter(|_| known.is_none());
        let own = other.or_else(|| Some((global.cloned(), deadline)));
        Some(Self { deadline: Some(at), own, scope: None })
    }

    /// Runs `code` with these. The scope that is in force stays so if there is none here, or one
    /// that has ended; the deadline that is in force stays so if it is earlier.
    pub(crate) fn run<R>(&self, code: impl FnOnce() -> R) -> R {
        let outer = Self::current();
        let scope = self.scope.clone().filter(|scope| !scope.timer.first_shard().is_stopping());
        let changed = scope.as_ref().and_then(|scope| outer.deadline_within(scope));
        let around = changed.as_ref().unwrap_or(&outer);
        let deadline = self.deadline.into_iter().chain(around.deadline).min();
        let own = self.own_within(around);
        let inner = Self { scope: scope.or_else(|| outer.scope.clone()), deadline, own };
        let _restore = Restore(outer);
        // The drop of what was there may run user code, so it comes after the borrow.
        drop(INHERITED.try_with(|inherited| inherited.replace(inner)));
        code()
    }
}

struct Restore(Inherited);

impl Drop for Restore {
    fn drop(&mut self) {
        drop(INHERITED.try_with(|inherited| inherited.replace(mem::take(&mut self.0))));
    }
}

pin_project! {
    /// A future in a scope. Made by [`Deadline::scope`](crate::Deadline::scope) and
    /// [`ManualClock::scope_future`](crate::ManualClock::scope_future).
    ///
    /// Each poll runs the future within the scope, on whichever thread polls it. Futures that it
    /// polls itself are within the scope, too. Tasks that it spawns are not: give each a scope.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Scoped<F> {
        // Dropped before the scope, so that its sleeps are cancelled and not woken.
        #[pin]
        pub(crate) future: F,
        pub(crate) inherited: Inherited,
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.inherited.run(|| this.future.poll(context))
    }
}

/// A timer that is global for the code within, and its clock.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) timer: Timer,
    pub(crate) clock: ManualClock,
    /// A handle that is never dropped, once the code has asked for one.
    pub(in crate::timer) leaked: OnceLock<&'static Timer>,
}

/// The buckets of a wheel: few, as a scope is usually small and short.
const WHEEL_SIZE: usize = 256;

impl Scope {
    fn new(clock: &ManualClock) -> Arc<Self> {
        let timer = Timer::builder().shards(1).wheel_size(WHEEL_SIZE).clock(clock.clone()).build();
        let timer = timer.unwrap_or_else(|error| panic!("the timer of a scope cannot be made: {error}"));
        Arc::new(Self { timer, clock: clock.clone(), leaked: OnceLock::new() })
    }

    /// Ends the scope: wakes the sleeps and drops the callbacks that are pending, and counts them.
    fn end(&self) -> Waiting {
        let (mut waiting, start) = (Waiting::default(), self.clock.now() - self.clock.elapsed());
        for task in self.timer.inner.end(|_| true) {
            let due = task.deadline().map(|due| due.duration_since(start));
            waiting.first = waiting.first.into_iter().chain(due).min();
            waiting.pending += 1;
            waiting.sleeps += usize::from(matches!(task.task, Some(Task::Wake(_))));
        }
        waiting
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        drop(self.timer.inner.shutdown());
    }
}

impl ManualClock {
    /// Calls `code` in a scope: on this thread, and in all futures that it polls, the global
    /// `Timer` goes by this clock. Returns the result, and what was still pending at the end.
    ///
    /// So code that calls [`sleep`](crate::sleep()), [`timeout`](crate::timeout()),
    /// [`interval`](crate::interval()) or [`Timer::global`] is tested as it is, without a clock or
    /// a `Timer` among its arguments. Within the scope,
    /// [`run_until_stalled`](Self::run_until_stalled) runs a future and moves the clock whenever
    /// the future waits, and [`advance`](Self::advance) moves it by hand. Callbacks that the clock
    /// then runs are within the scope, too.
    ///
    /// Other threads are outside. A task that another thread may poll needs
    /// [`scope_future`](Self::scope_future). [`now`](crate::now()) is the time of the scope, and
    /// `Instant::now` the system's everywhere. A new clock begins at the system's time.
    ///
    /// The end of the scope shuts its `Timer` down, also if a panic ends it. Callbacks that are
    /// pending are dropped. A sleep, timeout or interval that outlives the scope goes on by the
    /// system's clock, to the same deadline, unless this clock has passed that. A scope in a scope
    /// has a `Timer` of its own. A [`Deadline`](crate::Deadline) around the scope is as far away by
    /// this clock as it is by the one outside.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use shardwheel::{ManualClock, sleep};
    ///
    /// async fn polls_three_times() -> u32 {
    ///     for _ in 0..3 {
    ///         sleep(Duration::from_secs(3600)).await;
    ///     }
    ///     3
    /// }
    ///
    /// let clock = ManualClock::new();
    /// let (polls, waiting) = clock.scope(|| clock.run_until_stalled(polls_three_times()));
    /// assert_eq!((polls, clock.elapsed()), (Some(3), Duration::from_secs(3 * 3600)));
    /// assert_eq!(waiting.pending, 0, "{waiting}");
    /// ```
    ///
    /// # Panics
    ///
    /// If the system gives no memory for the scope's `Timer`.
    ///
    /// # Performance
    ///
    /// Makes a `Timer` of one shard, without threads: some 0.1 ms. Its memory goes back when the
    /// scope and the futures that were made in it are gone. If the code calls [`Timer::global`],
    /// which returns a reference for ever, some 0.2 MB are kept for ever.
    pub fn scope<R>(&self, code: impl FnOnce() -> R) -> (R, Waiting) {
        let scope = Scope::new(self);
        let inherited = Inherited { scope: Some(Arc::clone(&scope)), ..Inherited::default() };
        let output = catch_unwind(AssertUnwindSafe(|| inherited.run(code)));
        let waiting = scope.end();
        (output.unwrap_or_else(|panic| resume_unwind(panic)), waiting)
    }

    /// Runs `future` in a scope, on whichever threads poll it: for tasks. The future is dropped
    /// outside of the scope.
    ///
    /// Within a [`scope`](Self::scope) of this clock, the future joins that scope, and what is left
    /// of it counts there. Elsewhere the scope is the future's own, and ends when the future is
    /// dropped. Once its scope has ended, the future goes by the `Timer` that is global where it is
    /// polled.
    ///
    /// The future must make its sleeps itself. In `scope_future(sleep(limit))` the sleep is made
    /// before the scope begins, so write `scope_future(async { sleep(limit).await })`. The same
    /// holds for [`Deadline::scope`](crate::Deadline::scope) and the time limits that it is for.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::thread;
    /// use std::time::{Duration, Instant};
    /// use shardwheel::{ManualClock, sleep};
    /// # use std::future::Future;
    /// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
    ///
    /// let clock = ManualClock::new();
    /// let task = clock.scope_future(async { sleep(Duration::from_secs(3600)).await });
    /// let thread = thread::spawn(move || block_on(task)); // as an executor's thread
    /// while !thread.is_finished() {
    ///     clock.advance(Duration::from_secs(1));
    /// }
    /// assert!(clock.elapsed() >= Duration::from_secs(3600));
    /// ```
    ///
    /// # Panics
    ///
    /// If the system gives no memory for the scope's `Timer`.
    pub fn scope_future<F: IntoFuture>(&self, future: F) -> Scoped<F::IntoFuture> {
        let current = Inherited::current().scope.filter(|scope| scope.clock.is(self));
        let scope = current.unwrap_or_else(|| Scope::new(self));
        let inherited = Inherited { scope: Some(scope), ..Inherited::default() };
        Scoped { future: future.into_future(), inherited }
    }
}

/// What was pending when the [scope](ManualClock::scope) of a clock ended.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use shardwheel::{ManualClock, Timer};
///
/// let clock = ManualClock::new();
/// let (_, waiting) = clock.scope(|| {
///     Timer::global().schedule_every(Duration::from_secs(60), || ()).unwrap();
///     clock.advance(Duration::from_secs(90));
/// });
/// assert_eq!(waiting.to_string(), "1 timer is pending, the first at 120s");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "it says what the scope has left pending"]
#[non_exhaustive]
pub struct Waiting {
    /// How many timers were pending: sleeps, callbacks, and values in delay queues.
    pub pending: usize,
    /// How many of them were sleeps, those of timeouts and intervals included.
    pub sleeps: usize,
    /// When the first of all was due, rounded up to a tick, as [`elapsed`](ManualClock::elapsed)
    /// counts. `None` if nothing was pending, or what was pending never comes.
    pub first: Option<Duration>,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.sleeps == self.pending { "sleep" } else { "timer" };
        let are = if self.pending == 1 { " is" } else { "s are" };
        write!(f, "{} {kind}{are} pending", self.pending)?;
        self.first.map_or(Ok(()), |first| write!(f, ", the first at {first:?}"))
    }
}

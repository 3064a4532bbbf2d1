//! A driver without a thread: the user's event loop turns the `Timer`'s shards.
//!
//! The workers lie in a [pool](crate::timer::threads) without threads, so a shutdown takes them as it
//! takes those of threads. A turn takes each worker out, lets it run what is due, and puts it back.
//! If the `Timer` has ended meanwhile, the turn ends the worker. All others are ended by the
//! shutdown.
//!
//! # Why no wake-up is lost
//!
//! [`next_deadline`](Driver::next_deadline) clears the parker, registers the user's waker, and then
//! asks each worker for its next visit. The worker's advancer announces that tick. So a timer that
//! comes before the announcement is in the answer, and one that comes after it, and is due earlier,
//! requests a visit, which wakes the waker: see [`parker`](crate::timer::threads).

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use crate::clock::UserCode;
use crate::time::{Duration, Instant};
use crate::timer::end::Inner;
use crate::timer::guard::Shield;
use crate::timer::parker::Parker;
use crate::timer::shard::ShardHandle;
use crate::timer::threads::{Pool, Worker, visit};
use crate::timer::time::{NEVER, nanos};

/// How long a loop without a waker waits for a recurring timer that an executor has.
const UNTIL_NEXT_LOOK: Duration = Duration::from_millis(10);

/// Runs a [`Timer`](crate::Timer) that has no threads, inside an event loop of the user's; made by
/// [`TimerBuilder::build_driven`](crate::TimerBuilder::build_driven).
///
/// The loop alternates two calls: [`turn`](Self::turn) runs what is due, and
/// [`next_deadline`](Self::next_deadline) says how long the loop may wait for other things. A
/// [waker](Self::register_waker) ends that wait if another thread schedules an earlier timer.
///
/// Callbacks run, and futures are woken, within `turn`, on the thread that calls it. Everything
/// else that a `Timer` does (sleeps, intervals, delay queues, cancels, statistics) works from any
/// thread.
///
/// The drop of the driver shuts the `Timer` down: see [`Timer::shutdown`](crate::Timer::shutdown).
///
/// # Examples
///
/// ```
/// use std::thread;
/// use std::time::Duration;
/// use shardwheel::Timer;
///
/// let (timer, mut driver) = Timer::builder().build_driven()?;
/// timer.schedule_after(Duration::from_millis(5), || println!("on the thread of the loop"))?;
/// let weak = timer.downgrade();
/// timer.schedule_after(Duration::from_millis(9), move || drop(weak.upgrade().unwrap().shutdown()))?;
///
/// let mut fired = 0;
/// while !driver.has_ended() {
///     // A program with sockets would wait in its poller here, for at most this time. `None`
///     // means that nothing is pending: it waits until the waker or a socket ends the wait.
///     let deadline = driver.next_deadline();
///     let wait = deadline.map(|at| at.saturating_duration_since(timer.now()));
///     thread::sleep(wait.unwrap_or(Duration::from_millis(1)));
///     fired += driver.turn();
/// }
/// assert_eq!(fired, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Driver {
    pool: Arc<Pool<Box<Worker>>>,
    timer: Weak<Inner>,
    waker: Option<Waker>,
    /// What is around that waker.
    shield: Weak<Shield>,
    /// The first shard, where that waker's panics count.
    pub(super) handle: Arc<ShardHandle>,
}

impl Driver {
    pub(in crate::timer) fn new(timer: &Arc<Inner>) -> Self {
        let handle = Arc::clone(&timer.shards.handles[0]);
        let (pool, _) = timer.locate(0);
        let (pool, timer) = (Arc::clone(pool), Arc::downgrade(timer));
        Self { pool, timer, waker: None, shield: Weak::new(), handle }
    }

    /// Runs what is due by the `Timer`'s clock, and returns how many timers have fired.
    ///
    /// It fires at most 1,024 timers of each shard, so that the loop comes back to its other work.
    /// If more are due, [`next_deadline`](Self::next_deadline) is not later than now. Panics in
    /// callbacks are caught: see [`TimerBuilder::on_panic`](crate::TimerBuilder::on_panic). Once
    /// the `Timer` has been shut down, the result is 0.
    ///
    /// # Performance
    ///
    /// O(shards), and what the due timers cost.
    pub fn turn(&mut self) -> usize {
        self.parker().clear();
        let turn = |worker: &mut Worker| {
            let fired = worker.visit();
            worker.help();
            fired
        };
        (0..self.pool.shards()).filter_map(|shard| self.visit_shard(shard, turn)).sum()
    }

    /// Returns whether the `Timer` has been shut down, or is being shut down: no further
    /// [`turn`](Self::turn) has anything to do, and the loop may end. It stays so.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.handle.is_stopping()
    }

    /// Returns when the next [`turn`](Self::turn) has something to do, by the `Timer`'s clock.
    /// `None` if nothing is pending, or if the `Timer` has been shut down:
    /// [`has_ended`](Self::has_ended) tells which.
    ///
    /// That is the deadline of the next timer, or an earlier time at which timers move to a finer
    /// wheel or memory is given back. A time that has passed means: at once. While an
    /// [`Executor`](crate::Executor) has the only timers that are pending, it is 10 ms after the
    /// last turn.
    ///
    /// From this call on, the [waker](Self::register_waker) is woken when a timer comes that is due
    /// earlier, when an executor has run a recurring timer, and when the `Timer` is shut down.
    ///
    /// # Performance
    ///
    /// O(shards).
    pub fn next_deadline(&mut self) -> Option<Instant> {
        self.parker().clear();
        if let Some(waker) = &self.waker {
            self.parker().register(waker);
        }
        let next = |worker: &mut Worker| {
            let at = match worker.next_visit() {
                NEVER if worker.awaits_executor() => worker.turned_at.saturating_add(nanos(UNTIL_NEXT_LOOK)),
                at => at,
            };
            worker.handle.time.instant(at)
        };
        (0..self.pool.shards()).filter_map(|shard| self.visit_shard(shard, next).flatten()).min()
    }

    /// Makes the `Timer` wake `waker`, instead of an earlier one, when
    /// [`next_deadline`](Self::next_deadline) has to be asked again.
    ///
    /// The waker is kept: one call is enough for the whole life of a loop. A task calls this at
    /// each poll, before `next_deadline`. The waker is woken once after each `next_deadline`, or
    /// twice if threads meet, on the thread that schedules, so it should be quick: a mio `Waker`,
    /// an `eventfd`, an unpark. A panic in it, or in its drop, is caught: see
    /// [`TimerBuilder::on_panic`](crate::TimerBuilder::on_panic). A panic in its clone reaches the
    /// caller, and the former waker stays.
    pub fn register_waker(&mut self, waker: &Waker) {
        let waker = Shield::around(waker, &self.handle.guard, &mut self.shield);
        self.parker().register(&waker);
        self.waker = Some(waker);
    }

    /// Turns the `Timer` until it ends, as a task of any runtime: when something is due, or a
    /// producer wakes the task.
    ///
    /// `sleep_until` makes the runtime's own sleep for the next deadline, which is by the `Timer`'s
    /// clock. One such sleep waits at a time, however many timers are pending; none if nothing is.
    /// The future is `Send` if `sleep_until` and its sleeps are, so it also runs on a runtime that
    /// keeps its tasks on one thread.
    ///
    /// A poll turns once. After a [`turn`](Self::turn) that has fired something, the task wakes
    /// itself, and others run first: those that were woken may set the next deadline. A sleep that
    /// ends before its deadline by the `Timer`'s clock makes nothing early: another one is made at
    /// once. So with a [`Clock`](crate::Clock) of the user's, a virtual one for instance, the sleeps
    /// must be by that clock. With a [`BootClock`](crate::BootClock) a sleep should end after a
    /// second at the latest, since most runtimes' sleeps stand still during a suspend.
    ///
    /// The drop of the future loses nothing, and leaves the driver as it is: `run` may be called
    /// again. The drop of the driver shuts the `Timer` down, so a task that owns the driver ends the
    /// `Timer` when it is aborted.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let (timer, mut driver) = Timer::builder().build_driven()?;
    /// tokio::spawn(async move {
    ///     driver.run(|deadline| tokio::time::sleep_until(deadline.into())).await;
    /// });
    /// timer.sleep(Duration::from_millis(5)).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// A panic of `sleep_until`, or of its sleeps, reaches the caller.
    ///
    /// # Performance
    ///
    /// A poll is O(shards), and what the due timers cost.
    pub async fn run<S, F>(&mut self, mut sleep_until: S)
    where
        S: FnMut(Instant) -> F,
        F: Future<Output = ()>,
    {
        let (mut sleep, mut sleeps_until) = (pin!(None::<F>), None);
        poll_fn(|context| {
            if self.turn() > 0 {
                // What has been woken runs first: it may wait for the next deadline.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            // The turn has cleared the wake that has caused this poll, so this does not repeat it.
            self.register_waker(context.waker());
            let next = self.next_deadline();
            if self.has_ended() {
                return Poll::Ready(());
            }
            if next != sleeps_until {
                sleep.set(next.map(&mut sleep_until));
                sleeps_until = next;
            }
            let is_due = next.is_some_and(|next| next <= self.handle.present_instant());
            let ended = sleep.as_mut().as_pin_mut().is_some_and(|sleep| sleep.poll(context).is_ready());
            if is_due || ended {
                // The next poll makes another sleep, if it is needed.
                sleep.set(None);
                sleeps_until = None;
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await;
    }

    /// Calls `code` with the shard's worker. `None` if the timer has been shut down.
    fn visit_shard<R>(&self, shard: usize, code: impl FnOnce(&mut Worker) -> R) -> Option<R> {
        let worker = self.pool.take(shard)?;
        let _user_code = UserCode::begin();
        Some(visit(&self.pool, shard, worker, |worker| (code(worker), NEVER)))
    }

    fn parker(&self) -> &Parker {
        self.pool.notifier.parker(0)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.upgrade() {
            drop(timer.shutdown());
        }
        self.parker().unregister();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("shards", &self.pool.shards()).finish_non_exhaustive()
    }
}

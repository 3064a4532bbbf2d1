//! A future that waits until a deadline.
//!
//! A sleep's waker *is* the payload of its timer. It lies in the timer's node, and the thread that
//! wins the node's word has it to itself. So no cell beside the node exists where a poll and the
//! advancer could meet, nothing is allocated for it, and the races of a sleep are the races of the
//! node's word. The shard argues and models those:
//!
//! - *It fires while it is polled.* The poll asks whether its timer is pending. If so, the waker
//!   that fires later is the one in the node. If not, the timer has fired, and the poll returns
//!   ready.
//! - *It fires while a poll brings another waker.* The poll puts the new waker into the node. If
//!   the poll is too late, the timer has fired: the old waker is woken needlessly, and the poll is
//!   ready. If the advancer meets the node during the exchange, it sets the node aside. The poll
//!   then finds the clock at the deadline, takes the timer out, and is ready.
//! - *It fires while it is dropped.* The drop cancels the timer. If the drop is too late, the
//!   advancer owns the waker, wakes it and drops it. Nothing points back to the sleep.
//! - *It fires while it is reset.* The reschedule is too late. The waker is woken, so the task
//!   polls again, and that poll registers for the new deadline.
//!
//! The usual alternative is an `AtomicWaker` that the sleep and the timer share. It must outlive
//! both, so it needs an allocation for each sleep, or a pool beside the slab. With an
//! `Arc<AtomicWaker>` and a callback that wakes it, creating, polling and dropping a sleep took 71
//! ns, against 49 ns here. A poll took two read-modify-writes, against one load here.
//!
//! The thread that takes a waker out of the node wakes it or drops it, with no lock and no pin
//! held.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::error::SleepError;
use crate::error::ScheduleErrorKind;
use crate::shard::{Exchanged, Key, Scheduler};
use crate::tick::Tick;
use crate::timer::{Nanos, ShardHandle, Task, ToWake};

/// Waits until a deadline, on any executor. Made by [`Timer::sleep`](crate::Timer::sleep).
///
/// The first poll schedules a timer, and dropping the sleep cancels it. The sleep resolves to an
/// error if the [`Timer`](crate::Timer) is shut down before the deadline, or refuses the timer.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use shardwheel::Timer;
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let timer = Timer::builder().build()?;
/// let begin = Instant::now();
/// block_on(timer.sleep(Duration::from_millis(20)))?;
/// assert!(begin.elapsed() >= Duration::from_millis(20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Performance
///
/// O(1), lock-free and without allocation: the first poll, a poll with another waker, a reset and a
/// drop. A poll with the same waker reads one word.
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    handle: Arc<ShardHandle>,
    deadline: Nanos,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// The timer does not know it.
    Idle,
    /// The timer holds this waker under this key.
    Waiting { key: Key, waker: WakerId },
    /// It has resolved.
    Done(Result<(), SleepError>),
}

/// Distinguishes two wakers as long as one of them is alive.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WakerId {
    data: usize,
    vtable: usize,
}

impl WakerId {
    fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), vtable: std::ptr::from_ref(waker.vtable()).addr() }
    }
}

impl Sleep {
    pub(crate) fn new(handle: Arc<ShardHandle>, deadline: Nanos) -> Self {
        Self { handle, deadline, state: State::Idle }
    }

    /// Returns the deadline; `None` if it is further away than the system's clock can represent.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.handle.time.instant(self.deadline)
    }

    /// Returns whether the deadline has passed.
    ///
    /// A sleep that is first polled after its deadline resolves at once; if its shard has been
    /// idle, it resolves at the next tick. For a sleep that was refused, or whose timer has been
    /// shut down, the clock decides.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        match self.state {
            State::Idle | State::Done(Err(_)) => self.handle.now() >= self.deadline,
            State::Waiting { key, .. } => {
                !self.handle.scheduler.is_pending(key) && self.outcome(None).is_ok()
            }
            State::Done(Ok(())) => true,
        }
    }

    /// Gives the sleep another deadline, whether it has resolved or not. The task that last polled
    /// a waiting sleep is woken for the new deadline; a sleep that has resolved must be polled
    /// again.
    pub fn reset(&mut self, deadline: Instant) {
        self.reset_to(self.handle.time.since_start(deadline));
    }

    pub(super) fn reset_to(&mut self, deadline: Nanos) {
        self.deadline = deadline;
        self.state = match self.state {
            State::Waiting { key, waker } => {
                let moved = self.handle.scheduler.reschedule(key, self.tick());
                moved.map_or(State::Idle, |key| State::Waiting { key, waker })
            }
            State::Idle | State::Done(_) => State::Idle,
        };
    }

    /// Makes the next poll try again after a refusal.
    pub(super) fn try_again(&mut self) {
        self.state = State::Idle;
    }

    pub(super) fn handle(&self) -> &ShardHandle {
        &self.handle
    }

    /// The deadline's tick.
    #[inline]
    fn tick(&self) -> Tick {
        self.handle.time.tick_for(self.deadline)
    }

    #[inline]
    pub(super) fn poll_sleep(&mut self, waker: &Waker) -> Poll<Result<(), SleepError>> {
        match self.state {
            State::Done(result) => Poll::Ready(result),
            State::Idle => self.begin(waker),
            State::Waiting { key, waker: known } => self.look(key, known, waker),
        }
    }

    /// Registers `waker` with the timer, unless the deadline's tick has passed.
    fn begin(&mut self, waker: &Waker) -> Poll<Result<(), SleepError>> {
        let tick = self.tick();
        if tick <= self.handle.scheduler.now() && !self.handle.is_stopping() {
            return self.end(Ok(()));
        }
        let waker = waker.clone();
        // The identity of the clone in the node: that clone keeps its data alive, so no other waker
        // gets the same identity.
        let id = WakerId::of(&waker);
        match self.handle.scheduler.schedule_in_place(tick, ToWake(waker)) {
            Ok(key) => {
                self.state = State::Waiting { key, waker: id };
                Poll::Pending
            }
            Err(refused) => {
                let kind = refused.kind();
                // Before the clock is read: both may panic.
                drop(refused);
                self.end(self.outcome(Some(kind)))
            }
        }
    }

    /// Checks whether the timer has fired; if not, makes sure that it wakes `waker`.
    fn look(&mut self, key: Key, known: WakerId, waker: &Waker) -> Poll<Result<(), SleepError>> {
        if known != WakerId::of(waker) {
            self.change_waker(key, waker)
        } else if self.handle.scheduler.is_pending(key) {
            Poll::Pending
        } else {
            self.end(self.outcome(None))
        }
    }

    /// Replaces the waker in the node by a clone of `waker`. The timer stays pending throughout.
    fn change_waker(&mut self, key: Key, waker: &Waker) -> Poll<Result<(), SleepError>> {
        // Clone first, because a clone may panic: the node is unchanged yet.
        let waker = waker.clone();
        let id = WakerId::of(&waker);
        match self.handle.scheduler.exchange(key, ToWake(waker), |task| task.read_part(Task::take_waker)) {
            Exchanged::Done(former) => {
                self.state = State::Waiting { key, waker: id };
                drop(former);
                Poll::Pending
            }
            Exchanged::Over(former) => {
                let ended = self.end(self.outcome(None));
                drop(former);
                ended
            }
            Exchanged::Gone => self.end(self.outcome(None)),
        }
    }

    fn end(&mut self, result: Result<(), SleepError>) -> Poll<Result<(), SleepError>> {
        self.state = State::Done(result);
        Poll::Ready(result)
    }

    /// How a sleep has ended whose timer is gone or was refused.
    fn outcome(&self, refused: Option<ScheduleErrorKind>) -> Result<(), SleepError> {
        let shut_down = self.handle.is_stopping().then_some(ScheduleErrorKind::ShutDown);
        match refused.or(shut_down) {
            // The deadline has passed: the timer has fired before the shutdown, or was not needed.
            Some(_) if self.handle.now() >= self.deadline => Ok(()),
            Some(kind) => Err(SleepError::new(kind)),
            None => Ok(()),
        }
    }
}

/// Cancels the sleep's timer, and returns its waker if the timer was pending.
#[inline(always)]
fn cancel(scheduler: &Scheduler<Task>, key: Key) -> Option<Waker> {
    scheduler.cancel_and(key, |task| task.read_part(Task::take_waker))
}

impl Future for Sleep {
    type Output = Result<(), SleepError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().poll_sleep(context.waker())
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let State::Waiting { key, .. } = self.state {
            drop(cancel(&self.handle.scheduler, key));
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}

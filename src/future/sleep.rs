//! A future that waits.
//!
//! A sleep's waker *is* the payload of its timer: it lies in the timer's node, and whoever wins the node's word has
//! it to himself. So there is no cell beside the node that a poll and the advancer could meet in, nothing is
//! allocated for it, and the races of a sleep are those of the word, which are argued and modelled on the ground
//! floor:
//!
//! - *fires while it is polled*: the poll asks whether its timer is pending. If it is, the waker that fires later is
//!   the one in the node; if not, it has fired, and the poll says so.
//! - *another waker while it fires*: the poll puts the new one into the node. If it comes too late, the timer has fired:
//!   the old waker is woken in vain, and the poll is ready. If the advancer comes to the node meanwhile, it sets it
//!   aside; the poll finds the clock at the deadline, takes the timer out, and is ready.
//! - *dropped while it fires*: the drop cancels. If that comes too late, the waker is the advancer's, which wakes
//!   and drops it; nothing points back to the sleep.
//! - *reset while it fires*: the reschedule comes too late; the waker is woken, so the task polls again, and that
//!   poll registers for the new deadline.
//!
//! The usual way is an `AtomicWaker` that the sleep and the timer share. It would have to lie somewhere that outlives
//! both: an allocation for each sleep, or a pool beside the slab. With an `Arc<AtomicWaker>` and a callback that wakes it,
//! to create, poll and drop a sleep took 71 ns where this takes 49, and a poll took two read-modify-writes where this
//! takes a load.
//!
//! A waker is woken, and dropped, by who took it out of the node: with no lock and no pin held.

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
/// The timer is scheduled at the first poll and cancelled when the sleep is dropped. It resolves to an error if the
/// [`Timer`](crate::Timer) is shut down before the deadline, or does not take it.
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
/// O(1), lock-free and without an allocation: to poll it first, to poll it with another waker, to reset and to drop
/// it. A poll with the same waker looks at one word.
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    handle: Arc<ShardHandle>,
    deadline: Nanos,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// Not known to the timer.
    Idle,
    /// The timer has it, with that waker.
    Waiting { key: Key, waker: WakerId },
    /// It has resolved.
    Done(Result<(), SleepError>),
}

/// Tells one waker from another for as long as either is alive.
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

    /// When it is over; `None` if that is further off than the system can say.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.handle.time.instant(self.deadline)
    }

    /// Whether its time is over. A sleep that is polled for the first time after that resolves at once, or, where its
    /// shard has been idle, at the next tick. One that was refused, or whose timer has been shut down, goes by the clock.
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

    /// Gives it another deadline, whether it has resolved or not. The task that has polled it is woken for the new
    /// one; a sleep that has resolved has to be polled again.
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

    /// Has the next poll of a sleep that was refused try again.
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

    /// Has the timer wake `waker`, unless the deadline's tick is over.
    fn begin(&mut self, waker: &Waker) -> Poll<Result<(), SleepError>> {
        let tick = self.tick();
        if tick <= self.handle.scheduler.now() && !self.handle.is_stopping() {
            return self.end(Ok(()));
        }
        let waker = waker.clone();
        // That of the handle in the node, which keeps what it points to from being another waker's.
        let id = WakerId::of(&waker);
        match self.handle.scheduler.schedule_in_place(tick, ToWake(waker)) {
            Ok(key) => {
                self.state = State::Waiting { key, waker: id };
                Poll::Pending
            }
            Err(refused) => self.end(self.outcome(Some(refused.kind()))),
        }
    }

    /// Looks whether the timer has fired, and sees to it that it wakes `waker` if not.
    fn look(&mut self, key: Key, known: WakerId, waker: &Waker) -> Poll<Result<(), SleepError>> {
        if known != WakerId::of(waker) {
            self.change_waker(key, waker)
        } else if self.handle.scheduler.is_pending(key) {
            Poll::Pending
        } else {
            self.end(self.outcome(None))
        }
    }

    /// Puts a handle of `waker` in the place of the one in the node: the timer stays pending throughout.
    fn change_waker(&mut self, key: Key, waker: &Waker) -> Poll<Result<(), SleepError>> {
        // First of all, for a clone may panic: nothing has been given up yet.
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

    /// How a sleep has ended whose timer is gone, or was refused.
    fn outcome(&self, refused: Option<ScheduleErrorKind>) -> Result<(), SleepError> {
        let shut_down = self.handle.is_stopping().then_some(ScheduleErrorKind::ShutDown);
        match refused.or(shut_down) {
            // It may have fired before the end.
            Some(ScheduleErrorKind::ShutDown) if self.handle.now() >= self.deadline => Ok(()),
            Some(kind) => Err(SleepError::new(kind)),
            None => Ok(()),
        }
    }
}

/// The waker of the sleep's timer, if it has neither fired nor been cancelled.
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

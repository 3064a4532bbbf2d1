//! The wait for a deadline that all futures are made of.
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
//!   ready. If the advancer meets the node during the exchange, it defers the node. The poll
//!   then finds the clock at the deadline, takes the timer out, and is ready.
//! - *It fires while it is dropped.* The drop cancels the timer. If the drop is too late, the
//!   advancer owns the waker, wakes it and drops it. Nothing points back to the sleep.
//! - *It fires while it is reset.* The reschedule is too late. The waker is woken, so the task
//!   polls again, and that poll registers for the new deadline.
//!
//! A deadline that has passed needs no timer: the first poll reads the clock, and so does a reset
//! of a sleep that waits. The shard's own clock cannot answer, because an idle shard does not move
//! it. A sleep that is reset to the past keeps its timer ([`State::Overdue`]), which wakes the
//! task, and its next poll takes the timer out. So `is_elapsed` never returns to false, unless a
//! user's clock is set back.
//!
//! The usual alternative is an `AtomicWaker` that the sleep and the timer share. It must outlive
//! both, so it needs an allocation for each sleep, or a pool beside the slab. With an
//! `Arc<AtomicWaker>` and a callback that wakes it, creating, polling and dropping a sleep of a
//! prototype took 71 ns, against 49 ns in this way. A poll took two read-modify-writes, against a
//! load of the node's word.
//!
//! The thread that takes a waker out of the node wakes it or drops it, with no lock and no pin
//! held.

use std::task::{Poll, Waker, ready};

use super::budget;
use super::error::SleepError;
use crate::error::ScheduleErrorKind;
use crate::shard::{Exchanged, Key, Scheduler, Tag};
use crate::tick::Tick;
use crate::time::Instant;
use crate::timer::{Membership, NEVER, Nanos, ShardHandle, Task, TimerKey};

/// A wait for a deadline. Its owner has the shard's handle, and passes it to each call: a [`Sleep`]
/// counts its uses of the handle, and a sleep of the global `Timer` need not. The type is not
/// generic over the handle: there would be two copies of each call, and the compiler would inline
/// neither.
///
/// The owner calls [`cancel`](Self::cancel) when it is dropped.
///
/// [`Sleep`]: super::Sleep
pub(super) struct Wait {
    /// Its owner may change it until the first poll.
    pub(super) deadline: Nanos,
    /// How long after the deadline the timer may be due. A reset keeps it.
    pub(super) slack: Nanos,
    /// Of the call that made it.
    tag: Tag,
    state: State,
    /// Of a member of a group.
    membership: Option<Box<Membership>>,
}

#[derive(Clone, Copy)]
enum State {
    /// The timer does not know it.
    Idle,
    /// The timer holds this waker under this key.
    Waiting { key: Key, waker: WakerId },
    /// Likewise, and the deadline has passed: the next poll is ready.
    Overdue { key: Key, waker: WakerId },
    /// It has resolved.
    Done(Result<(), SleepError>),
}

/// Distinguishes two wakers as long as one of them is alive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WakerId {
    data: usize,
    vtable: usize,
}

impl WakerId {
    pub(crate) fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), vtable: std::ptr::from_ref(waker.vtable()).addr() }
    }
}

impl Wait {
    #[inline]
    pub(super) fn new(deadline: Nanos, slack: Nanos, tag: Tag, membership: Option<Box<Membership>>) -> Self {
        Self { deadline, slack, tag, state: State::Idle, membership }
    }

    /// One that has ended in an error.
    pub(super) fn refused(kind: ScheduleErrorKind) -> Self {
        Self { state: State::Done(Err(SleepError::new(kind))), ..Self::new(NEVER, 0, Tag::default(), None) }
    }

    pub(super) fn deadline(&self, handle: &ShardHandle) -> Option<Instant> {
        handle.time.instant(self.deadline)
    }

    /// Whether the next poll is ready.
    pub(super) fn is_elapsed(&self, handle: &ShardHandle) -> bool {
        match self.state {
            State::Idle | State::Done(Err(_)) => self.has_passed(handle, self.deadline),
            State::Waiting { key, .. } => {
                !handle.scheduler.is_pending(key) && self.outcome(handle, None).is_ok()
            }
            State::Overdue { .. } | State::Done(Ok(())) => true,
        }
    }

    /// Whether it has resolved, and has not been reset since.
    #[cfg(feature = "stream")]
    pub(super) fn is_terminated(&self) -> bool {
        matches!(self.state, State::Done(_))
    }

    pub(super) fn reset(&mut self, handle: &ShardHandle, deadline: Nanos) {
        // Comes first: a user's clock may panic.
        let looks = matches!(self.state, State::Waiting { .. } | State::Overdue { .. });
        let is_overdue = looks && self.has_passed(handle, deadline);
        self.deadline = deadline;
        self.state = match self.state {
            State::Waiting { key, waker } | State::Overdue { key, waker } => {
                match handle.scheduler.reschedule(key, self.tick(handle)) {
                    Some(key) if is_overdue => State::Overdue { key, waker },
                    Some(key) => State::Waiting { key, waker },
                    None => State::Idle,
                }
            }
            State::Idle | State::Done(_) => State::Idle,
        };
        let _ = self.wait_on(handle);
    }

    /// Tells the group, if there is one, which timer waits. If the group was cancelled before that,
    /// cancels the timer, wakes the task and ends.
    #[inline]
    fn wait_on(&mut self, handle: &ShardHandle) -> Poll<Result<(), SleepError>> {
        if let (Some(membership), State::Waiting { key, .. }) = (&self.membership, self.state)
            && let Some(mut task) =
                membership.members.fill(membership.number, &handle.scheduler, TimerKey::once(key))
        {
            handle.guard.run_for_caller(|| task.take_waker().map(Waker::wake));
            return self.end(self.outcome(handle, None));
        }
        Poll::Pending
    }

    /// Whether `deadline` has passed by the clock. The fast clock is ahead by microseconds, so it
    /// answers alone only if the deadline is further away.
    #[inline]
    fn has_passed(&self, handle: &ShardHandle, deadline: Nanos) -> bool {
        let is_near = handle.time.fast_now().is_none_or(|now| now >= deadline);
        is_near && deadline != NEVER && handle.now() >= deadline
    }

    /// Cancels the timer, if there is one. The waker is dropped here, also while a panic unwinds.
    #[inline]
    pub(super) fn cancel(&self, handle: &ShardHandle) {
        if let State::Waiting { key, .. } | State::Overdue { key, .. } = self.state {
            let waker = cancel(&handle.scheduler, key);
            handle.guard.run_for_caller(|| drop(waker));
        }
    }

    /// Makes the next poll try again after a refusal.
    pub(super) fn try_again(&mut self) {
        self.state = State::Idle;
    }

    /// The tick for the deadline, within the slack.
    #[inline]
    fn tick(&self, handle: &ShardHandle) -> Tick {
        handle.time.tick_within(self.deadline, self.slack, 0)
    }

    #[inline]
    pub(super) fn poll(&mut self, handle: &ShardHandle, waker: &Waker) -> Poll<Result<(), SleepError>> {
        match self.state {
            State::Done(result) => self.end_at_once(result, waker),
            State::Idle => self.begin(handle, waker),
            State::Waiting { key, waker: known } => self.look(handle, key, known, waker),
            State::Overdue { key, .. } => self.take_out(handle, key),
        }
    }

    /// Makes the next poll ready if the deadline has passed and the timer has not fired yet.
    pub(super) fn look_at_clock(&mut self, handle: &ShardHandle) {
        if let State::Waiting { key, waker } = self.state
            && self.has_passed(handle, self.deadline)
        {
            self.state = State::Overdue { key, waker };
        }
    }

    /// Ends a sleep whose deadline has passed before its timer has fired.
    #[cold]
    fn take_out(&mut self, handle: &ShardHandle, key: Key) -> Poll<Result<(), SleepError>> {
        self.state = State::Done(Ok(()));
        drop(cancel(&handle.scheduler, key));
        Poll::Ready(Ok(()))
    }

    /// Registers `waker` with the timer, unless the deadline has passed.
    fn begin(&mut self, handle: &ShardHandle, waker: &Waker) -> Poll<Result<(), SleepError>> {
        if self.has_passed(handle, self.deadline) {
            return self.end_at_once(Ok(()), waker);
        }
        let tick = self.tick(handle);
        let clone = waker.clone();
        // The identity of the clone in the node: that clone keeps its data alive, so no other waker
        // gets the same identity.
        let id = WakerId::of(&clone);
        match handle.scheduler.schedule_by(self.tag, tick, || Task::Wake(Some(clone))) {
            Ok(key) => {
                self.state = State::Waiting { key, waker: id };
                self.wait_on(handle)
            }
            Err(refused) => {
                let kind = refused.kind();
                // Before the clock is read: both may panic.
                drop(refused);
                self.end_at_once(self.outcome(handle, Some(kind)), waker)
            }
        }
    }

    /// Checks whether the timer has fired; if not, makes sure that it wakes `waker`.
    fn look(
        &mut self,
        handle: &ShardHandle,
        key: Key,
        known: WakerId,
        waker: &Waker,
    ) -> Poll<Result<(), SleepError>> {
        if known != WakerId::of(waker) {
            self.change_waker(handle, key, waker)
        } else if handle.scheduler.is_pending(key) {
            Poll::Pending
        } else {
            self.end(self.outcome(handle, None))
        }
    }

    /// Replaces the waker in the node by a clone of `waker`. The timer stays pending throughout.
    #[inline(never)]
    fn change_waker(
        &mut self,
        handle: &ShardHandle,
        key: Key,
        waker: &Waker,
    ) -> Poll<Result<(), SleepError>> {
        // Clone first, because a clone may panic: the node is unchanged yet.
        let waker = waker.clone();
        let id = WakerId::of(&waker);
        match handle.scheduler.exchange(key, Task::Wake(Some(waker)), |task| task.read_part(Task::take_waker))
        {
            Exchanged::Done(former) => {
                self.state = State::Waiting { key, waker: id };
                drop(former);
                self.wait_on(handle)
            }
            Exchanged::Over(former) => {
                let ended = self.end(self.outcome(handle, None));
                drop(former);
                ended
            }
            Exchanged::Gone => self.end(self.outcome(handle, None)),
        }
    }

    /// Ends without having waited: now and then, the task has to return to its executor first.
    #[cold]
    fn end_at_once(&mut self, result: Result<(), SleepError>, waker: &Waker) -> Poll<Result<(), SleepError>> {
        ready!(budget::spend(waker));
        self.end(result)
    }

    fn end(&mut self, result: Result<(), SleepError>) -> Poll<Result<(), SleepError>> {
        self.state = State::Done(result);
        Poll::Ready(result)
    }

    /// How a sleep has ended whose timer is gone or was refused.
    fn outcome(&self, handle: &ShardHandle, refused: Option<ScheduleErrorKind>) -> Result<(), SleepError> {
        match refused.map(SleepError::new).map_or_else(|| self.ending(handle), Err) {
            // The deadline has passed: the timer has fired before that, or was not needed.
            Err(_) if self.has_passed(handle, self.deadline) => Ok(()),
            outcome => outcome,
        }
    }

    /// An error if the timer has been shut down, or the group cancelled.
    pub(super) fn ending(&self, handle: &ShardHandle) -> Result<(), SleepError> {
        let is_cancelled = || self.membership.as_ref().is_some_and(|membership| membership.is_cancelled());
        let shut_down = handle.is_stopping().then_some(ScheduleErrorKind::ShutDown);
        let kind = shut_down.or_else(|| is_cancelled().then_some(ScheduleErrorKind::Cancelled));
        kind.map_or(Ok(()), |kind| Err(SleepError::new(kind)))
    }
}

/// Cancels the sleep's timer, and returns its waker if the timer was pending.
#[inline(always)]
fn cancel(scheduler: &Scheduler<Task>, key: Key) -> Option<Waker> {
    scheduler.cancel_and(key, |task| task.read_part(Task::take_waker))
}

//! The payload of a timer's node: a callback that runs once, a callback that recurs, a waker, or a
//! value of a delay queue.
//!
//! A small payload lies in the node itself (see [`inline`](super::inline)); node and payload are
//! one cache line. A larger one is boxed by its caller, and runs in its box: it is never moved to
//! the stack of the thread that runs it. A callback of three words is small, and so is one of four
//! words of which one is never zero, as a reference is.
//!
//! The thread that wins the node's word (see [`state`](crate::shard::node::state)) has the task to
//! itself.

use std::task::Waker;
use std::time::Instant;

use super::inline::{Inline, Kind, Run, fits};
use super::occurrence::{Callback, Occasion};
use super::schedule::Schedule;
use super::time::{Nanos, Time};
use crate::error::ScheduleError;
use crate::shard::Key;
use crate::unwind::DropQuietly;
use crate::{Scheduler, Tick};

/// The payload of a node in a [`Timer`](crate::Timer)'s shard.
pub(crate) struct Task(Content);

enum Content {
    /// `None` once it has been woken. A variant of its own: a cancel takes the waker without a
    /// virtual call.
    Wake(Option<Waker>),
    Callback(Inline),
}

/// Schedules a content that [fits] into a task, as a box does. If it is refused, the error returns
/// it.
#[inline]
pub(crate) fn schedule<R: Run>(
    scheduler: &Scheduler<Task>,
    tick: Tick,
    content: R,
) -> Result<Key, ScheduleError<R>> {
    schedule_task(scheduler, tick, Task::callback(content)).map_err(|refused| refused.map(Task::into_content))
}

/// Schedules a task. It is not generic and not inlined: a program has one copy, however many types
/// of callbacks it has.
#[inline(never)]
pub(crate) fn schedule_task(
    scheduler: &Scheduler<Task>,
    tick: Tick,
    task: Task,
) -> Result<Key, ScheduleError<Task>> {
    scheduler.schedule(tick, task)
}

impl Task {
    pub(crate) fn wake(waker: Waker) -> Self {
        Self(Content::Wake(Some(waker)))
    }

    #[inline(always)]
    pub(super) fn callback<R: Run>(content: R) -> Self {
        Self(Content::Callback(Inline::hold(content)))
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        match &self.0 {
            Content::Wake(_) => Kind::Wake,
            Content::Callback(callback) => callback.get().kind(),
        }
    }

    #[inline]
    pub(crate) fn recurs(&self) -> bool {
        self.kind() == Kind::Recurring
    }

    /// Runs the task once: calls the callback or wakes the waker.
    #[inline]
    pub(crate) fn run(&mut self, occasion: Occasion<'_>) {
        match &mut self.0 {
            Content::Wake(waker) => wake(waker.take()),
            Content::Callback(callback) => callback.get_mut().run(occasion),
        }
    }

    /// Wakes the waker, if the task was made of one and has not run.
    pub(crate) fn wake_up(&mut self) {
        wake(self.take_waker());
    }

    /// When the task is due next. It ran for tick `due`, and the time is `now`. `None` if the task
    /// has ended.
    pub(crate) fn next(&mut self, due: Tick, time: &Time, now: Instant) -> Option<Nanos> {
        match &mut self.0 {
            Content::Wake(_) => None,
            Content::Callback(callback) => callback.get_mut().next(due, time, now),
        }
    }

    /// Drops the schedule of a recurring callback.
    pub(crate) fn drop_schedule(&mut self) {
        if let Content::Callback(callback) = &mut self.0 {
            callback.get_mut().drop_schedule();
        }
    }

    /// Takes out the waker, if the task was made of a waker and has not run.
    #[inline(always)]
    pub(crate) fn take_waker(&mut self) -> Option<Waker> {
        if let Content::Wake(waker) = &mut self.0 { waker.take() } else { None }
    }

    /// The content that the task was made of.
    ///
    /// # Panics
    ///
    /// If the content has another type.
    pub(crate) fn into_content<R: Run>(self) -> R {
        match self.0 {
            Content::Callback(callback) => callback.into_content(),
            Content::Wake(_) => panic!("a task is given back as what it was made of"),
        }
    }
}

#[inline]
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// A callback that runs once; `None` once it has run.
pub(super) struct Once<F>(Option<F>);

impl<F> Once<F> {
    /// Whether it fits into a task.
    pub(super) const FITS: bool = fits::<Self>();

    #[inline(always)]
    pub(super) fn new(callback: F) -> Self {
        Self(Some(callback))
    }

    /// The callback, which has not run.
    pub(super) fn into_callback(self) -> F {
        self.0.expect("a callback that was refused has not run")
    }
}

impl<F: FnOnce() + Send + 'static> Run for Once<F> {
    fn kind(&self) -> Kind {
        Kind::Once
    }

    fn run(&mut self, _occasion: Occasion<'_>) {
        if let Some(callback) = self.0.take() {
            callback();
        }
    }
}

pub(super) struct Recurring<S, C> {
    /// Quiet, so that its drop never panics beside the callback's.
    schedule: DropQuietly<S>,
    /// When the callback was due last; before the first run, when it is due first.
    previous: Instant,
    /// The tick for `previous`.
    armed_for: Tick,
    callback: C,
    /// Whether the callback has asked for no further occurrence.
    has_ended: bool,
}

impl<S, C> Recurring<S, C> {
    /// A callback that recurs by `schedule`, first at `first`. `armed_for` is the tick for `first`.
    pub(super) fn new(schedule: S, first: Instant, armed_for: Tick, callback: C) -> Self {
        Self { schedule: DropQuietly::new(schedule), previous: first, armed_for, callback, has_ended: false }
    }

    /// When the occurrence of tick `due` was due. A timer that was rescheduled continues from its
    /// new deadline; `None` if an `Instant` cannot represent that.
    fn due(&self, due: Tick, time: &Time) -> Option<Instant> {
        if due == self.armed_for { Some(self.previous) } else { time.instant(time.start_of(due)) }
    }

    /// The schedule and the callback of a recurring timer that was refused.
    pub(super) fn into_parts(self) -> (S, C) {
        (self.schedule.into_inner(), self.callback)
    }
}

impl<S: Schedule, C: Callback> Run for Box<Recurring<S, C>> {
    fn kind(&self) -> Kind {
        Kind::Recurring
    }

    fn run(&mut self, occasion: Occasion<'_>) {
        let due = self.due(occasion.deadline, &occasion.handle.time);
        let due = due.unwrap_or(self.previous);
        self.has_ended = self.callback.call(occasion, due).is_break();
    }

    fn next(&mut self, due: Tick, time: &Time, now: Instant) -> Option<Nanos> {
        if self.has_ended {
            return None;
        }
        self.previous = self.due(due, time)?;
        let next = self.schedule.next_after(self.previous, now)?;
        let mut at = time.since_start(next);
        if next <= self.previous {
            // With a schedule that does not advance no time would pass: due after now instead.
            at = at.max(time.since_start(now).saturating_add(1));
        }
        (self.previous, self.armed_for) = (next, time.tick_for(at));
        Some(at)
    }

    fn drop_schedule(&mut self) {
        self.schedule.drop_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_callback_comes_back_as_it_was() {
        let task = Task::callback(Once::new(move_five()));
        assert_eq!(five(task.into_content::<Once<fn()>>().into_callback()), 5);

        fn move_five() -> fn() {
            || ()
        }
        fn five(callback: fn()) -> u32 {
            callback();
            5
        }
    }
}

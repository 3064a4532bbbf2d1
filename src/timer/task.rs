//! What a timer's node holds: a callback that runs once, one that recurs, or a waker.
//!
//! Small ones lie in the node itself (see [`inline`](super::inline)), which is one cache line with them. Larger ones are
//! boxed. A callback of three words is small, and so is one of four of which one is never zero, as a reference is.

use std::any::Any;
use std::task::Waker;
use std::time::Instant;

use super::inline::Inline;
use super::schedule::Schedule;
use super::time::{Nanos, Time};
use crate::Tick;
use crate::shard::Seed;
use crate::unwind::FirstPanic;

/// The payload of a [`Timer`](crate::Timer)'s shard.
pub(crate) struct Task(Content);

enum Content {
    /// `None` once it has been woken. By itself, so that who cancels it has it in hand, asking nobody what it is.
    Wake(Option<Waker>),
    Callback(Inline),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A callback that runs once.
    Once,
    /// A callback that runs again and again.
    Recurring,
    /// A future waits.
    Wake,
}

/// What a callback does; user code all of it, except for `kind`.
pub(super) trait Run: Send {
    fn kind(&self) -> Kind;

    fn run(&mut self);

    /// When it is due next, after the run at tick `due`, it being `now`.
    fn next(&mut self, _due: Tick, _time: &Time, _now: Instant) -> Option<Nanos> {
        None
    }

    /// Puts the user's callback into `place`, which is an `Option` of its type.
    fn give_back(&mut self, place: &mut dyn Any);
}

impl Task {
    pub(crate) fn once<F: FnOnce() + Send + 'static>(callback: F) -> Self {
        Self::callback(Once(Some(callback)))
    }

    /// A task that recurs by that schedule, whose first occurrence is at `first`; `armed_for` is the tick for that.
    pub(crate) fn recurring<S, F>(schedule: S, first: Instant, armed_for: Tick, callback: F) -> Self
    where
        S: Schedule,
        F: FnMut() + Send + 'static,
    {
        let (schedule, callback) = (Some(schedule), Some(callback));
        Self::callback(Recurring { schedule, previous: first, armed_for, callback })
    }

    pub(crate) fn wake(waker: Waker) -> Self {
        Self(Content::Wake(Some(waker)))
    }

    #[inline(always)]
    fn callback<R: Run + 'static>(callback: R) -> Self {
        Self(Content::Callback(Inline::new(callback)))
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

    /// Does what the task is for, once.
    #[inline]
    pub(crate) fn run(&mut self) {
        match &mut self.0 {
            Content::Wake(waker) => {
                if let Some(waker) = waker.take() {
                    waker.wake();
                }
            }
            Content::Callback(callback) => callback.get_mut().run(),
        }
    }

    /// When it is due next, after the run at tick `due`, it being `now`; `None` where it has ended.
    pub(crate) fn next(&mut self, due: Tick, time: &Time, now: Instant) -> Option<Nanos> {
        match &mut self.0 {
            Content::Wake(_) => None,
            Content::Callback(callback) => callback.get_mut().next(due, time, now),
        }
    }

    /// Takes out the waker that the task has been made of, if it has and has not run.
    #[inline(always)]
    pub(crate) fn take_waker(&mut self) -> Option<Waker> {
        if let Content::Wake(waker) = &mut self.0 { waker.take() } else { None }
    }

    /// The callback that the task has been made of.
    ///
    /// # Panics
    ///
    /// If it was made of another type's, or has run.
    pub(crate) fn take_callback<F: 'static>(&mut self) -> F {
        let mut place = None::<F>;
        if let Content::Callback(callback) = &mut self.0 {
            callback.get_mut().give_back(&mut place);
        }
        place.expect("a task that was refused has not run")
    }
}

/// A callback on its way to be a task that runs it once.
pub(crate) struct Callback<F>(pub(crate) F);

impl<F: FnOnce() + Send + 'static> Seed<Task> for Callback<F> {
    #[inline(always)]
    fn grow(self) -> Task {
        Task::once(self.0)
    }

    fn of(mut task: Task) -> Self {
        Self(task.take_callback())
    }
}

/// A waker on its way to be a task that wakes it.
pub(crate) struct ToWake(pub(crate) Waker);

impl Seed<Task> for ToWake {
    #[inline(always)]
    fn grow(self) -> Task {
        Task::wake(self.0)
    }

    fn of(mut task: Task) -> Self {
        Self(task.take_waker().expect("a task that was refused has not run"))
    }
}

struct Once<F>(Option<F>);

impl<F: FnOnce() + Send + 'static> Run for Once<F> {
    fn kind(&self) -> Kind {
        Kind::Once
    }

    fn run(&mut self) {
        if let Some(callback) = self.0.take() {
            callback();
        }
    }

    fn give_back(&mut self, place: &mut dyn Any) {
        put(self.0.take(), place);
    }
}

/// A content that is too large for the task.
impl<R: Run> Run for Box<R> {
    fn kind(&self) -> Kind {
        (**self).kind()
    }

    fn run(&mut self) {
        (**self).run();
    }

    fn next(&mut self, due: Tick, time: &Time, now: Instant) -> Option<Nanos> {
        (**self).next(due, time, now)
    }

    fn give_back(&mut self, place: &mut dyn Any) {
        (**self).give_back(place);
    }
}

struct Recurring<S, F> {
    /// `None` while it is dropped.
    schedule: Option<S>,
    /// When it was due last.
    previous: Instant,
    /// The tick for that.
    armed_for: Tick,
    /// `None` once it has been given back.
    callback: Option<F>,
}

impl<S: Schedule, F: FnMut() + Send + 'static> Run for Recurring<S, F> {
    fn kind(&self) -> Kind {
        Kind::Recurring
    }

    fn run(&mut self) {
        if let Some(callback) = &mut self.callback {
            callback();
        }
    }

    fn next(&mut self, due: Tick, time: &Time, now: Instant) -> Option<Nanos> {
        if due != self.armed_for {
            // It was rescheduled, and goes on from there.
            self.previous = time.instant(time.start_of(due))?;
        }
        let next = self.schedule.as_mut()?.next_after(self.previous, now)?;
        let mut at = time.since_start(next);
        if next <= self.previous {
            // A schedule that stays where it is would have no time pass: it is due after now.
            at = at.max(time.since_start(now).saturating_add(1));
        }
        (self.previous, self.armed_for) = (next, time.tick_for(at));
        Some(at)
    }

    fn give_back(&mut self, place: &mut dyn Any) {
        put(self.callback.take(), place);
    }
}

impl<S, F> Drop for Recurring<S, F> {
    /// Both are the user's, and either drop may panic: then the other is dropped all the same, and one panic goes on.
    fn drop(&mut self) {
        let mut panics = FirstPanic::new();
        panics.catch_drop(self.schedule.take());
        panics.catch_drop(self.callback.take());
        panics.resume();
    }
}

fn put<F: 'static>(callback: Option<F>, place: &mut dyn Any) {
    let place = place.downcast_mut::<Option<F>>().expect("a task is given back as what it was made of");
    *place = callback;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_callback_comes_back_as_it_was() {
        let mut task = Task::once(move_five());
        assert_eq!(five(task.take_callback()), 5);

        fn move_five() -> fn() {
            || ()
        }
        fn five(callback: fn()) -> u32 {
            callback();
            5
        }
    }
}

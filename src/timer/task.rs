//! What a timer's node holds: a callback that runs once, one that recurs, or a waker.
//!
//! Small ones lie in the node itself (see [`inline`](super::inline)), which is one cache line with them. Larger ones are
//! boxed, in memory that is asked for before anything else: it may be refused. A callback of three words is small, and so is one of four of which one is never zero, as a reference is.

use std::any::Any;
use std::mem::MaybeUninit;
use std::task::Waker;
use std::time::Instant;

use super::inline::{Inline, fits};
use super::schedule::Schedule;
use super::time::{Nanos, Time};
use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::fallible;
use crate::shard::{IntoPayload, Key};
use crate::unwind::FirstPanic;
use crate::{Scheduler, Tick};

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
pub(crate) trait Run: Send {
    fn kind(&self) -> Kind;

    fn run(&mut self);

    /// When it is due next, after the run at tick `due`, it being `now`.
    fn next(&mut self, _due: Tick, _time: &Time, _now: Instant) -> Option<Nanos> {
        None
    }

    /// Puts what it has of the user's into `place`, which is an `Option` of its own type.
    fn give_back(&mut self, place: &mut dyn Any);
}

/// Schedules a callback; it comes back if it is refused.
#[inline]
pub(super) fn schedule_in_place<R: Run + 'static>(
    scheduler: &Scheduler<Task>,
    tick: Tick,
    content: R,
) -> Result<Key, ScheduleError<R>> {
    let Some(place) = ReservedBox::new() else {
        return Err(ScheduleError::new(ScheduleErrorKind::OutOfMemory { bytes: size_of::<R>() }, content));
    };
    scheduler
        .schedule_in_place(tick, InPlace { content, place })
        .map_err(|refused| refused.map(|scheduled| scheduled.content))
}

/// Where a content is to lie that does not fit into a task; nothing for one that does.
pub(super) struct ReservedBox<R>(Option<Box<MaybeUninit<R>>>);

impl<R> ReservedBox<R> {
    /// None if there is no memory.
    #[inline(always)]
    pub(super) fn new() -> Option<Self> {
        if fits::<R>() {
            return Some(Self(None));
        }
        fallible::boxed(MaybeUninit::uninit()).map(|place| Self(Some(place)))
    }
}

/// A callback on its way to be a task.
struct InPlace<R> {
    content: R,
    place: ReservedBox<R>,
}

impl<R: Run + 'static> IntoPayload<Task> for InPlace<R> {
    #[inline(always)]
    fn into_payload(self) -> Task {
        Task::callback(self.content, self.place)
    }

    fn from_payload(task: Task) -> Self {
        // Where it lay goes with the task, and the content goes back to the caller.
        Self { content: task.into_content(), place: ReservedBox(None) }
    }
}

impl Task {
    pub(crate) fn wake(waker: Waker) -> Self {
        Self(Content::Wake(Some(waker)))
    }

    #[inline(always)]
    pub(super) fn callback<R: Run + 'static>(content: R, place: ReservedBox<R>) -> Self {
        Self(Content::Callback(match place.0 {
            Some(place) if !fits::<R>() => Inline::hold(Box::write(place, content)),
            _ => Inline::hold(content),
        }))
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

    /// The content that the task has been made of.
    ///
    /// # Panics
    ///
    /// If it was made of another type's.
    fn into_content<R: 'static>(mut self) -> R {
        let mut place = None::<R>;
        if let Content::Callback(callback) = &mut self.0 {
            callback.get_mut().give_back(&mut place);
        }
        place.expect("a task that was refused is what it was made of")
    }
}

/// A waker on its way to be a task that wakes it.
pub(crate) struct ToWake(pub(crate) Waker);

impl IntoPayload<Task> for ToWake {
    #[inline(always)]
    fn into_payload(self) -> Task {
        Task::wake(self.0)
    }

    fn from_payload(mut task: Task) -> Self {
        Self(task.take_waker().expect("a task that was refused has not run"))
    }
}

/// A callback that runs once; `None` once it has.
pub(super) struct Once<F>(Option<F>);

impl<F> Once<F> {
    #[inline(always)]
    pub(super) fn new(callback: F) -> Self {
        Self(Some(callback))
    }

    /// The callback of one that has not run.
    pub(super) fn into_callback(self) -> F {
        self.0.expect("a callback that was refused has not run")
    }
}

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
        put(Self(self.0.take()), place);
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

pub(super) struct Recurring<S, F> {
    /// `None` once it has been given back, and while it is dropped.
    schedule: Option<S>,
    /// When it was due last.
    previous: Instant,
    /// The tick for that.
    armed_for: Tick,
    /// `None` once it has been given back.
    callback: Option<F>,
}

impl<S, F> Recurring<S, F> {
    /// Recurs by that schedule, whose first occurrence is at `first`; `armed_for` is the tick for that.
    pub(super) fn new(schedule: S, first: Instant, armed_for: Tick, callback: F) -> Self {
        Self { schedule: Some(schedule), previous: first, armed_for, callback: Some(callback) }
    }

    /// The callback of one that was refused.
    pub(super) fn take_callback(&mut self) -> F {
        self.callback.take().expect("what was refused has its callback")
    }
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
        let (schedule, callback) = (self.schedule.take(), self.callback.take());
        let (previous, armed_for) = (self.previous, self.armed_for);
        put(Self { schedule, previous, armed_for, callback }, place);
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

fn put<R: 'static>(content: R, place: &mut dyn Any) {
    let place = place.downcast_mut::<Option<R>>().expect("a task is given back as what it was made of");
    *place = Some(content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_callback_comes_back_as_it_was() {
        let task = Task::callback(Once::new(move_five()), ReservedBox::new().expect("there is memory"));
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

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

use std::any::Any;
use std::task::Waker;

use super::body::{RunContext, TaskBody, TaskKind};
use super::inline::Inline;
use crate::shard::{Due, RearmTicket};
use crate::timer::guard::PanicGuard;
use crate::timer::key::TimerKey;
use crate::timer::time::Nanos;

/// The payload of a node in a [`Timer`](crate::Timer)'s shard.
pub(crate) enum Task {
    /// `None` once it has been woken. A variant of its own: a cancel takes the waker without a
    /// virtual call.
    Wake(Option<Waker>),
    Callback(Inline),
}

/// A recurring task that has run, on its way back to its shard.
pub(crate) struct RanTask {
    pub(crate) ticket: RearmTicket,
    /// When the task is due next, and the task; `None` if it has ended.
    pub(crate) next: Option<(Nanos, Task)>,
}

impl Due<Task> {
    pub(in crate::timer) fn timer_key(&self) -> TimerKey {
        TimerKey::new(self.key, self.ticket.is_some())
    }
}

impl Task {
    #[inline]
    pub(crate) fn kind(&self) -> TaskKind {
        match self {
            Self::Wake(_) => TaskKind::Wake,
            Self::Callback(callback) => callback.get().kind(),
        }
    }

    #[inline]
    pub(crate) fn recurs(&self) -> bool {
        self.kind() == TaskKind::Recurring
    }

    /// Runs the task once: calls the callback or wakes the waker, which needs no context.
    #[inline]
    pub(crate) fn run<'s>(&mut self, context: impl FnOnce() -> RunContext<'s>) {
        match self {
            Self::Wake(waker) => waker.take().into_iter().for_each(Waker::wake),
            Self::Callback(callback) => callback.get_mut().run(context()),
        }
    }

    /// The callback, if it is one.
    pub(crate) fn callback_mut(&mut self) -> Option<&mut dyn TaskBody> {
        if let Self::Callback(callback) = self { Some(callback.get_mut()) } else { None }
    }

    /// What the callback was made of, if it is one of that type.
    pub(in crate::timer) fn content<R: TaskBody>(&self) -> Option<&R> {
        let Self::Callback(callback) = self else { return None };
        (callback.get() as &dyn Any).downcast_ref()
    }

    /// Takes out the waker, if the task was made of a waker and has not run.
    #[inline(always)]
    pub(crate) fn take_waker(&mut self) -> Option<Waker> {
        if let Self::Wake(waker) = self { waker.take() } else { None }
    }

    /// Drops the task under the guard; a recurring one in two pieces.
    pub(crate) fn discard(mut self, guard: &PanicGuard, key: Option<TimerKey>) {
        guard.run(key, || self.callback_mut().map(TaskBody::drop_schedule));
        guard.run(key, || drop(self));
    }

    /// The content that the task was made of.
    ///
    /// # Panics
    ///
    /// If the content has another type.
    pub(crate) fn into_content<R: TaskBody>(self) -> R {
        let Self::Callback(callback) = self else { panic!("a waker is not given back") };
        callback.into_content()
    }
}

/// A callback that runs once; `None` once it has run.
impl<F: FnOnce() + Send + 'static> TaskBody for Option<F> {
    fn kind(&self) -> TaskKind {
        TaskKind::Once
    }

    fn run(&mut self, _occasion: RunContext<'_>) {
        if let Some(callback) = self.take() {
            callback();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_callback_comes_back_as_it_was() {
        let task = Task::Callback(Inline::hold(Some(move_five())));
        assert_eq!(five(task.into_content::<Option<fn()>>().unwrap()), 5);

        fn move_five() -> fn() {
            || ()
        }
        fn five(callback: fn()) -> u32 {
            callback();
            5
        }
    }
}

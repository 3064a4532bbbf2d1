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
use std::sync::Arc;
use std::task::Waker;

use super::group::{Member, Members, Membership};
use super::inline::{Inline, Kind, Occasion, Run};
use super::shard_handle::ShardHandle;
use crate::error::ScheduleError;
use crate::shard::Key;
use crate::tick::Tick;

/// The payload of a node in a [`Timer`](crate::Timer)'s shard.
pub(crate) enum Task {
    /// `None` once it has been woken. A variant of its own: a cancel takes the waker without a
    /// virtual call.
    Wake(Option<Waker>),
    Callback(Inline),
}

impl ShardHandle {
    /// Schedules a content that [fits](super::inline::fits) into a task, as a box does; as a member
    /// if there is a group. If it is refused, the error returns it.
    #[inline]
    #[cfg_attr(feature = "introspect", track_caller)]
    pub(crate) fn schedule<R: Run>(
        &self,
        group: Option<&Arc<Members>>,
        tick: Tick,
        content: R,
    ) -> Result<Key, ScheduleError<R>> {
        let make = || Task::Callback(Inline::hold(content));
        let scheduled = match group {
            None => self.scheduler.schedule_by(self.here(), tick, make),
            Some(members) => members.schedule(self, self.here(), tick, make()),
        };
        scheduled.map_err(|refused| refused.map(Task::into_content))
    }
}

impl Task {
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Wake(_) => Kind::Wake,
            Self::Callback(callback) => callback.get().kind(),
        }
    }

    #[inline]
    pub(crate) fn recurs(&self) -> bool {
        self.kind() == Kind::Recurring
    }

    /// Runs the task once: calls the callback or wakes the waker.
    #[inline]
    pub(crate) fn run(&mut self, occasion: Occasion<'_>) {
        match self {
            Self::Wake(waker) => waker.take().into_iter().for_each(Waker::wake),
            Self::Callback(callback) => callback.get_mut().run(occasion),
        }
    }

    /// The callback, if it is one.
    pub(crate) fn callback_mut(&mut self) -> Option<&mut dyn Run> {
        if let Self::Callback(callback) = self { Some(callback.get_mut()) } else { None }
    }

    /// The membership of a group, of a callback.
    pub(super) fn membership(&self) -> Option<&Membership> {
        let Self::Callback(callback) = self else { return None };
        (callback.get() as &dyn Any).downcast_ref().map(|member: &Member| &member.membership)
    }

    /// Takes out the waker, if the task was made of a waker and has not run.
    #[inline(always)]
    pub(crate) fn take_waker(&mut self) -> Option<Waker> {
        if let Self::Wake(waker) = self { waker.take() } else { None }
    }

    /// The content that the task was made of.
    ///
    /// # Panics
    ///
    /// If the content has another type.
    pub(crate) fn into_content<R: Run>(self) -> R {
        let Self::Callback(callback) = self else { panic!("a waker is not given back") };
        callback.into_content()
    }
}

/// A callback that runs once; `None` once it has run.
impl<F: FnOnce() + Send + 'static> Run for Option<F> {
    fn kind(&self) -> Kind {
        Kind::Once
    }

    fn run(&mut self, _occasion: Occasion<'_>) {
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

//! A task's content with its type erased: in the task itself if it fits, boxed if it does not.
//!
//! This file holds all unsafe code of `Timer`. Invariant: `room` holds a live value of the type
//! that `view` was made for, from [`Inline::hold`] until the drop. The owner of the `Inline` owns
//! the value, and it alone reads and writes it.

use std::any::Any;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};

use super::body::TaskBody;

/// Four words, aligned as words.
type Room = MaybeUninit<[usize; 4]>;

pub(crate) struct Inline {
    room: Room,
    /// Adds the value's type: turns a pointer to the room into a pointer to the value.
    view: fn(NonNull<Room>) -> NonNull<dyn TaskBody>,
    content: PhantomData<dyn TaskBody>,
}

impl Inline {
    /// Holds a content that [fits]; a box fits.
    #[inline(always)]
    pub(in crate::timer) fn hold<R: TaskBody>(content: R) -> Self {
        assert!(fits::<R>(), "a box fits, and what does not fit is boxed");
        let mut room = Room::uninit();
        // SAFETY: the room is large enough for an `R`, and aligned for it.
        unsafe { room.as_mut_ptr().cast::<R>().write(content) };
        Self { room, view: view::<R>, content: PhantomData }
    }

    /// The content that it was made of.
    ///
    /// # Panics
    ///
    /// If the content has another type.
    pub(in crate::timer) fn into_content<R: TaskBody>(self) -> R {
        assert!((self.get() as &dyn Any).is::<R>(), "a task is given back as what it was made of");
        let this = ManuallyDrop::new(self);
        // SAFETY: by the invariant the room holds a live value, which is an `R`. It is not used
        // again: `this` is not dropped.
        unsafe { this.room.as_ptr().cast::<R>().read() }
    }

    #[inline]
    pub(in crate::timer) fn get(&self) -> &dyn TaskBody {
        // SAFETY: by the invariant, `view` points to a live value in the room, which is borrowed.
        unsafe { (self.view)(NonNull::from(&self.room)).as_ref() }
    }

    #[inline]
    pub(in crate::timer) fn get_mut(&mut self) -> &mut dyn TaskBody {
        // SAFETY: as above, and the room is borrowed exclusively.
        unsafe { (self.view)(NonNull::from(&mut self.room)).as_mut() }
    }
}

impl Drop for Inline {
    fn drop(&mut self) {
        let content = (self.view)(NonNull::from(&mut self.room));
        // SAFETY: by the invariant it is a live value, and nothing uses it after the drop.
        unsafe { ptr::drop_in_place(content.as_ptr()) };
    }
}

pub(in crate::timer) const fn fits<R>() -> bool {
    size_of::<R>() <= size_of::<Room>() && align_of::<R>() <= align_of::<Room>()
}

/// The value in a room that holds an `R`.
fn view<R: TaskBody>(room: NonNull<Room>) -> NonNull<dyn TaskBody> {
    room.cast::<R>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::body::RunContext;
    use super::super::payload::Task;
    use super::*;
    use crate::timer::guard::PanicGuard;
    use crate::timer::key::TimerKey;
    use crate::timer::time::Time;
    use crate::{Config, shard};

    fn key() -> TimerKey {
        let (scheduler, _advancer) = shard(&Config::default());
        TimerKey::once(scheduler.schedule(1, ()).expect("it is open"))
    }

    #[test]
    fn a_node_with_a_task_is_a_cache_line() {
        // On 64-bit systems; on 32-bit systems a task has words of half the size.
        assert_eq!(size_of::<Inline>(), 5 * size_of::<usize>());
        assert_eq!(size_of::<Task>(), 5 * size_of::<usize>());
    }

    #[test]
    fn what_is_too_large_or_aligned_too_wide_does_not_fit() {
        #[repr(align(16))]
        struct Wide;
        assert!(fits::<[usize; 4]>() && fits::<Box<[u8; 999]>>() && fits::<()>());
        assert!(!fits::<[usize; 5]>() && !fits::<Wide>());
    }

    /// Runs and drops, or only drops, a closure that holds `held` and `WORDS` more words.
    fn try_out<const WORDS: usize>() {
        for runs in [true, false] {
            let (held, words) = (Arc::new(()), [7_usize; WORDS]);
            let inner = Arc::clone(&held);
            let callback = move || assert_eq!((Arc::strong_count(&inner), words), (2, [7; WORDS]));
            let mut task = if WORDS > 3 {
                Task::Callback(Inline::hold(Some(Box::new(callback))))
            } else {
                Task::Callback(Inline::hold(Some(callback)))
            };
            assert_eq!(Arc::strong_count(&held), 2);
            if runs {
                let time = Time::start(None, std::time::Duration::from_millis(1));
                let guard = &PanicGuard::new(None);
                task.run(|| RunContext { key: key(), deadline: 0, time: &time, guard, reached: 0 });
                assert_eq!(Arc::strong_count(&held), 1);
            }
            let moved = Box::new(task);
            drop(moved);
            assert_eq!(Arc::strong_count(&held), 1);
        }
    }

    #[test]
    fn contents_of_all_sizes_run_and_drop_once() {
        try_out::<0>();
        try_out::<2>();
        try_out::<3>();
        try_out::<4>();
        try_out::<100>();
    }
}

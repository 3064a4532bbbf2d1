//! A user's waker in a form that an [`AtomicWaker`](crate::sync::AtomicWaker) can hold.
//!
//! The registration of a waker clones it, and drops the former one. Both are user code, which may
//! panic. The `AtomicWaker` is locked meanwhile, and a panic would leave it so: it would ignore all
//! later wakers, and wake none. A `Shield` is cloned by its count, and
//! each panic in the wake or the drop of the waker ends in the timer.

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use super::panics::PanicGuard;
use crate::unwind::DropQuietly;

pub(crate) struct Shield {
    waker: DropQuietly<Waker>,
    /// Counts the panics.
    guard: Arc<PanicGuard>,
}

impl Shield {
    /// Returns `waker` in a shield: in the `last` one, if that wakes the same task and is in use.
    ///
    /// A panic in the clone of the waker reaches the caller.
    pub(crate) fn around(waker: &Waker, guard: &Arc<PanicGuard>, last: &mut Weak<Self>) -> Waker {
        if let Some(same) = last.upgrade().filter(|last| last.waker.will_wake(waker)) {
            return Waker::from(same);
        }
        let shield = Arc::new(Self { waker: DropQuietly::new(waker.clone()), guard: Arc::clone(guard) });
        *last = Arc::downgrade(&shield);
        Waker::from(shield)
    }
}

impl Wake for Shield {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.guard.run(None, || self.waker.wake_by_ref());
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        self.guard.run(None, || self.waker.drop_now());
    }
}

//! Whether the thread's runtime polls a task that wakes by the runtime's own means.
//!
//! Wakers of monoio work on its own thread, and there only while it runs. A wake from anywhere else
//! takes another way.

use std::cell::Cell;

thread_local! {
    static IS_ON_LOOP: Cell<bool> = const { Cell::new(false) };
}

/// Whether a poll of this thread's runtime has come here.
pub(crate) fn is_on_loop() -> bool {
    IS_ON_LOOP.get()
}

/// Polls what the runtime of this thread has polled.
#[inline]
pub(crate) fn on_loop<R>(poll: impl FnOnce() -> R) -> R {
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            IS_ON_LOOP.set(self.0);
        }
    }

    let _before = Before(IS_ON_LOOP.replace(true));
    poll()
}

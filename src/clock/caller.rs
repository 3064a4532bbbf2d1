//! Whether a call comes from a timer's user code.
//!
//! A shutdown waits for the callbacks that a timer runs, and a manual clock's `advance` waits for
//! the thread that drives the clock. User code may make both calls. One rule keeps threads from
//! waiting for each other in a circle: a thread that runs a timer's user code does not wait.

use std::cell::Cell;

use crate::sync::thread_local;

thread_local! {
    static RUNS_USER_CODE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread runs a timer's user code. Nothing here has a destructor, so a thread
/// can call this at any time in its life.
pub(crate) fn is_user_code() -> bool {
    RUNS_USER_CODE.get()
}

/// Marks all that the calling thread calls as a timer's user code, until it is dropped.
#[must_use = "the mark is gone when it is dropped"]
pub(crate) struct UserCode {
    before: bool,
}

impl UserCode {
    pub(crate) fn begin() -> Self {
        Self { before: RUNS_USER_CODE.replace(true) }
    }
}

impl Drop for UserCode {
    fn drop(&mut self) {
        RUNS_USER_CODE.set(self.before);
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    #[test]
    fn user_code_may_run_user_code() {
        let outer = UserCode::begin();
        drop(UserCode::begin());
        assert!(is_user_code());
        drop(outer);
        assert!(!is_user_code());
    }
}

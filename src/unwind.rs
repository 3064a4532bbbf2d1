//! Catching panics where they must not spread: in wakers and in drops. Each drop runs by itself,
//! because a second panic while the first unwinds aborts the process.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;
use std::thread;

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// The drop of a payload may panic with a further payload. [`drop_quietly`] drops this many further
/// payloads and leaks the next one.
const PATIENCE: u32 = 4;

/// The data behind a lock is valid even after a panic: no user code runs under the lock.
pub(crate) fn unpoisoned<G>(result: Result<G, PoisonError<G>>) -> G {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// Runs user code and catches a panic in it. True if there was no panic.
///
/// The process's panic hook has printed the message by then.
pub(crate) fn quietly(code: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(code)).map_err(drop_quietly).is_ok()
}

/// Drops the payload of a panic, whose drop may panic in turn.
pub(crate) fn drop_quietly(payload: Payload) {
    let mut dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    for _ in 0..PATIENCE {
        let Err(next) = dropped else { return };
        dropped = catch_unwind(AssertUnwindSafe(|| drop(next)));
    }
    std::mem::forget(dropped);
}

/// A user's value whose drop may panic. The panic ends here, so the owner's other fields are
/// dropped, and a drop during an unwind does not end the process.
#[derive(Clone)]
pub(crate) struct DropQuietly<T>(Option<T>);

impl<T> DropQuietly<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Drops the value, in its place. A panic goes on.
    pub(crate) fn drop_now(&mut self) {
        self.0 = None;
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("the value goes with the drop")
    }
}

impl<T> Deref for DropQuietly<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("the value goes with the drop")
    }
}

impl<T> DerefMut for DropQuietly<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("the value goes with the drop")
    }
}

impl<T> fmt::Debug for DropQuietly<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl<T> Drop for DropQuietly<T> {
    fn drop(&mut self) {
        quietly(|| self.drop_now());
    }
}

/// The first panic of several drops. The payloads of further panics are dropped.
#[derive(Default)]
pub(crate) struct FirstPanic(Option<DropQuietly<Payload>>);

impl FirstPanic {
    /// Whether the next panic is the one that goes on.
    pub(crate) fn takes_next(&self) -> bool {
        self.0.is_none() && !thread::panicking()
    }

    /// Drops a value; a panic is caught until [`resume`](Self::resume).
    pub(crate) fn catch_drop<D>(&mut self, value: D) {
        self.catch(|| drop(value));
    }

    /// Runs user code likewise; `None` if it panics.
    pub(crate) fn catch<R>(&mut self, code: impl FnOnce() -> R) -> Option<R> {
        let payload = match catch_unwind(AssertUnwindSafe(code)) {
            Ok(result) => return Some(result),
            Err(payload) => payload,
        };
        if self.0.is_none() {
            self.0 = Some(DropQuietly::new(payload));
        } else {
            drop_quietly(payload);
        }
        None
    }

    /// Resumes the first panic, unless the thread is unwinding already.
    pub(crate) fn resume(self) {
        if let Some(payload) = self.0.filter(|_| !thread::panicking()) {
            resume_unwind(payload.into_inner());
        }
    }
}

/// Drops each of the values, even if some panic; the first panic goes on after that.
pub(crate) fn drop_each<D>(values: impl Iterator<Item = D>) {
    let mut panics = FirstPanic::default();
    values.for_each(|value| panics.catch_drop(value));
    panics.resume();
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    struct Bomb(&'static str);

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::panic_any(self.0);
        }
    }

    #[test]
    fn the_first_of_several_panics_goes_on() {
        let mut panics = FirstPanic::default();
        panics.catch_drop(());
        panics.catch_drop(Bomb("first"));
        panics.catch_drop(Bomb("second"));
        let payload = catch_unwind(AssertUnwindSafe(|| panics.resume())).expect_err("there was one");
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"first"));
        FirstPanic::default().resume();
    }
}

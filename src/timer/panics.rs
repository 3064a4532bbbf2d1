//! Runs user code under a guard: a panic in it is caught, counted and reported, and goes no
//! further.
//!
//! This is the one place where a `Timer`'s panics end. Two user values are dropped under two
//! guards: a second panic while the first unwinds would end the process.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::counts::Counts;
use super::key::TimerKey;
use crate::unwind::{DropQuietly, Payload, drop_quietly};

/// Describes a panic to the hook given to
/// [`TimerBuilder::on_panic`](crate::TimerBuilder::on_panic).
pub struct CallbackPanic<'a> {
    key: Option<TimerKey>,
    payload: &'a (dyn Any + Send),
}

impl CallbackPanic<'_> {
    /// Returns the timer whose callback, schedule or call of
    /// [`Executor::execute`](crate::Executor::execute) panicked.
    ///
    /// `None` for a panic in a waker or its drop, in the timer's clock, in the drop of an executor,
    /// or in the drop of a callback, schedule or value. One drop has the key all the same: the drop
    /// of a recurring timer's callback and schedule after the schedule has ended the timer.
    #[must_use]
    pub fn key(&self) -> Option<TimerKey> {
        self.key
    }

    /// Returns the panic's payload.
    #[must_use]
    pub fn payload(&self) -> &(dyn Any + Send) {
        self.payload
    }

    /// Returns the message, if the payload is a string, as with `panic!`.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        let text = self.payload.downcast_ref::<&'static str>().copied();
        text.or_else(|| self.payload.downcast_ref::<String>().map(String::as_str))
    }
}

impl fmt::Debug for CallbackPanic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackPanic").field("key", &self.key).field("message", &self.message()).finish()
    }
}

/// A user's function that is called for each panic.
pub(crate) type Hook = Arc<dyn Fn(&CallbackPanic<'_>) + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct PanicGuard {
    pub(crate) hook: Option<DropQuietly<Hook>>,
}

impl PanicGuard {
    /// Runs user code of the timer `key`; `None` if it panics.
    #[inline]
    pub(crate) fn run<R>(
        &self,
        counts: &Counts,
        key: Option<TimerKey>,
        code: impl FnOnce() -> R,
    ) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(code)) {
            Ok(result) => Some(result),
            Err(payload) => self.end(counts, key, payload),
        }
    }

    /// Counts and reports a panic.
    ///
    /// The hook may panic too, and so may the drop of either panic's payload. Each is caught on its
    /// own: a drop that panics while another panic unwinds would end the process.
    #[cold]
    pub(crate) fn end<R>(&self, counts: &Counts, key: Option<TimerKey>, payload: Payload) -> Option<R> {
        counts.count_panic();
        if let Some(hook) = &self.hook {
            let told = catch_unwind(AssertUnwindSafe(|| hook(&CallbackPanic { key, payload: &*payload })));
            if let Err(its_own) = told {
                drop_quietly(its_own);
            }
        }
        drop_quietly(payload);
        None
    }
}

//! Runs user code so that nothing it does gets any further: a panic is caught, counted and reported.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::key::TimerKey;
use super::stats::Counts;
use crate::unwind::{Payload, drop_quietly};

/// What a callback's panic is reported as, to the hook given to
/// [`TimerBuilder::on_panic`](crate::TimerBuilder::on_panic).
pub struct CallbackPanic<'a> {
    key: Option<TimerKey>,
    payload: &'a (dyn Any + Send),
}

impl CallbackPanic<'_> {
    /// The timer whose callback panicked; `None` if it was a future's waker, a callback that was dropped, an executor that
    /// was dropped, or the timer's clock.
    #[must_use]
    pub fn key(&self) -> Option<TimerKey> {
        self.key
    }

    /// What the callback panicked with.
    #[must_use]
    pub fn payload(&self) -> &(dyn Any + Send) {
        self.payload
    }

    /// The message, if it panicked with one, as `panic!` does.
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

/// Hears of panics.
pub(crate) type Hook = Arc<dyn Fn(&CallbackPanic<'_>) + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct PanicGuard {
    pub(crate) hook: Option<Hook>,
}

impl PanicGuard {
    /// Runs user code of that timer.
    #[inline]
    pub(crate) fn run<R>(
        &self,
        counts: &Counts,
        key: Option<TimerKey>,
        code: impl FnOnce() -> R,
    ) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(code)) {
            Ok(result) => Some(result),
            Err(payload) => {
                counts.count_panic();
                self.report(key, payload);
                None
            }
        }
    }

    /// The hook may panic as well, and what it or the callback panicked with may do so when it is dropped: each is
    /// caught by itself, as a drop that panics while another panic unwinds would end the process.
    #[cold]
    fn report(&self, key: Option<TimerKey>, payload: Payload) {
        if let Some(hook) = &self.hook {
            let told = catch_unwind(AssertUnwindSafe(|| hook(&CallbackPanic { key, payload: &*payload })));
            if let Err(its_own) = told {
                drop_quietly(its_own);
            }
        }
        drop_quietly(payload);
    }
}

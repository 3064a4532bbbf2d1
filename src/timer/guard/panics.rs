//! Runs user code and survives it.
//!
//! All user code of a timer runs under its shard's [`PanicGuard`]: a panic in it is caught, counted and
//! reported, and goes no further. Two user values are dropped under two guards: a second panic
//! while the first unwinds would end the process.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;
use crate::timer::key::TimerKey;
use crate::unwind::{DropQuietly, Payload, drop_quietly, quietly};

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
    /// `None` for a panic in a waker or its drop, in the `Timer`'s clock, in the drop of an
    /// executor, or in the drop of a callback, schedule or value. One drop has the key all the
    /// same: the drop of a recurring timer's callback and schedule after the schedule has ended the
    /// timer.
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
pub(crate) type PanicHook = DropQuietly<Arc<dyn Fn(&CallbackPanic<'_>) + Send + Sync>>;

/// Catches the panics of one shard's user code.
pub(crate) struct PanicGuard {
    hook: Option<PanicHook>,
    /// How many panics there were. Written by any thread that runs or drops user code.
    panics: AtomicU64,
}

// User code runs where no structure is half changed: a panic in it leaves none behind.
impl UnwindSafe for PanicGuard {}
impl RefUnwindSafe for PanicGuard {}

impl PanicGuard {
    pub(crate) fn new(hook: Option<PanicHook>) -> Arc<Self> {
        Arc::new(Self { hook, panics: AtomicU64::new(0) })
    }

    /// How many panics it has caught.
    pub(crate) fn panics(&self) -> u64 {
        // Ordering: Relaxed, a count.
        self.panics.load(Ordering::Relaxed)
    }

    /// Runs code for the caller that drops what it takes out of a timer. A panic is the caller's,
    /// unless another one unwinds the thread already: a second one would end the process, so it is
    /// counted and reported, and the result is `None`.
    #[inline]
    pub(crate) fn run_for_caller<R>(&self, code: impl FnOnce() -> R) -> Option<R> {
        if thread::panicking() { self.run(None, code) } else { Some(code()) }
    }

    /// Runs the caller's code with `value`, which is the caller's too. If the code panics, `value`
    /// is dropped on its own first, and then the panic continues.
    pub(crate) fn run_beside<V, R>(&self, mut value: V, code: impl FnOnce(&mut V) -> R) -> (V, R) {
        match catch_unwind(AssertUnwindSafe(|| code(&mut value))) {
            Ok(result) => (value, result),
            Err(panic) => {
                self.discard(value);
                resume_unwind(panic)
            }
        }
    }

    /// Drops a user's value under the guard.
    pub(crate) fn discard<D>(&self, what: D) {
        self.run(None, || drop(what));
    }

    /// Runs user code of the timer `key`, or of none; `None` if it panics.
    #[inline]
    pub(crate) fn run<R>(&self, key: Option<TimerKey>, code: impl FnOnce() -> R) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(code)) {
            Ok(result) => Some(result),
            Err(payload) => self.end_panic(key, payload),
        }
    }

    /// Counts and reports a panic.
    ///
    /// The hook may panic too, and so may the drop of either panic's payload. Each is caught on its
    /// own: a drop that panics while another panic unwinds would end the process.
    #[cold]
    fn end_panic<R>(&self, key: Option<TimerKey>, payload: Payload) -> Option<R> {
        // Ordering: Relaxed, a count.
        self.panics.fetch_add(1, Ordering::Relaxed);
        if let Some(hook) = &self.hook {
            quietly(|| hook(&CallbackPanic { key, payload: &*payload }));
        }
        drop_quietly(payload);
        None
    }
}

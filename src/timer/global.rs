//! The global timer: made on first use, shared by the whole process, never shut down.
//!
//! Its threads run until the process ends. Handles of it are ordinary handles; `shutdown` knows it
//! by its address, so no timer carries a mark. The scope of a manual clock has a global timer of
//! its own, for the code within: see [`scope`](super::scope).

use std::sync::{Arc, Mutex, OnceLock};

use super::{Inherited, Timer};
use crate::clock::unpoisoned;
use crate::error::BuildError;

static GLOBAL: OnceLock<Timer> = OnceLock::new();

/// The scopes' timers to which there is a reference for ever. So they are no leak to a tool.
static KEPT: Mutex<Vec<&Timer>> = Mutex::new(Vec::new());

impl Timer {
    /// Returns the global timer: one for the whole process, made on first use.
    ///
    /// It has the defaults of [`builder`](Self::builder), so it has no bound on pending timers. It
    /// is never shut down: [`shutdown`](Self::shutdown) returns nothing and changes nothing, and
    /// its threads run until the process ends. [`sleep`](crate::sleep()) and the other functions of
    /// the crate use it.
    ///
    /// Within a [scope](crate::ManualClock::scope) of a manual clock it is the timer of that scope.
    /// That one is shut down when the scope ends.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    ///
    /// let (sender, receiver) = mpsc::channel();
    /// Timer::global().schedule_after(Duration::from_millis(5), move || sender.send(7).unwrap())?;
    /// assert_eq!(receiver.recv()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the timer cannot be made: the system gives no memory, or starts no thread. The next call
    /// tries again. [`try_global`](Self::try_global) returns the error instead: if a program calls
    /// it at its start with success, this function does not panic later.
    ///
    /// # Performance
    ///
    /// Two loads, except for the first call.
    #[inline]
    #[must_use]
    pub fn global() -> &'static Self {
        Self::try_global().unwrap_or_else(|error| panic!("the global timer cannot be made: {error}"))
    }

    /// Returns the [global](Self::global) timer, or the reason why it cannot be made. After an
    /// error, the next call tries again.
    ///
    /// # Errors
    ///
    /// [`BuildError`], if the system gives no memory or starts no thread.
    #[inline]
    pub fn try_global() -> Result<&'static Self, BuildError> {
        let Some(scope) = Inherited::current().scope else { return Self::of_process() };
        Ok(scope.leaked.get_or_init(|| {
            let timer = &*Box::leak(Box::new(scope.timer.clone()));
            unpoisoned(KEPT.lock()).push(timer);
            timer
        }))
    }

    /// The global timer outside of all scopes.
    pub(crate) fn of_process() -> Result<&'static Self, BuildError> {
        GLOBAL.get().map_or_else(make, Ok)
    }

    /// Whether this is a handle of the global timer, or of that of the present scope.
    pub(super) fn is_global(&self) -> bool {
        let is_self = |global: &Self| Arc::ptr_eq(&self.inner, &global.inner);
        GLOBAL.get().is_some_and(is_self)
            || Inherited::current().scope.is_some_and(|scope| is_self(&scope.timer))
    }
}

/// Makes the timer, unless another thread has. The lock makes threads wait for the one that makes
/// it; no user code runs under it, because the defaults have none.
#[cold]
fn make() -> Result<&'static Timer, BuildError> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = unpoisoned(MAKING.lock());
    if let Some(global) = GLOBAL.get() {
        return Ok(global);
    }
    let timer = Timer::new()?;
    Ok(GLOBAL.get_or_init(|| timer))
}

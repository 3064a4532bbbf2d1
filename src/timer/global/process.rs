//! The global `Timer`: made on first use, shared by the whole process, never shut down.
//!
//! Its threads run until the process ends. Handles of it are ordinary handles; `shutdown` knows it
//! by its address, so no timer carries a mark. The scope of a manual clock has a global timer of
//! its own, for the code within: see [`scope`](super::scope).

use std::sync::{Arc, Mutex, OnceLock};

use super::scope::Inherited;
use crate::clock::unpoisoned;
use crate::error::BuildError;
use crate::timer::end::Unfired;
use crate::timer::handle::Timer;

static GLOBAL: OnceLock<Timer> = OnceLock::new();

/// The scopes' timers to which there is a reference for ever. So they are no leak to a tool.
static KEPT: Mutex<Vec<&Timer>> = Mutex::new(Vec::new());

impl Timer {
    /// Returns the global `Timer`: one for the whole process, made on first use.
    ///
    /// It has the defaults of [`builder`](Self::builder), so it has no bound on pending timers. It
    /// is never shut down: [`shutdown`](Self::shutdown) returns nothing and changes nothing, and
    /// its threads run until the process ends. [`sleep`](crate::sleep()) and the other functions of
    /// the crate use it.
    ///
    /// Within a [scope](crate::ManualClock::scope) of a manual clock it is the `Timer` of that
    /// scope. That one is shut down when the scope ends.
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
    /// If the `Timer` cannot be made: the system gives no memory, or starts no thread. The next
    /// call tries again. [`try_global`](Self::try_global) returns the error instead: if a program
    /// calls it at its start with success, this function does not panic later.
    ///
    /// # Performance
    ///
    /// Two loads, except for the first call.
    #[inline]
    #[must_use]
    pub fn global() -> &'static Self {
        Self::try_global().unwrap_or_else(|error| panic!("the global timer cannot be made: {error}"))
    }

    /// Returns the [global `Timer`](Self::global), or the reason why it cannot be made. After an
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

    /// Shuts the `Timer` down: ends its threads, and returns the callbacks that have not fired.
    ///
    /// Pending sleeps, timeouts and intervals resolve to an error. From then on scheduling is an
    /// error. A second shutdown returns nothing, at once.
    ///
    /// The call waits for the callbacks that the `Timer`'s threads are running. When it returns,
    /// the threads have ended, except where it does not wait:
    ///
    /// - It does not wait for an executor. A callback that has been passed to the executor may
    ///   still run, and a recurring one is not armed again. A thread that is inside
    ///   [`Executor::execute`](crate::Executor::execute) ends after that call. A thread that drops
    ///   the executor for longer than 20 ms ends after the drop.
    /// - A call from a callback, of this `Timer` or of another one, waits for no callback, nor does
    ///   a call from anything else that a `Timer`'s thread runs: two callbacks may shut down each
    ///   other's `Timer`. A callback that is running is then the last of its shard, and the thread
    ///   that runs it ends after it.
    ///
    /// While the call waits, the `Timer` may still take timers, for instance from such a callback.
    /// It returns them with the others. Once it has returned, scheduling is an error.
    ///
    /// The [global `Timer`](Self::global) is not shut down: the call returns nothing, and the
    /// `Timer` works on. Nor is the `Timer` of a [`Group`](crate::Group): by a group's handle the
    /// call ends the group alone, and returns its callbacks.
    ///
    /// It may be called from anywhere: from callbacks, wakers, drops, executors, clocks, and at the
    /// end of a thread.
    ///
    /// # Performance
    ///
    /// O(nodes in use), without a copy of what is pending: the callbacks stay in the `Timer`'s
    /// memory until they are taken or dropped. Sleeps are woken before the call returns.
    pub fn shutdown(&self) -> Unfired {
        match &self.members {
            Some(members) => {
                let home = |key| Some((self.home_of(key)?, key));
                Unfired::of_keys(members.end().filter_map(home))
            }
            None if self.is_global() => Unfired::default(),
            None => self.inner.shutdown(),
        }
    }

    /// The global timer outside of all scopes.
    pub(crate) fn of_process() -> Result<&'static Self, BuildError> {
        GLOBAL.get().map_or_else(make, Ok)
    }

    /// Whether this is a handle of the global timer, or of that of the present scope.
    pub(in crate::timer) fn is_global(&self) -> bool {
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

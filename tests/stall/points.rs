//! Stops a thread at one of its atomic operations. For the test `stall` only, with `--cfg
//! shardwheel_stall`.
//!
//! In such a build [`sync`](crate::sync) takes its atomics from this module. Each wraps an atomic
//! of the standard library, has the same layout, and passes a [`point`] before each operation. A
//! thread that has been [armed](Stop::arm) stops at one of these points until it is released. To
//! all other threads, a stopped thread that is never released looks like a thread that the system
//! never runs again.
//!
//! Waiting for the lock of [`Stop`] is no point. Neither is any operation inside other crates, such
//! as the epochs of crossbeam-epoch or the reference counts of `Arc`.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

thread_local! {
    /// Where this thread stops, and how many points it passes before that. It has no destructor, so
    /// a thread can be stopped while its other locals are destroyed.
    static ARMED: Cell<Option<(&'static Stop, u64)>> = const { Cell::new(None) };
}

/// A point in a thread's execution at which it stops.
#[derive(Debug)]
pub struct Stop {
    /// How many points the thread passes before the point at which it stops.
    after: u64,
    state: Mutex<StallState>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StallState {
    OnTheWay,
    Reached,
    /// The thread may pass, or it has ended before it stopped.
    Released,
}

impl Stop {
    /// Creates a stop that comes after `points` points. It is never freed, because a thread may
    /// reach it at the very end of its life.
    #[must_use]
    pub fn after(points: u64) -> &'static Self {
        let state = Mutex::new(StallState::OnTheWay);
        Box::leak(Box::new(Self { after: points, state, changed: Condvar::new() }))
    }

    /// Makes the calling thread count its points from now on, and stop.
    pub fn arm(&'static self) {
        ARMED.set(Some((self, self.after)));
    }

    /// Waits until the thread has stopped, and returns true; false if it is
    /// [released](Self::release) before.
    pub fn is_reached(&self) -> bool {
        let on_the_way = |state: &mut StallState| *state == StallState::OnTheWay;
        let state = self.changed.wait_while(self.state(), on_the_way);
        *state.unwrap_or_else(PoisonError::into_inner) == StallState::Reached
    }

    /// Waits until the thread has stopped; returns false if it has not stopped within `limit`.
    pub fn is_reached_within(&self, limit: Duration) -> bool {
        let on_the_way = |state: &mut StallState| *state == StallState::OnTheWay;
        let state = self.changed.wait_timeout_while(self.state(), limit, on_the_way);
        *state.unwrap_or_else(PoisonError::into_inner).0 == StallState::Reached
    }

    /// Lets the thread continue, now or when it reaches the stop.
    pub fn release(&self) {
        *self.state() = StallState::Released;
        self.changed.notify_all();
    }

    /// Stops the calling thread until the release; does nothing if the release came before.
    fn wait(&self) {
        let mut state = self.state();
        if *state == StallState::OnTheWay {
            *state = StallState::Reached;
            self.changed.notify_all();
            drop(self.changed.wait_while(state, |state| *state == StallState::Reached));
        }
    }

    fn state(&self) -> MutexGuard<'_, StallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Disarms the calling thread: it stops nowhere any more.
pub fn disarm() {
    ARMED.set(None);
}

/// A point: the calling thread stops here if it is armed for this point.
#[inline]
pub fn point() {
    if let Some((stop, left)) = ARMED.get() {
        ARMED.set(left.checked_sub(1).map(|left| (stop, left)));
        if left == 0 {
            stop.wait();
        }
    }
}

pub(crate) mod atomics {
    //! The wrappers of `std::sync::atomic`.

    #![allow(dead_code, reason = "the standard library's methods, whichever are in use")]

    use std::ops::{Deref, DerefMut};
    use std::sync::atomic as native;
    use std::sync::atomic::Ordering;

    use super::point;

    pub(crate) fn fence(order: Ordering) {
        point();
        // Ordering: the caller's; so is that of each operation below.
        native::fence(order);
    }

    /// An atomic of the standard library, whose methods each pass a point before they run.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub(crate) struct Stopping<A>(A);

    impl<A> Deref for Stopping<A> {
        type Target = A;

        #[inline]
        fn deref(&self) -> &A {
            point();
            &self.0
        }
    }

    impl<A> DerefMut for Stopping<A> {
        /// No point: the caller has exclusive access.
        fn deref_mut(&mut self) -> &mut A {
            &mut self.0
        }
    }

    /// The methods that do not come from the standard library's type.
    macro_rules! atomic {
        ($name:ident $(<$param:ident>)?, $value:ty) => {
            pub(crate) type $name $(<$param>)? = Stopping<native::$name $(<$param>)?>;

            impl $(<$param>)? $name $(<$param>)? {
                pub(crate) const fn new(value: $value) -> Self {
                    Self(native::$name::new(value))
                }

                /// No point: the caller has exclusive access.
                pub(crate) fn into_inner(self) -> $value {
                    self.0.into_inner()
                }

                /// Its load and each of its tries are points.
                #[inline]
                pub(crate) fn fetch_update(
                    &self,
                    success: Ordering,
                    failure: Ordering,
                    change: impl Fn($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    let mut seen = self.load(failure);
                    while let Some(next) = change(seen) {
                        match self.compare_exchange_weak(seen, next, success, failure) {
                            Ok(seen) => return Ok(seen),
                            Err(now) => seen = now,
                        }
                    }
                    Err(seen)
                }
            }
        };
    }

    atomic!(AtomicBool, bool);
    atomic!(AtomicU32, u32);
    atomic!(AtomicU64, u64);
    atomic!(AtomicUsize, usize);
    atomic!(AtomicPtr<P>, *mut P);
}

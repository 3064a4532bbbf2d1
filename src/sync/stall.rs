//! Stops a thread at one of its atomic operations. For the test `stall` alone, with `--cfg shardwheel_stall`.
//!
//! In such a build [`sync`](crate::sync) takes its atomics from here: the standard library's, each in a
//! wrapper of the same layout that passes a [`point`] before each operation. A thread that has been
//! [armed](Stop::arm) stops at one of these points until it is released. To all other threads a thread that
//! is not released looks like one that the system never runs again.
//!
//! A wait for the lock of [`Stop`] is no point, nor is what happens inside of other crates: the epochs of
//! crossbeam-epoch, the reference counts of `Arc`.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

thread_local! {
    /// Where this thread is to stop, and how many points it passes before. Without a destructor, so that a
    /// thread can be stopped while its other locals are destroyed.
    static ARMED: Cell<Option<(&'static Stop, u64)>> = const { Cell::new(None) };
}

/// A place in a thread's course at which it stops.
#[derive(Debug)]
pub struct Stop {
    /// How many points the thread passes before the one at which it stops.
    after: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    OnTheWay,
    Reached,
    /// The thread may pass; or it has ended before it was stopped.
    Released,
}

impl Stop {
    /// A stop that comes after so many points. It is never freed, for a thread may reach it at its very end.
    #[must_use]
    pub fn after(points: u64) -> &'static Self {
        let state = Mutex::new(State::OnTheWay);
        Box::leak(Box::new(Self { after: points, state, changed: Condvar::new() }))
    }

    /// Has the calling thread count its points from here on, and stop.
    pub fn arm(&'static self) {
        ARMED.set(Some((self, self.after)));
    }

    /// Waits until the thread has stopped, or is [released](Self::release) before: then false.
    pub fn is_reached(&self) -> bool {
        let on_the_way = |state: &mut State| *state == State::OnTheWay;
        let state = self.changed.wait_while(self.state(), on_the_way);
        *state.unwrap_or_else(PoisonError::into_inner) == State::Reached
    }

    /// Waits until the thread has stopped; false if it has not by then.
    pub fn is_reached_within(&self, limit: Duration) -> bool {
        let on_the_way = |state: &mut State| *state == State::OnTheWay;
        let state = self.changed.wait_timeout_while(self.state(), limit, on_the_way);
        *state.unwrap_or_else(PoisonError::into_inner).0 == State::Reached
    }

    /// Lets the thread go on, now or when it comes to the stop.
    pub fn release(&self) {
        *self.state() = State::Released;
        self.changed.notify_all();
    }

    /// Stops the calling thread until the release, unless that came before.
    fn wait(&self) {
        let mut state = self.state();
        if *state == State::OnTheWay {
            *state = State::Reached;
            self.changed.notify_all();
            drop(self.changed.wait_while(state, |state| *state == State::Reached));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has the calling thread stop nowhere any more.
pub fn disarm() {
    ARMED.set(None);
}

/// A point at which the calling thread stops if it is armed to stop here.
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
    //! What takes the place of `std::sync::atomic`.

    #![allow(dead_code, reason = "the standard library's methods, whichever are in use")]

    use std::sync::atomic as native;
    use std::sync::atomic::Ordering;

    use super::point;

    pub(crate) fn fence(order: Ordering) {
        point();
        // Ordering: the caller's; so is that of each operation below.
        native::fence(order);
    }

    /// Methods that pass a point and then do what the standard library's of the same name does.
    macro_rules! stopping {
        ($value:ty: $($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
            #[inline]
            pub(crate) fn $name(&self, $($arg: $type),*) $(-> $result)? {
                point();
                self.0.$name($($arg),*)
            }
        )*};
    }

    /// An atomic with what all of them have.
    macro_rules! atomic {
        ($name:ident $(<$param:ident>)?, $value:ty) => {
            #[derive(Debug)]
            #[repr(transparent)]
            pub(crate) struct $name $(<$param>)? (native::$name $(<$param>)?);

            impl $(<$param>)? $name $(<$param>)? {
                pub(crate) const fn new(value: $value) -> Self {
                    Self(native::$name::new(value))
                }

                /// No point: no other thread has it.
                pub(crate) fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }

                /// No point, likewise.
                pub(crate) fn into_inner(self) -> $value {
                    self.0.into_inner()
                }

                stopping! { $value:
                    load(order: Ordering) -> $value;
                    store(value: $value, order: Ordering);
                    swap(value: $value, order: Ordering) -> $value;
                    compare_exchange(from: $value, to: $value, success: Ordering, failure: Ordering)
                        -> Result<$value, $value>;
                    compare_exchange_weak(from: $value, to: $value, success: Ordering, failure: Ordering)
                        -> Result<$value, $value>;
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

    macro_rules! with_bits {
        ($name:ident, $value:ty) => {
            impl $name {
                stopping! { $value:
                    fetch_and(value: $value, order: Ordering) -> $value;
                    fetch_or(value: $value, order: Ordering) -> $value;
                    fetch_xor(value: $value, order: Ordering) -> $value;
                }
            }
        };
    }

    macro_rules! integer {
        ($name:ident, $value:ty) => {
            atomic!($name, $value);
            with_bits!($name, $value);

            impl $name {
                stopping! { $value:
                    fetch_add(value: $value, order: Ordering) -> $value;
                    fetch_sub(value: $value, order: Ordering) -> $value;
                    fetch_max(value: $value, order: Ordering) -> $value;
                    fetch_min(value: $value, order: Ordering) -> $value;
                }
            }
        };
    }

    integer!(AtomicI64, i64);
    integer!(AtomicU32, u32);
    integer!(AtomicU64, u64);
    integer!(AtomicUsize, usize);
    atomic!(AtomicBool, bool);
    with_bits!(AtomicBool, bool);
    atomic!(AtomicPtr<P>, *mut P);
}

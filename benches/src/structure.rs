//! One thread's structure, made an engine: behind a mutex, or without a lock and for that thread alone.
//!
//! A peer that was written for one thread has an adapter to [`Structure`], and to [`Removal`] where it can
//! cancel. [`Locked`] is how threads would share it; [`Unlocked`] is how a program with a structure for each core
//! would have it. Both halves of an engine hold the structure, so even the latter pays for a count of references
//! and a flag (about a nanosecond an operation) that an owner would not need.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{Cancel, Checksum, Engine, Producer};

/// How many timers one lock acquisition takes off a structure. A batch keeps the lock's price out of the pops,
/// and is short enough for a producer to get its turn.
pub(crate) const BATCH: usize = 64;

/// A timer structure with one owner.
pub trait Structure {
    /// What the tables call it.
    const NAME: &'static str;

    /// What the tables call it behind a mutex.
    const NAME_LOCKED: &'static str;

    /// Names a timer that was added.
    type Handle: Copy;

    /// An empty structure whose clock stands at 0. Nothing is reserved ahead.
    fn new() -> Self;

    /// What a thread does before it uses a structure that another thread has made.
    fn enter(&self) {}

    /// Adds a timer that is due at `deadline`.
    fn schedule(&mut self, deadline: u64, payload: u64) -> Self::Handle;

    /// Moves the clock to `now` and takes out one timer that is due, the earliest: its deadline and payload.
    fn pop(&mut self, now: u64) -> Option<(u64, u64)>;
}

/// Takes timers back, or moves them to a later deadline, as [`Cancel`] does.
pub trait Removal: Structure {
    /// Cancels a timer and returns its payload, or `None` where it is no longer pending.
    fn cancel(&mut self, handle: Self::Handle) -> Option<u64>;

    /// Gives a pending timer a later deadline, and the handle that names it from now on.
    fn extend(&mut self, handle: Self::Handle, deadline: u64) -> Option<Self::Handle>;
}

/// A structure behind a mutex, shared by any number of producers.
pub struct Locked<S>(Arc<Mutex<S>>);

impl<S> Locked<S> {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, S> {
        self.0.lock().expect("nobody panics while holding the structure")
    }
}

impl<S> Clone for Locked<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Structure> Engine for Locked<S> {
    const NAME: &'static str = S::NAME_LOCKED;

    type Producer = Self;

    fn new() -> Self {
        Self(Arc::new(Mutex::new(S::new())))
    }

    fn producer(&self) -> Self {
        self.clone()
    }

    fn advance(&mut self, now: u64, fired: &mut Checksum) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            {
                let mut structure = self.lock();
                batch.extend(std::iter::from_fn(|| structure.pop(now)).take(BATCH));
            }
            if batch.is_empty() {
                return;
            }
            batch.drain(..).for_each(|(deadline, payload)| fired.add(deadline, payload));
        }
    }
}

impl<S: Structure> Producer for Locked<S> {
    type Handle = S::Handle;

    fn enter(&self) {
        self.lock().enter();
    }

    #[inline]
    fn schedule(&self, deadline: u64, payload: u64) -> S::Handle {
        self.lock().schedule(deadline, payload)
    }
}

impl<S: Removal> Cancel for Locked<S> {
    #[inline]
    fn cancel(&self, handle: S::Handle) -> Option<u64> {
        self.lock().cancel(handle)
    }

    #[inline]
    fn extend(&self, handle: S::Handle, deadline: u64) -> Option<S::Handle> {
        self.lock().extend(handle, deadline)
    }
}

/// A structure without a lock: its producers stay on its thread.
pub struct Unlocked<S>(Rc<RefCell<S>>);

impl<S> Clone for Unlocked<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<S: Structure> Engine for Unlocked<S> {
    const NAME: &'static str = S::NAME;

    type Producer = Self;

    fn new() -> Self {
        Self(Rc::new(RefCell::new(S::new())))
    }

    fn producer(&self) -> Self {
        self.clone()
    }

    fn advance(&mut self, now: u64, fired: &mut Checksum) {
        let mut structure = self.0.borrow_mut();
        while let Some((deadline, payload)) = structure.pop(now) {
            fired.add(deadline, payload);
        }
    }
}

impl<S: Structure> Producer for Unlocked<S> {
    type Handle = S::Handle;

    #[inline]
    fn schedule(&self, deadline: u64, payload: u64) -> S::Handle {
        self.0.borrow_mut().schedule(deadline, payload)
    }
}

impl<S: Removal> Cancel for Unlocked<S> {
    #[inline]
    fn cancel(&self, handle: S::Handle) -> Option<u64> {
        self.0.borrow_mut().cancel(handle)
    }

    #[inline]
    fn extend(&self, handle: S::Handle, deadline: u64) -> Option<S::Handle> {
        self.0.borrow_mut().extend(handle, deadline)
    }
}

//! The traits by which timer structures are measured, and engines made of structures with one owner.
//!
//! [`Engine`] and [`Producer`] mirror the two halves of a shard: the side that moves the clock, and
//! the producers. A peer that was written for one thread implements [`Structure`], and [`Removal`]
//! if it can cancel. [`Locked`] is how threads share it. [`Unlocked`] is how a program with a
//! structure for each core has it: both halves share an `Rc`, about 1 ns an operation.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use crate::checksum::Checksum;

/// Timers taken out under one lock: many for the cost of a lock, few for a waiting producer.
const BATCH: usize = 64;

/// A timer structure under measurement: the side that moves the clock.
pub(crate) trait Engine {
    /// Its name in the tables.
    const NAME: &'static str;

    type Producer: Producer;

    /// Returns an empty engine whose clock is at 0. It reserves no memory for timers.
    fn new() -> Self;

    fn producer(&self) -> Self::Producer;

    /// Moves the clock to `now` and adds every timer that is due to `fired`.
    fn advance(&mut self, now: u64, fired: &mut Checksum);
}

/// An engine that an event loop can drive.
pub(crate) trait Next: Engine {
    /// Returns the tick to move the clock to next: no timer is due before. `None` if it is empty.
    fn next_expiration(&self) -> Option<u64>;
}

/// Adds timers, one producer a thread. That of a one-thread engine is not `Send`.
pub(crate) trait Producer {
    type Handle: Copy;

    fn schedule(&self, deadline: u64, payload: u64) -> Self::Handle;
}

pub(crate) trait Cancel: Producer {
    /// Cancels a timer and returns its payload; `None` if it is no longer pending.
    fn cancel(&self, handle: Self::Handle) -> Option<u64>;
}

/// A timer structure with one owner; its methods do what those of the traits above do.
pub(crate) trait Structure {
    /// Its names in the tables: behind a mutex, and without a lock.
    const NAMES: [&'static str; 2];

    type Handle: Copy;

    fn new() -> Self;

    fn schedule(&mut self, deadline: u64, payload: u64) -> Self::Handle;

    /// Moves the clock to `now` and takes out the earliest due timer: its deadline and payload.
    fn pop(&mut self, now: u64) -> Option<(u64, u64)>;
}

/// A structure that knows when its clock has to move next.
pub(crate) trait First: Structure {
    fn next_expiration(&self) -> Option<u64>;
}

pub(crate) trait Removal: Structure {
    fn cancel(&mut self, handle: Self::Handle) -> Option<u64>;
}

/// A structure behind a mutex, shared by any number of producers.
pub(crate) type Locked<S> = Arc<Mutex<S>>;

/// A structure without a lock; its producers stay on its thread.
pub(crate) type Unlocked<S> = Rc<RefCell<S>>;

/// Makes engines of a shared pointer; `$access` borrows the structure.
macro_rules! engine {
    ($pointer:ident, $name:literal, $share:expr, $pop_all:ident, |$this:ident| $access:expr) => {
        impl<S: Structure> Engine for $pointer<S> {
            const NAME: &'static str = S::NAMES[$name];

            type Producer = Self;

            fn new() -> Self {
                $share(S::new())
            }

            fn producer(&self) -> Self {
                self.clone()
            }

            fn advance(&mut self, now: u64, fired: &mut Checksum) {
                $pop_all(self, now, fired);
            }
        }

        impl<S: Structure> Producer for $pointer<S> {
            type Handle = S::Handle;

            #[inline]
            fn schedule(&self, deadline: u64, payload: u64) -> S::Handle {
                let $this = self;
                $access.schedule(deadline, payload)
            }
        }
    };
}

const SOUND: &str = "no thread panics with the lock";

engine!(Locked, 0, |it| Arc::new(Mutex::new(it)), pop_locked, |it| it.lock().expect(SOUND));
engine!(Unlocked, 1, |it| Rc::new(RefCell::new(it)), pop_unlocked, |it| it.borrow_mut());

impl<S: First> Next for Locked<S> {
    #[inline]
    fn next_expiration(&self) -> Option<u64> {
        self.lock().expect(SOUND).next_expiration()
    }
}

impl<S: Removal> Cancel for Locked<S> {
    #[inline]
    fn cancel(&self, handle: S::Handle) -> Option<u64> {
        self.lock().expect(SOUND).cancel(handle)
    }
}

thread_local! {
    /// Kept between calls, so that a tick does not allocate.
    static BATCH_BUFFER: Cell<Vec<(u64, u64)>> = const { Cell::new(Vec::new()) };
}

fn pop_locked<S: Structure>(shared: &Locked<S>, now: u64, fired: &mut Checksum) {
    loop {
        let mut structure = shared.lock().expect(SOUND);
        let Some(first) = structure.pop(now) else { return };
        let mut batch = BATCH_BUFFER.take();
        batch.push(first);
        batch.extend(std::iter::from_fn(|| structure.pop(now)).take(BATCH - 1));
        drop(structure);
        let is_last = batch.len() < BATCH;
        batch.drain(..).for_each(|(deadline, payload)| fired.add(deadline, payload));
        BATCH_BUFFER.set(batch);
        if is_last {
            return;
        }
    }
}

fn pop_unlocked<S: Structure>(shared: &Unlocked<S>, now: u64, fired: &mut Checksum) {
    let mut structure = shared.borrow_mut();
    while let Some((deadline, payload)) = structure.pop(now) {
        fired.add(deadline, payload);
    }
}

//! The traits that every engine is measured through.
//!
//! They mirror the two halves of a shard: producers, of which there may be many, and the one side that
//! moves the clock. An engine that cannot cancel leaves [`Cancel`] out and takes no part in those runs.

use crate::Checksum;

/// A timer structure under measurement: the side that moves the clock.
pub trait Engine {
    /// What the tables call it.
    const NAME: &'static str;

    /// The side that adds timers.
    type Producer: Producer;

    /// An empty engine whose clock stands at 0. Nothing is reserved ahead.
    fn new() -> Self;

    /// A handle for a thread that adds timers.
    fn producer(&self) -> Self::Producer;

    /// Moves the clock to `now` and adds every timer that is due to `fired`.
    fn advance(&mut self, now: u64, fired: &mut Checksum);
}

/// Adds timers; one for each thread. An engine for one thread alone has a producer that is not `Send`.
pub trait Producer {
    /// Names a timer that was added.
    type Handle: Copy;

    /// What a thread does before it uses a producer, or the engine, that another thread has made.
    fn enter(&self) {}

    /// Adds a timer that is due at `deadline`.
    fn schedule(&self, deadline: u64, payload: u64) -> Self::Handle;
}

/// Takes timers back, or moves them to a later deadline.
pub trait Cancel: Producer {
    /// Cancels a timer and returns its payload, or `None` where it is no longer pending.
    fn cancel(&self, handle: Self::Handle) -> Option<u64>;

    /// Gives a pending timer a later deadline, and the handle that names it from now on.
    fn extend(&self, handle: Self::Handle, deadline: u64) -> Option<Self::Handle>;
}

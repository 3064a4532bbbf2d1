//! Structures that other people use for timers, or would write: an adapter each.
//!
//! Each does what its own documentation says it is used like, from one thread, on a virtual clock of
//! milliseconds. What the adapter adds for the sake of the comparison stands in its file.

mod delay_queue;
mod flat_wheel;
mod hashed_wheel;
mod quad_wheel;
mod ring_wheel;
mod tree;
mod weak_quad_wheel;

pub use delay_queue::DelayQueue;
pub use flat_wheel::FlatWheel;
pub use hashed_wheel::HashedWheel;
pub use quad_wheel::QuadWheel;
pub use ring_wheel::RingWheel;
pub use tree::Tree;
pub use weak_quad_wheel::WeakQuadWheel;

/// Buckets of the wheels that have one level: ticks of a millisecond for 35 minutes, so that every deadline of
/// the workloads has a bucket of its own.
const BUCKETS: usize = 1 << 21;

//! Timer structures: the traits, and one adapter for each structure.
//!
//! Each adapter uses its structure as the structure's own documentation does, on a virtual clock
//! with ticks of 1 ms. What an adapter adds for the comparison is documented in its file.

mod delay_queue;
mod flat_wheel;
mod heap;
mod quad_wheel;
mod ring_wheel;
mod structure;
#[cfg(test)]
mod tests;
mod tree;
mod wheel;

pub(crate) use delay_queue::DelayQueue;
pub(crate) use flat_wheel::FlatWheel;
pub(crate) use heap::{BareHeap, Due, Heap, LazyHeap, pop_due};
pub(crate) use quad_wheel::{QuadWheel, WeakQuadWheel};
pub(crate) use ring_wheel::RingWheel;
pub(crate) use structure::{Cancel, Engine, Locked, Producer, Unlocked};
pub(crate) use tree::Tree;
pub(crate) use wheel::Wheel;

//! Timer structures: the traits, and one adapter for each structure.
//!
//! Each adapter uses its structure as the structure's own documentation does, on a virtual clock
//! with ticks of 1 ms. What an adapter adds for the comparison is documented in its file.

mod delay_queue;
mod heap;
mod one_level;
mod quad_wheel;
mod structure;
mod tree;
mod wheel;

pub(crate) use delay_queue::DelayQueue;
pub(crate) use heap::{Due, Heap, LazyHeap, pop_due};
pub(crate) use one_level::FlatWheel;
pub(crate) use quad_wheel::QuadWheel;
pub(crate) use structure::{Cancel, Engine, Locked, Next, Producer, Unlocked};
pub(crate) use tree::Tree;
pub(crate) use wheel::Wheel;

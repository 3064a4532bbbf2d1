//! Memory: segments of nodes, their free bits, the epochs, and how a freed node returns to the
//! producers.

pub(crate) mod epochs;
pub(crate) mod free_bits;
#[cfg(not(shardwheel_loom))]
mod pages;
pub(crate) mod recycle;
pub(crate) mod segment;
pub(crate) mod slab;
pub(crate) mod slot;

#[cfg(shardwheel_loom)]
use crate::testing::pages;

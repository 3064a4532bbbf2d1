//! Memory: segments of nodes, their free bits, the epochs, and how a freed node returns to the
//! producers.

pub(crate) mod epochs;
pub(crate) mod free_bits;
#[cfg_attr(any(shardwheel_loom, shardwheel_shuttle), path = "../../../loom-tests/testing/pages.rs")]
mod pages;
pub(crate) mod recycle;
pub(crate) mod segment;
pub(crate) mod slab;
pub(crate) mod slot;

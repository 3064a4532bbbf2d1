//! Memory: segments of nodes, free bits, epochs, and the way of a freed node back to the producers.

pub(crate) mod batch;
pub(crate) mod epochs;
pub(crate) mod recycle;
pub(crate) mod segment;
pub(crate) mod slab;

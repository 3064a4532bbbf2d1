//! Memory: segments of nodes, their free bits, the epochs, and how a freed node returns to the
//! producers.
//!
//! | file | part |
//! |---|---|
//! | `slab` | the table of segments; handing out nodes (`supply`), freed ones (`freed`), rights (`rights`) |
//! | `segment`, `pages`, `free_bits` | an array of nodes, its memory, and which of its nodes are free |
//! | `recycle` | the way back: freed nodes to the producers, empty segments to the system |
//! | `slot`, `epochs` | pointers that producers read while the advancer takes the memory away |

pub(crate) mod epochs;
pub(crate) mod free_bits;
#[cfg_attr(any(shardwheel_loom, shardwheel_shuttle), path = "../../../loom-tests/testing/pages.rs")]
mod pages;
pub(crate) mod recycle;
pub(crate) mod segment;
pub(crate) mod slab;
pub(crate) mod slot;

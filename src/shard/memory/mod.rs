//! Memory: segments of nodes, their free bits, the epochs, and how a freed node returns to the
//! producers.
//!
//! | file | part |
//! |---|---|
//! | `slab` | the table of segments; handing out nodes (`supply`), freed ones (`freed`), rights (`rights`) |
//! | `segment`, `layout`, `pages`, `free_bits` | an array of nodes, its length, its memory, and which nodes are free |
//! | `recycle` | the way back, by one rule: freed nodes to the producers, empty segments to the system |
//! | `table`, `epochs` | pointers that producers read while the advancer takes the memory away |

pub(crate) mod epochs;
pub(crate) mod free_bits;
mod layout;
#[cfg_attr(any(shardwheel_loom, shardwheel_shuttle), path = "../../../loom-tests/testing/pages.rs")]
mod pages;
pub(crate) mod recycle;
pub(crate) mod segment;
pub(crate) mod slab;
pub(crate) mod table;

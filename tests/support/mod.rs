//! What the test targets share. Each target includes this folder by its path and uses a part of it.
//!
//! | file | what it holds |
//! |---|---|
//! | `ledger.rs` | the ledger: what became of each payload |
//! | `waiting.rs` | lengths of time, waits with a time limit, gates |
//! | `counting.rs` | counts and logs that callbacks write |
//! | `timers.rs` | timers for tests, and checks of their statistics |
//! | `wakers.rs` | wakers that count or act, polls by hand |
//! | `hostile.rs` | user code that panics or acts on demand |
//! | `processes.rs` | tests that run in a process of their own, and what the system says about a process |
//! | `allocator.rs` | an allocator that counts, and refuses on demand |

pub(crate) mod allocator;
pub(crate) mod counting;
pub(crate) mod hostile;
pub(crate) mod ledger;
pub(crate) mod processes;
#[cfg(feature = "affinity")]
pub(crate) mod timers;
pub(crate) mod waiting;
pub(crate) mod wakers;

pub(crate) use counting::*;
pub(crate) use hostile::*;
pub(crate) use processes::*;
#[cfg(feature = "affinity")]
pub(crate) use timers::*;
pub(crate) use waiting::*;
pub(crate) use wakers::*;

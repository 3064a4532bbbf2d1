//! What user code that parks, panics, blocks, ends the timer or comes in crowds did to this crate,
//! each case a test.
//!
//! Each test is named for the item of the issue "Unbreakable" that it belongs to (`item_01` to
//! `item_17`), or for what was found by reading the code (`read`). All of them failed on the code
//! before that issue, those in `races.rs` now and then. A test that could hang runs under a
//! watchdog, one that could abort runs in a process of its own.
//!
//! | file | items |
//! |---|---|
//! | `ends.rs` | 1 to 3: shutdown while callbacks park, executors are full, timers end one another |
//! | `aborts.rs` | 4: panics in drops, and at a thread's end |
//! | `wakes.rs` | 5, 10: the shard's waker stalls or panics |
//! | `wakers.rs` | 6, 7, 11, 12: a sleep's waker changes; refusals |
//! | `clocks.rs` | 8, 13, 17: clocks set back, at the end of time, at double speed |
//! | `broken_clocks.rs` | 9: clocks that panic or shut down |
//! | `payloads.rs` | 10: payloads and executors whose drops panic |
//! | `hoards.rs` | 14, 16: dead nodes, lanes, segments |
//! | `memory_short.rs` | no memory for a move |
//! | `races.rs` | what takes many attempts: the end of a timer against its producers |
//!
//! What is about bytes is in `tests/unbreakable_memory.rs`, whose process runs nothing else.

mod aborts;
mod broken_clocks;
mod clocks;
mod ends;
mod hoards;
mod maintenance;
mod memory_short;
mod payloads;
mod races;
mod support;
mod wakers;
mod wakes;

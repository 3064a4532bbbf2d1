//! Crowds: thousands of threads that come and go, a thousand at once, hundreds of shards in a
//! thread, ten thousand timers in turn. No timer is lost, no memory is kept, and later calls cost
//! no more than before.
//!
//! A test that measures a whole process (its memory, its threads, its mappings) runs in a process
//! that does nothing else: see [`alone`](support::alone).
//!
//! | file | what it holds |
//! |---|---|
//! | `threads.rs` | threads in waves and all at once; each payload has one outcome |
//! | `after.rs` | a turn of the advancer, and resident memory, after the threads have ended |
//! | `lanes.rs` | what ended and idle threads keep of a shard |
//! | `shards.rs` | hundreds of shards used in turn by one thread |
//! | `timers.rs` | timers made, used and dropped, ten thousand times |

mod after;
mod lanes;
mod shards;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod threads;
mod timers;

/// Threads in all, and threads that are alive at a time.
const THREADS: usize = 4_000;
const WAVE: usize = 100;

/// Threads that are alive at once.
const AT_ONCE: usize = 1_000;

#[global_allocator]
static ALLOCATOR: support::allocator::Counting = support::allocator::Counting;

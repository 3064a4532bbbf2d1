//! Crowds: thousands of threads that come and go, a thousand at once, hundreds of shards in a thread, ten thousand
//! timers one after the other. Nothing is lost, nothing stays behind, and what comes after costs no more than before.
//!
//! What is measured of a whole process (its memory, its threads, its mappings) is measured in a process that does
//! nothing else: a test runs itself [`alone`](alone::alone) for that.
//!
//! | file | what it holds |
//! |---|---|
//! | `alone.rs` | a test in a process of its own; what the system says of the process, and the allocator |
//! | `threads.rs` | threads in waves and all at once, each payload accounted for |
//! | `after.rs` | a turn of the advancer, and resident memory, after the threads have ended |
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

/// Threads that come and go in all, and how many of them are alive at a time.
const THREADS: usize = 4_000;
const WAVE: usize = 100;

/// Threads that are alive at once.
const AT_ONCE: usize = 1_000;

#[global_allocator]
static ALLOCATOR: support::allocator::Counting = support::allocator::Counting;

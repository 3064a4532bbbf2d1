//! Crowds: thousands of threads that come and go, a thousand at once, sixty shards in a thread, a
//! thousand timers in turn. No memory is kept, and later calls cost no more than before. (`soak`
//! has crowds, too: no timer is lost.)
//!
//! A test that measures a whole process (its memory, its threads, its mappings) runs in a process
//! that does nothing else: see [`alone`](support::alone).
//!
//! | file | what it holds |
//! |---|---|
//! | `threads.rs` | crowds of threads |
//! | `after.rs` | a turn of the advancer, and resident memory, after the threads have ended |
//! | `lanes.rs` | what ended and idle threads keep of a shard; many shards in turn |
//! | `timers.rs` | timers made, used and dropped, a thousand times |

/// Defines tests, each of which runs in a process of its own.
macro_rules! alone {
    ($($name:ident: $work:expr;)+) => {
        $(#[test]
        fn $name() {
            crate::support::alone(|| $work);
        })+
    };
}

mod after;
mod lanes;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod threads;
mod timers;

#[global_allocator]
static ALLOCATOR: support::allocator::Counting = support::allocator::Counting;

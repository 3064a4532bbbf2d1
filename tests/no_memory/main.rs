//! Refused requests for memory: a call that schedules returns an error with the payload, or does
//! without the memory. It loses no timer, and everything works afterwards. It aborts for none but
//! the requests that promise 5 names (the guide's page `promises`).
//!
//! Each test repeats its work: the first, the second, the n-th request for memory fails, that
//! request alone or all from then on, until the work makes no such request any more. An abort would
//! end all tests, so the work runs in a process of its own, which names each request before it is
//! refused.
//!
//! | file | what it holds |
//! |---|---|
//! | `producer.rs`, `timer.rs` | the producers' half of a shard, and a `Timer`, with memory refused |
//! | `limit.rs` | the system refuses: `RLIMIT_AS` |

#[cfg(target_os = "linux")]
mod limit;
mod producer;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod timer;

use std::thread;

use support::allocator::{self, Counting, Fail};
use support::{secs, survives_as, this_binary};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most requests that the work may make.
const MOST: u64 = 2_500;

/// Runs `work`, the closure of the calling test, with each of its requests for memory refused in
/// turn: that request alone, and that request with all that follow it.
fn at_every_request<F: Fn() + Copy + Send + 'static>(work: F) {
    survives_as::<F>(this_binary(), 1, secs(120), || {
        for fail in (1..=MOST).flat_map(|number| [Fail::Once(number), Fail::From(number)]) {
            // The last line before an abort.
            eprintln!("{fail:?}");
            // A thread that has not used the shard before.
            let refused = thread::spawn(move || {
                allocator::begin(fail);
                work();
                allocator::end()
            });
            if !refused.join().expect("the work does not panic") {
                return;
            }
        }
        panic!("it makes no end of requests");
    });
}

//! Refused requests for memory: a call that schedules returns an error with the payload, or does
//! without the memory. It loses no timer, and everything works afterwards. It aborts for none but
//! the requests that promise 5 names (the guide's page `promises`).
//!
//! Each test repeats its work: the first, the second, the n-th request for memory fails, that
//! request alone or all from then on, until the work makes no such request any more. An abort would
//! end the test, so the work runs in a process of its own ([`child`]), which is started again after
//! the request that ended it. The test fails with a list of those requests.
//!
//! | file | what it holds |
//! |---|---|
//! | `faults.rs` | the allocator, and which requests it refuses |
//! | `child.rs` | work in processes of its own, with each request refused in turn |
//! | `producer.rs`, `timer.rs` | the producers' half of a shard, and a `Timer`, with memory refused |
//! | `limit.rs` | the system refuses: `RLIMIT_AS` |

mod child;
mod faults;
#[cfg(target_os = "linux")]
mod limit;
mod producer;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod timer;

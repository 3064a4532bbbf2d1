//! Where the system gives no memory: an error that hands the payload back, or what was wanted is done without;
//! never an abort, nothing lost, and all well afterwards.
//!
//! Each test has its work done again and again, and the first, the second, the n-th request for memory within it
//! fails, that one alone or all from then on, until it makes no such request any more. An abort would take the test
//! with it, so the work is done in a process of its own ([`child`]), which is started anew behind the request that
//! ended it; the test fails with a list of those requests, and where each came from.
//!
//! | file | what it holds |
//! |---|---|
//! | `faults.rs` | the allocator, and which requests it refuses |
//! | `child.rs` | work in a process of its own, one request after the other |
//! | `producer.rs`, `advancer.rs`, `timer.rs` | what is refused memory: each half of a shard, the upper floor |
//! | `limit.rs` | where it is the system that refuses: `RLIMIT_AS` |

mod advancer;
mod child;
mod faults;
#[cfg(target_os = "linux")]
mod limit;
mod producer;
mod recurring;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod timer;

//! Black-box tests of [`shardwheel::shard`] and its two halves.
//!
//! Many are behaviours that users of other timers rely on, or have complained about;
//! `tests/BEHAVIOURS.md` lists these cases with their sources. Where the source fires early, clamps
//! a far deadline or needs a lock, the test checks the promise of this crate instead, and its
//! comment says so. The promises that the tests name are those of the README.
//!
//! Time is virtual, in ticks: no test sleeps, and none depends on how fast the machine is.
//!
//! | file | what it holds |
//! |---|---|
//! | `rig.rs` | a shard whose payloads are its deadlines, and checks for most cases |
//! | `firing.rs`, `deadlines.rs`, `extremes.rs` | when timers fire |
//! | `keys.rs`, `limits.rs` | keys; limits, refusals and counts |
//! | `maintenance.rs` | memory that goes back while nothing is due |
//! | `surface/` | types, payloads, errors, panics and ends |
//! | `threads/` | several threads on one shard, with a ledger of all payloads |
//! | `ledger.rs` | the ledger itself |
//! | `hostile/` | user code that panics or stalls where a shard calls it |
//!
//! What a shard does in any order of calls, one call at a time, `tests/model` compares with a map: each
//! deadline, key, count, refusal and `next_expiration`, clocks that jump or go backwards, and calls
//! while timers are being taken. Here are the cases that random calls seldom meet.

mod deadlines;
mod extremes;
mod firing;
mod hostile;
mod keys;
mod ledger;
mod limits;
mod maintenance;
mod rig;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod surface;
mod threads;

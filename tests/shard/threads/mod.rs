//! Many threads on one shard, and every payload accounted for.
//!
//! Each payload has an entry in a [`Ledger`](crate::support::ledger::Ledger): what became of it, how often it was dropped, the
//! deadline in force and the time at which it fired. A test lets threads loose on a shard, waits for them, and
//! has the ledger checked: each payload had one outcome and one drop, and none fired early.
//!
//! The work is bounded by operations, never by time; set `SHARDWHEEL_STRESS` to a whole number for that many
//! times as much. The tests are written to run under a thread sanitizer too.

mod conservation;
mod counting;
mod duels;
mod ending;
mod ends;
mod keys;
mod many;
mod memory;
mod overflow;
mod producers;
mod waking;
mod work;

//! Several threads on one shard, and a ledger of all payloads.
//!
//! Each payload has an entry in a [`Ledger`](crate::support::ledger::Ledger): its ends, its drops,
//! its deadline, and the time at which it fired. A test starts threads on a shard, joins them, and
//! checks the ledger: each payload had one outcome and one drop, and none fired early.
//!
//! The work is limited by operations, never by time; `SHARDWHEEL_STRESS=n` multiplies it by n. The
//! tests also run under ThreadSanitizer.

mod conservation;
mod duels;
mod ending;
mod keys;
mod many;
mod memory;
mod producers;
mod waking;
mod work;

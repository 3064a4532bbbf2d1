//! What a shard must do, case by case: a test for each behaviour that users of other timers rely on, or
//! have complained about, told against the ground floor ([`shardwheel::shard`] and its two halves).
//!
//! A test is named for the system that the case comes from and for its number in the list of cases. Time is
//! virtual, in ticks: nothing here sleeps, and nothing depends on how fast the machine is. Where the system
//! that a case comes from fires early, clamps a far deadline or asks for a lock, the promise of this crate is
//! checked instead, and the test says so. The promises, by the numbers that the tests give:
//!
//! 1. never early, at most one tick late;
//! 2. exactly one outcome for each timer, and `cancel` knows at once;
//! 3. lock-free;
//! 4. any deadline, any jump, no clamp;
//! 5. bounded memory;
//! 6. keys never alias;
//! 7. user code cannot break it;
//! 8. nothing is lost at the end;
//! 9. idle costs nothing.

mod clocks;
mod deadlines;
mod draining;
mod extremes;
mod firing;
mod hostile;
mod keys;
mod limits;
mod maintenance;
mod memory;
mod random;
mod rig;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod surface;
mod threads;
mod wheel;

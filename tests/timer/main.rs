//! What a `Timer` must do, case by case: the behaviours that users of other timers rely on, or have complained
//! about, told against the upper floor; and what only that floor has: callbacks, executors, threads.
//!
//! A test that comes from a case is named for the system and for its number in the list of cases. Most run on a
//! [`ManualClock`](shardwheel::ManualClock), where times are exact; those in real time say so. They check strictly
//! that nothing is early, and only generously that nothing is late, as the machine may be busy. The promises, by
//! the numbers that the tests give:
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

mod busy;
mod callbacks;
mod complaints;
mod deadlines;
mod ending;
mod executors;
mod hostile;
mod limits;
mod panics;
mod recurring;
mod schedules;
mod settings;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod unruly;

//! Tests of `Timer`: behaviours that users of other timers rely on, or have complained about, and
//! callbacks, executors and threads.
//!
//! `tests/BEHAVIOURS.md` lists the cases that come from other systems. The promises that the tests
//! name are those of the README. Most tests run on a [`ManualClock`](shardwheel::ManualClock),
//! where times are exact; tests in real time have that in their names. They check strictly that
//! nothing is early, and with a wide margin that nothing is late, as the machine may be busy.

mod auto_advance;
mod boot;
mod busy;
mod callbacks;
mod complaints;
mod deadlines;
mod drivers;
mod ending;
mod executors;
mod groups;
mod hostile;
#[cfg(feature = "introspect")]
mod introspect;
mod keys;
mod last_handle;
mod limits;
mod pairs;
mod panics;
mod recurring;
mod repeating;
mod schedules;
mod scope;
mod settings;
mod slack;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod threads;
mod wall;
mod windows;

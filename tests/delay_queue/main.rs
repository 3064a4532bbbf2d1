//! The delay queue, from outside. Most tests run on a [`ManualClock`](shardwheel::ManualClock),
//! where times are exact; tests in real time have that in their names. The promises that the tests
//! name are those of the README.

mod ending;
mod everything;
mod keys;
mod stream;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod threads;
mod values;
mod waiting;

//! User code that parks, panics, blocks or ends the timer wherever a timer calls it.
//!
//! A test that could hang has a time limit, and a test that could abort runs in a process of its
//! own.

mod aborts;
mod broken_clocks;
mod clocks;
mod executors;
mod payloads;
mod races;
mod shutdown;

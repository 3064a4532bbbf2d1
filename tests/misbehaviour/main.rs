//! Every place where user code is called, times everything that it may do there.
//!
//! A row of the table is a place, a test each; its cases run at once, in a process of their own, so
//! that an abort is a failure as well; the last cases begun are in its message. Each case is played
//! with two threads and by hand. After what was done:
//!
//! - the other shard fires in time while the place is held, and so does the same shard when it is
//!   released;
//! - each timer has one outcome: its payload is dropped once, and the statistics balance;
//! - `shutdown` returns; where the place is held it is called before the release as well as after
//!   it.
//!
//! # What is left out, and why
//!
//! - *A place on a shard's thread that never returns* holds its shard, and a shutdown that waits
//!   for callbacks; so does what never returns in a manual clock's `advance`. Only the other shard
//!   is looked at, and the thread is leaked. Not so in `Executor::execute`, for which shutdown does
//!   not wait.
//! - *A panic at a thread's end*, in the destructor of a thread local: Rust aborts the process,
//!   whoever is called there.
//! - *Rescheduling itself*: a callback knows its key; elsewhere it is a neighbour that is
//!   rescheduled.
//! - *The loop over `Expired` that shuts down*: the advancer is borrowed, so this does not compile.
//! - *A shard's waker, and the loop, by hand or on threads*: they belong to the ground floor, which
//!   has neither.

mod ground;
mod rows;
mod scene;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod upper;

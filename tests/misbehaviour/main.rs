//! Every place where a `Timer` calls user code, times everything that it may do there.
//!
//! A row of the table is a place, with a test each. The cases of a row run at the same time, in a
//! process of their own, so an abort is a failure as well; the failure names the last cases that
//! had begun. Each case of a `Timer` is played with a thread for each shard, with threads as they
//! are needed (except for executors and clocks), and with a manual clock. After the user code has
//! misbehaved:
//!
//! - the other shard fires in time while the place is held, and so does the same shard after the
//!   release;
//! - each timer has one outcome: its payload is dropped once, and the statistics balance;
//! - `shutdown` returns; where the place is held the test calls it before the release as well as
//!   after it.
//!
//! # What is left out, and why
//!
//! - *A place on a shard's thread that never returns* holds its shard, and a shutdown that waits
//!   for callbacks; so does code that never returns in a manual clock's `advance`. Only the other
//!   shard is checked, and the thread is leaked. `Executor::execute` is different: shutdown does
//!   not wait for it.
//! - *A panic at a thread's end*, in the destructor of a thread-local: Rust aborts the process.
//! - *Rescheduling itself*: only a callback knows its key; at other places another timer is
//!   rescheduled.
//! - *The ranges of `schedule_within`*: they are the standard library's, whose code is not the
//!   user's. No call but `cancel_batch` takes an iterator.
//! - *Values and consumers of a delay queue, members of a group*: `tests/delay_queue/ending.rs` and
//!   `stream.rs`, and `tests/timer/groups.rs`, have drops and wakers that panic or use the queue or the
//!   group.
//! - *A shard's waker, its payloads and the keys of its batch*: `tests/shard/hostile` has what panics
//!   or blocks there, and `tests/stall` a producer that stops in the waker. In the loop over `Expired`
//!   `tests/model` does what a producer may do.

mod rows;
mod scene;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod upper;

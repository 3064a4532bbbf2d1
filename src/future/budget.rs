//! The limit on answers that are ready at once.
//!
//! A future that is ready whenever it is polled would keep its task on the thread: `loop {
//! sleep(Duration::ZERO).await }` would never return to the executor, nor reach a time limit around
//! it. So after [`LIMIT`] such answers on a thread, the next one is pending: it wakes its task at
//! once, and the task is polled again. A sleep whose timer has fired does not count, because its
//! task has waited for it.
//!
//! tokio counts for each task, but only in its own tasks. The count of a thread needs no runtime. A
//! task may give way because of the answers that other tasks had, which costs it one more poll.

use std::cell::Cell;
use std::task::{Poll, Waker};

use crate::sync::thread_local;

/// The budget of tokio's tasks. No limit where one thread runs a model or a stall again and again.
const LIMIT: u32 = if cfg!(any(shardwheel_loom, shardwheel_stall)) { u32::MAX } else { 128 };

thread_local! {
    /// Answers that were ready at once since one of them gave way.
    static READY: Cell<u32> = const { Cell::new(0) };
}

/// Counts an answer that is ready at once. Pending if the task has to return to its executor first:
/// the task has been woken then.
pub(crate) fn spend(waker: &Waker) -> Poll<()> {
    let outcome = look(waker);
    if outcome.is_ready() {
        READY.set(READY.get() + 1);
    }
    outcome
}

/// Pending if the next answer that is ready at once would have to give way: it does so now, before
/// a time limit around it is asked.
#[inline]
pub(crate) fn look(waker: &Waker) -> Poll<()> {
    if READY.get() < LIMIT {
        return Poll::Ready(());
    }
    READY.set(0);
    waker.wake_by_ref();
    Poll::Pending
}

//! `DelayQueue` of `tokio-util`, which belongs to a task of a runtime.
//!
//! It takes the time from the runtime and has a sleep there for its earliest deadline. The virtual clock is
//! the paused clock of a runtime on the measuring thread, entered once for the thread's life, as a task would
//! find it; the queue is polled from outside of any task. What that costs: each move of the clock is a turn of the
//! runtime, some hundreds of nanoseconds; a running program pays for a wake-up there instead. The sleep is not an artefact:
//! every timer that comes out makes a new one, as in a program.

use std::mem;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, advance};
use tokio_util::time::delay_queue::{self, Key};

use crate::structure::{Removal, Structure};

thread_local! {
    /// The thread's runtime and clock. It is leaked, because the thread's entry into it cannot be kept beside it.
    static RUNTIME: &'static Runtime = enter();
}

fn enter() -> &'static Runtime {
    let built = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime: &Runtime = Box::leak(Box::new(built.expect("a runtime without threads can be built")));
    stay_in(runtime);
    runtime
}

/// Enters the calling thread into `runtime`, for the rest of the thread's life.
fn stay_in(runtime: &'static Runtime) {
    mem::forget(runtime.enter());
}

/// A [`delay_queue::DelayQueue`] on a paused clock. Those of one thread share its clock, so no two may be in use
/// at a time.
pub struct DelayQueue {
    runtime: &'static Runtime,
    queue: delay_queue::DelayQueue<u64>,
    start: Instant,
    clock: u64,
}

impl DelayQueue {
    #[inline]
    fn instant(&self, deadline: u64) -> Instant {
        self.start + Duration::from_millis(deadline)
    }

    fn move_clock(&mut self, now: u64) {
        if now > self.clock {
            self.runtime.block_on(advance(Duration::from_millis(now - self.clock)));
            self.clock = now;
        }
    }
}

impl Structure for DelayQueue {
    const NAME: &'static str = "DelayQueue, no lock";
    const NAME_LOCKED: &'static str = "DelayQueue";

    type Handle = Key;

    fn new() -> Self {
        let runtime = RUNTIME.with(|runtime| *runtime);
        Self { runtime, start: Instant::now(), queue: delay_queue::DelayQueue::new(), clock: 0 }
    }

    fn enter(&self) {
        stay_in(self.runtime);
    }

    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) -> Key {
        let when = self.instant(deadline);
        self.queue.insert_at(payload, when)
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        self.move_clock(now);
        match self.queue.poll_expired(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(expired)) => {
                let deadline = expired.deadline().duration_since(self.start).as_millis() as u64;
                Some((deadline, expired.into_inner()))
            }
            Poll::Ready(None) | Poll::Pending => None,
        }
    }
}

/// A key that is no longer pending may name another timer by then; the workloads have no such keys.
impl Removal for DelayQueue {
    #[inline]
    fn cancel(&mut self, key: Key) -> Option<u64> {
        self.queue.try_remove(&key).map(delay_queue::Expired::into_inner)
    }

    #[inline]
    fn extend(&mut self, key: Key, deadline: u64) -> Option<Key> {
        let when = self.instant(deadline);
        self.queue.reset_at(&key, when);
        Some(key)
    }
}

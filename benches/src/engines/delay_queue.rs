//! `DelayQueue` of `tokio-util`, driven by the paused clock of a `tokio` runtime.
//!
//! The measuring thread enters the runtime once and polls the queue outside of any task. Each move
//! of the clock is a turn of the runtime, some hundreds of ns; a running program pays for a wake-up
//! instead. The queue itself makes a new sleep for its next deadline after each timer that fires.

use std::mem;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, advance};
use tokio_util::time::delay_queue::{self, Key};

use super::structure::Structure;

thread_local! {
    /// The thread's runtime and clock. It is leaked, because the guard of its entry borrows it.
    static RUNTIME: &'static Runtime = {
        let built = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime: &Runtime = Box::leak(Box::new(built.expect("a runtime without threads can be built")));
        mem::forget(runtime.enter());
        runtime
    };
}

/// A queue on a paused clock, which a thread's queues share: a thread uses one at a time.
pub(crate) struct DelayQueue {
    runtime: &'static Runtime,
    queue: delay_queue::DelayQueue<u64>,
    start: Instant,
    clock: u64,
}

impl Structure for DelayQueue {
    const NAMES: [&'static str; 2] = ["DelayQueue", "DelayQueue without a lock"];

    type Handle = Key;

    fn new() -> Self {
        let runtime = RUNTIME.with(|runtime| *runtime);
        Self { runtime, start: Instant::now(), queue: delay_queue::DelayQueue::new(), clock: 0 }
    }

    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) -> Key {
        self.queue.insert_at(payload, self.start + Duration::from_millis(deadline))
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        if now > self.clock {
            self.runtime.block_on(advance(Duration::from_millis(now - self.clock)));
            self.clock = now;
        }
        match self.queue.poll_expired(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(expired)) => {
                let deadline = expired.deadline().duration_since(self.start).as_millis() as u64;
                Some((deadline, expired.into_inner()))
            }
            Poll::Ready(None) | Poll::Pending => None,
        }
    }
}

//! Lengths of time, and waits with a time limit.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// How long a test waits for an event that must come, on a busy machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The least time for which the end of a shard waits for a thread that is moving a timer. An end that
/// took longer may have lost that timer to the drop, as promise 8 says.
pub(crate) const END_WAITS: Duration = Duration::from_millis(100);

/// How long a test with a watchdog may run.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Waits until `holds` returns true; fails after [`PATIENCE`].
pub(crate) fn until(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_within(PATIENCE, holds), "waited in vain until {what}");
}

/// Waits until `holds` returns true; false if it does not within `limit`.
pub(crate) fn comes_within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !holds() {
        if begin.elapsed() >= limit {
            return false;
        }
        thread::sleep(Duration::from_micros(200));
    }
    true
}

/// Receives a message that another thread sends; fails after [`PATIENCE`].
pub(crate) fn hear<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(PATIENCE).expect("the other thread sends a message")
}

/// Runs `work` on another thread, and fails if it does not end within `limit`. So a hang is a
/// failure.
pub(crate) fn within<R: Send + 'static>(limit: Duration, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, ended) = mpsc::channel::<()>();
    let worker = thread::spawn(move || {
        let _done = done;
        work()
    });
    let ended = ended.recv_timeout(limit);
    assert_eq!(ended, Err(RecvTimeoutError::Disconnected), "the test hangs");
    worker.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Runs `work` [`within`] twice the [`PATIENCE`], so that the waits inside it fail first.
pub(crate) fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    within(2 * PATIENCE, work)
}

/// Runs `work` [`within`] the [`LIMIT`].
pub(crate) fn watched<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    within(LIMIT, work)
}

/// A gate that is shut at first. Threads wait at it until another thread opens it.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    pub(crate) fn pass(&self) {
        let is_open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open));
    }
}

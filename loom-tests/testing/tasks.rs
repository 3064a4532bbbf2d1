//! A task that waits, and the thread that runs it, for the models.

use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::timer::Parker;

/// A thread that runs one task.
pub struct TaskThread(Arc<Parker>);

impl TaskThread {
    /// Makes the executor of the calling thread.
    pub fn here() -> Self {
        let parker = Parker::new();
        parker.set_thread();
        Self(Arc::new(parker))
    }

    /// Polls until the task is ready.
    pub fn run<R>(&self, mut poll: impl FnMut(&Waker) -> Poll<R>) -> R {
        let waker = Waker::from(Arc::clone(&self.0));
        loop {
            self.0.clear();
            if let Poll::Ready(result) = poll(&waker) {
                return result;
            }
            self.0.wait(None);
        }
    }
}

/// The side of a driver without a thread that producers notify.
pub struct DriverTask(Parker);

impl DriverTask {
    /// Makes one without a waker.
    pub fn new() -> Self {
        Self(Parker::new())
    }

    /// Notifies the driver, as a request of a visit does.
    pub fn notify(&self) {
        self.0.notify();
    }

    /// What `register_waker` does, and `next_deadline` before it looks.
    pub fn register(&self, waker: &Waker) {
        self.0.register(waker);
    }

    /// What a turn and `next_deadline` do before they look.
    pub fn clear(&self) {
        self.0.clear();
    }
}

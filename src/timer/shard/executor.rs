//! Where callbacks run if not on the `Timer`'s threads.

use std::fmt;
use std::sync::Arc;

use super::handle::ShardHandle;
use crate::clock::UserCode;
use crate::shard::Due;
use crate::timer::task::{RanTask, Task};

/// Runs callbacks outside of the `Timer`'s threads: on a thread pool or an async runtime.
///
/// A closure that takes a [`Job`] is an executor. Dropping a job discards its callback; the timer
/// still counts as fired, and a recurring timer ends.
///
/// `execute` is called on the `Timer`'s thread and should return soon: until it returns, the
/// shard's other timers wait. A [`shutdown`](crate::Timer::shutdown) waits for neither `execute`
/// nor a job, so a job may shut its `Timer` down even while `execute` waits for space. The last
/// shard to end drops the executor. A panic in that drop is counted and reported.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::thread;
/// use std::time::Duration;
/// use shardwheel::{Job, Timer};
///
/// let (send, receive) = mpsc::channel::<Job>();
/// let worker = thread::spawn(move || receive.into_iter().for_each(Job::run));
/// let timer = Timer::builder().executor(move |job: Job| drop(send.send(job))).build()?;
///
/// let (sender, receiver) = mpsc::channel();
/// timer.schedule_after(Duration::from_millis(5), move || sender.send(thread::current().id()).unwrap())?;
/// assert_eq!(receiver.recv()?, worker.thread().id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Executor: Send + Sync + 'static {
    /// Runs the job, now or later, on any thread.
    fn execute(&self, job: Job);
}

impl<F: Fn(Job) + Send + Sync + 'static> Executor for F {
    fn execute(&self, job: Job) {
        self(job);
    }
}

impl<E: Executor + ?Sized> Executor for Arc<E> {
    fn execute(&self, job: Job) {
        (**self).execute(job);
    }
}

/// A callback that is due, for an [`Executor`].
///
/// On a pool: `pool.spawn(move || job.run())`. A closure that only holds the job discards it.
#[must_use = "a job that is dropped is a callback that never runs"]
pub struct Job {
    /// `None` once the job has run.
    pub(in crate::timer) due: Option<Due<Task>>,
    pub(in crate::timer) handle: Arc<ShardHandle>,
}

impl Job {
    /// Runs the callback. If its recurring timer was cancelled meanwhile, drops the callback
    /// instead. A panic in it is caught, counted, and reported to the `Timer`'s hook.
    ///
    /// Like every callback, a job waits for no other: where it shuts a `Timer` down or moves a
    /// [`ManualClock`](crate::ManualClock), that does not wait for what another thread runs.
    pub fn run(mut self) {
        self.end(ShardHandle::run_job);
    }

    fn end(&mut self, end: fn(&ShardHandle, Due<Task>) -> Option<RanTask>) {
        if let Some(due) = self.due.take() {
            let _user_code = UserCode::begin();
            let done = end(&self.handle, due);
            self.handle.send_back(done);
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.end(ShardHandle::abandon);
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").finish_non_exhaustive()
    }
}

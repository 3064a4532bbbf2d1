//! Threads that are reused by all executions: creating them would take longer than their work.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::PRODUCERS;

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct Pool {
    workers: [Worker; PRODUCERS],
    done: Mutex<Receiver<()>>,
}

type Worker = Mutex<Sender<Job>>;

impl Pool {
    pub(crate) fn new() -> Self {
        let (report, done) = channel();
        let workers = std::array::from_fn(|_| Mutex::new(worker(report.clone())));
        Self { workers, done: Mutex::new(done) }
    }

    /// Passes a job to a worker.
    pub(crate) fn run(&self, worker: usize, job: impl FnOnce() + Send + 'static) {
        let worker = self.workers[worker].lock().expect("no job has panicked");
        worker.send(Box::new(job)).expect("the worker waits for jobs");
    }

    /// Waits until every worker has finished its job.
    pub(crate) fn wait(&self) {
        let done = self.done.lock().expect("no job has panicked");
        (0..PRODUCERS).for_each(|_| done.recv().expect("the workers report"));
    }
}

fn worker(report: Sender<()>) -> Sender<Job> {
    let (sender, jobs) = channel::<Job>();
    thread::spawn(move || {
        for job in jobs {
            job();
            if report.send(()).is_err() {
                return;
            }
        }
    });
    sender
}

/// A barrier, so that the first thread does not finish before the last thread has woken.
pub(crate) struct Start(AtomicUsize);

impl Start {
    /// How often a thread polls before it yields its processor.
    const LOOKS: u32 = 100;

    pub(crate) fn new(threads: usize) -> Self {
        Self(AtomicUsize::new(threads))
    }

    pub(crate) fn wait(&self) {
        // Ordering: Relaxed throughout. The barrier must not publish anything: the target tests the
        // order that the threads establish afterwards.
        self.0.fetch_sub(1, Ordering::Relaxed);
        while self.0.load(Ordering::Relaxed) > 0 {
            for _ in 0..Self::LOOKS {
                std::hint::spin_loop();
                if self.0.load(Ordering::Relaxed) == 0 {
                    return;
                }
            }
            thread::yield_now();
        }
    }
}

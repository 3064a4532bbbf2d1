//! Threads that are kept from one execution to the next: making them would take longer than all they do.

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

    /// Has a worker do a job.
    pub(crate) fn run(&self, worker: usize, job: impl FnOnce() + Send + 'static) {
        let worker = self.workers[worker].lock().expect("no job has panicked");
        worker.send(Box::new(job)).expect("the worker waits for jobs");
    }

    /// Waits until every worker has done its job.
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

/// Where threads wait for each other, so that the first is not done before the last has woken.
pub(crate) struct Start(AtomicUsize);

impl Start {
    /// How often a thread looks before it gives its processor to another.
    const LOOKS: u32 = 100;

    pub(crate) fn new(threads: usize) -> Self {
        Self(AtomicUsize::new(threads))
    }

    pub(crate) fn wait(&self) {
        // Ordering: Relaxed throughout. Nothing is published here, nor should be: what the threads order
        // among themselves afterwards is what is being tested.
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

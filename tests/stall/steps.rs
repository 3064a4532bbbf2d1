//! Tries each step of each job in turn, on a few threads; failures are printed together at the end.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::stall::Stop;

/// Threads that try jobs. Each has a few more threads for its scenes, most of which wait.
const TRIERS: usize = 2;

/// How long an attempt may take; longer is a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// More steps than any operation has.
const MOST_STEPS: u64 = 20_000;

/// An operation that is tried with a stop at each of its steps.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) attempt: Arc<Attempt>,
}

/// Returns whether the operation reached the stop.
type Attempt = dyn Fn(&'static Stop, &mut Findings) -> bool + Send + Sync;

/// What failed while a producer was stopped at one step.
#[derive(Default)]
pub(crate) struct Findings(Vec<String>);

impl Findings {
    pub(crate) fn check(&mut self, what: &str, holds: bool) {
        if !holds && self.0.iter().all(|listed| listed != what) {
            self.0.push(what.to_string());
        }
    }
}

#[derive(Default)]
struct Report {
    steps: Vec<(String, u64)>,
    /// The steps at which a promise failed, by operation and promise.
    failed: BTreeMap<(String, String), Vec<u64>>,
}

/// Tries each step of each job, prints the number of steps and the failures, and panics if there
/// are failures.
pub(crate) fn try_all(jobs: Vec<Job>) {
    let (begin, jobs, report) = (Instant::now(), Mutex::new(jobs.into_iter()), Mutex::<Report>::default());
    let next = || jobs.lock().expect("no thread panics with the lock").next();
    let try_jobs = || std::iter::from_fn(next).for_each(|job| try_steps(&job, &report));
    thread::scope(|scope| (0..TRIERS).for_each(|_| _ = scope.spawn(try_jobs)));
    let report = report.into_inner().expect("no thread panics with the lock");
    report.print(begin.elapsed());
    assert!(report.failed.is_empty(), "what others are promised fails at the steps above");
}

fn try_steps(job: &Job, report: &Mutex<Report>) {
    for step in 0.. {
        let (goes_on, findings) = attempt(job, step);
        let mut report = report.lock().expect("no thread panics with the lock");
        for what in findings.0 {
            report.failed.entry((job.name.clone(), what)).or_default().push(step);
        }
        if !goes_on {
            return report.steps.push((job.name.clone(), step));
        }
    }
}

/// One attempt. Returns whether there are further steps, and what has failed.
fn attempt(job: &Job, step: u64) -> (bool, Findings) {
    let (tell, told) = channel();
    let attempt = Arc::clone(&job.attempt);
    thread::spawn(move || {
        let mut findings = Findings::default();
        let attempted = catch_unwind(AssertUnwindSafe(|| attempt(Stop::after(step), &mut findings)));
        findings.check("panics", attempted.is_ok());
        findings.check("comes to an end", step < MOST_STEPS);
        let _ = tell.send((attempted.unwrap_or(true) && step < MOST_STEPS, findings));
    });
    // An attempt that hangs keeps its thread.
    told.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let mut findings = Findings::default();
        findings.check("hangs", false);
        (false, findings)
    })
}

impl Report {
    fn print(&self, took: Duration) {
        let total: u64 = self.steps.iter().map(|(_, steps)| steps).sum();
        println!("{} operations, {total} steps, {:.1} s", self.steps.len(), took.as_secs_f64());
        self.steps.iter().for_each(|(name, steps)| println!("  {steps:5} steps: {name}"));
        println!("FAILED: {}", self.failed.values().map(Vec::len).sum::<usize>());
        for ((name, what), steps) in &self.failed {
            println!("  {name}: {what}, at {steps:?}");
        }
    }
}

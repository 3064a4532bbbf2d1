//! Tries each step of each job in turn, on a few threads; failures are printed together at the end.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
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
    pub(crate) attempt: Box<Attempt>,
}

/// Returns whether the operation reached the stop.
type Attempt = dyn Fn(&'static Stop, &mut Findings) -> bool + Send;

/// What failed while a producer was stopped at one step.
#[derive(Default)]
pub(crate) struct Findings {
    failed: Vec<String>,
    excepted: Vec<String>,
}

impl Findings {
    pub(crate) fn check(&mut self, what: &str, holds: bool) {
        self.check_but_for(false, what, holds);
    }

    /// As [`check`](Self::check). A failure that the docs name as an exception is counted and is no
    /// failure.
    pub(crate) fn check_but_for(&mut self, is_exception: bool, what: &str, holds: bool) {
        let list = if is_exception { &mut self.excepted } else { &mut self.failed };
        if !holds && list.iter().all(|listed| listed != what) {
            list.push(what.to_string());
        }
    }
}

enum Event {
    Begun { trier: usize, name: String, step: u64 },
    Found { name: String, step: u64, findings: Findings },
    Tried { name: String, steps: u64 },
    Idle { trier: usize },
}

/// Tries each step of each job, prints the number of steps and the failures, and panics if there
/// are failures.
pub(crate) fn try_all(jobs: Vec<Job>) {
    let (begin, (tell, events)) = (Instant::now(), channel());
    let jobs = Arc::new(Mutex::new(VecDeque::from(jobs)));
    let mut report = Report::default();
    (0..TRIERS).for_each(|_| report.start(&jobs, &tell));
    while !report.at_work.is_empty() {
        match events.recv_timeout(PATIENCE) {
            Ok(event) => report.take_in(event),
            // A hanging attempt keeps its thread; new threads take the remaining jobs.
            Err(_) => (0..report.give_up()).for_each(|_| report.start(&jobs, &tell)),
        }
    }
    report.print(begin.elapsed());
    assert!(report.failed.is_empty(), "what others are promised fails at the steps above");
}

type Jobs = Arc<Mutex<VecDeque<Job>>>;

fn try_jobs(trier: usize, jobs: &Jobs, tell: &Sender<Event>) {
    let next = || jobs.lock().expect("no thread panics with the lock").pop_front();
    std::iter::from_fn(next).for_each(|job| try_steps(trier, &job, tell));
    let _ = tell.send(Event::Idle { trier });
}

fn try_steps(trier: usize, job: &Job, tell: &Sender<Event>) {
    let send = |event| drop(tell.send(event));
    let name = || job.name.clone();
    for step in 0.. {
        send(Event::Begun { trier, name: name(), step });
        let mut findings = Findings::default();
        let attempt = catch_unwind(AssertUnwindSafe(|| (job.attempt)(Stop::after(step), &mut findings)));
        findings.check("panics", attempt.is_ok());
        findings.check("comes to an end", step < MOST_STEPS);
        send(Event::Found { name: name(), step, findings });
        if !attempt.unwrap_or(true) || step == MOST_STEPS {
            return send(Event::Tried { name: name(), steps: step });
        }
    }
}

/// The steps at which a promise failed, by operation and promise.
type Places = BTreeMap<(String, String), Vec<u64>>;

#[derive(Default)]
struct Report {
    /// The number of threads that were started, and what each tries at the moment.
    started: usize,
    at_work: BTreeMap<usize, (String, u64)>,
    steps: Vec<(String, u64)>,
    failed: Places,
    excepted: Places,
}

impl Report {
    fn start(&mut self, jobs: &Jobs, tell: &Sender<Event>) {
        let (trier, jobs, tell) = (self.started, Arc::clone(jobs), tell.clone());
        self.started += 1;
        self.at_work.insert(trier, ("nothing yet".to_string(), 0));
        thread::spawn(move || try_jobs(trier, &jobs, &tell));
    }

    fn take_in(&mut self, event: Event) {
        match event {
            Event::Begun { trier, name, step } => {
                self.at_work.entry(trier).and_modify(|at| *at = (name, step));
            }
            Event::Found { name, step, findings } => {
                let note = |places: &mut Places, what| {
                    places.entry((name.clone(), what)).or_default().push(step);
                };
                findings.failed.into_iter().for_each(|what| note(&mut self.failed, what));
                findings.excepted.into_iter().for_each(|what| note(&mut self.excepted, what));
            }
            Event::Tried { name, steps } => self.steps.push((name, steps)),
            Event::Idle { trier } => drop(self.at_work.remove(&trier)),
        }
    }

    /// Nothing has happened for a long time, so all current attempts hang. Returns how many they
    /// are.
    fn give_up(&mut self) -> usize {
        let hanging = std::mem::take(&mut self.at_work);
        let count = hanging.len();
        for (name, step) in hanging.into_values() {
            self.failed.entry((name, "hangs".to_string())).or_default().push(step);
        }
        count
    }

    fn print(&self, took: Duration) {
        let total: u64 = self.steps.iter().map(|(_, steps)| steps).sum();
        println!("{} operations, {total} steps, {:.1} s", self.steps.len(), took.as_secs_f64());
        self.steps.iter().for_each(|(name, steps)| println!("  {steps:5} steps: {name}"));
        for (title, places) in [("exceptions", &self.excepted), ("FAILED", &self.failed)] {
            let count: usize = places.values().map(Vec::len).sum();
            println!("{title}: {count}");
            for ((name, what), steps) in places {
                println!("  {name}: {what}, at {}", ranges(steps));
            }
        }
    }
}

/// Formats ascending numbers as ranges.
fn ranges(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|left, right| left + 1 == *right);
    let run = |run: &[u64]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

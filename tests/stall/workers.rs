//! A shard's thread is stopped at each of its steps from a job's hand-over to its sleep. Meanwhile
//! the job comes back from the executor. The recurring timer is armed again all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::stall::Stop;
use shardwheel::{Job, Timer};

use crate::steps::{Findings, Job as Tried};

const TICK: Duration = Duration::from_millis(1);

/// A thread that has not come to the stop after this long is asleep.
const ASLEEP_AFTER: Duration = Duration::from_millis(100);

/// The limit for something that happens in real time.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn jobs() -> Vec<Tried> {
    let name = "a job comes back, the shard's thread stopped".to_string();
    vec![Tried { name, attempt: Box::new(play) }]
}

fn play(stop: &'static Stop, findings: &mut Findings) -> bool {
    let ((handed_over, jobs), is_first) = (channel::<Job>(), AtomicBool::new(true));
    let executor = move |job: Job| {
        // The shard's thread counts its steps from the first hand-over on.
        if is_first.swap(false, Ordering::Relaxed) {
            stop.arm();
        }
        let _ = handed_over.send(job);
    };
    let timer =
        Timer::builder().shards(1).tick(TICK).executor(executor).build().expect("the settings are in range");
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let counted = move || _ = count.fetch_add(1, Ordering::Relaxed);
    timer.schedule_every(TICK, counted).expect("the timer is open");
    let job = jobs.recv().expect("the timer hands jobs over");
    let has_stopped = stop.is_reached_within(ASLEEP_AFTER);
    job.run();
    stop.release();
    thread::scope(|scope| {
        scope.spawn(|| jobs.into_iter().for_each(Job::run));
        let begin = Instant::now();
        while runs.load(Ordering::Relaxed) < 3 && begin.elapsed() < PATIENCE {
            thread::sleep(TICK);
        }
        findings.check("a timer that recurs goes on", runs.load(Ordering::Relaxed) >= 3);
        drop(timer.shutdown());
        drop(timer);
    });
    has_stopped
}

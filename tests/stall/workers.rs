//! A shard's thread is stopped at each of its steps from a job's hand-over to its sleep. Meanwhile
//! the job comes back from the executor. The recurring timer is armed again all the same.
//!
//! An event loop is stopped at each step of its question for the next deadline. Meanwhile another
//! thread requests a sweep. The question wakes nothing while it has the shard: the loop's waker may
//! shut the timer down, which would wait for the shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::task::{Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use shardwheel::stall::{self, Stop};
use shardwheel::{Job, ManualClock, Timer};

use crate::steps::{Findings, Job as Tried};

const TICK: Duration = Duration::from_millis(1);

/// A thread that has not come to the stop after this long is asleep.
const ASLEEP_AFTER: Duration = Duration::from_millis(100);

/// The limit for something that happens in real time.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn jobs() -> Vec<Tried> {
    let job = "a job comes back, the shard's thread stopped".to_string();
    let question = "a sweep is requested, the loop stopped in `next_deadline`".to_string();
    vec![
        Tried { name: job, attempt: Arc::new(return_a_job) },
        Tried { name: question, attempt: Arc::new(request_a_sweep) },
    ]
}

fn return_a_job(stop: &'static Stop, findings: &mut Findings) -> bool {
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

/// The waker of a loop: shuts the timer down if the loop's own thread calls it.
struct Ends(Timer, ThreadId);

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        if thread::current().id() == self.1 {
            drop(self.0.shutdown());
        }
    }
}

/// More cancelled timers than a shard leaves without a sweep.
const DEAD: usize = 8192;

fn request_a_sweep(stop: &'static Stop, findings: &mut Findings) -> bool {
    let builder = Timer::builder().shards(1).clock(ManualClock::new());
    let (timer, mut driver) = builder.build_driven().expect("the settings are in range");
    let set = |_| timer.schedule_after(Duration::from_secs(3600), || ()).expect("the timer is open");
    let keys: Vec<_> = (0..DEAD).map(set).collect();
    let (of_loop, (returned, has_returned)) = (timer.clone(), channel());
    thread::spawn(move || {
        driver.register_waker(&Waker::from(Arc::new(Ends(of_loop, thread::current().id()))));
        stop.arm();
        let _ = driver.next_deadline();
        stall::disarm();
        stop.release();
        // Its drop would shut the timer down.
        let _ = returned.send(driver);
    });
    let has_stopped = stop.is_reached();
    findings.check("all are cancelled", timer.cancel_batch(keys) == DEAD);
    stop.release();
    let driver = has_returned.recv_timeout(PATIENCE);
    findings.check("the loop goes on", driver.is_ok());
    has_stopped
}

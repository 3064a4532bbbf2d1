//! An executor that keeps its jobs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use shardwheel::{Job, Timer};

use crate::support::{HOUR, Tampered, is_on_shard_of, ms, until, watched};

/// Recurring timers that are cancelled while a slow executor holds them keep no thread awake.
/// Promise 9.
#[test]
fn cancelled_recurring_timers_in_an_executor_keep_no_thread_awake() {
    watched(|| {
        let (held, others) = (Counted::new("held-", "held"), Counted::new("twin-", "twin"));
        let every = |_| held.timer.schedule_every(ms(1), || ()).expect("the timer is open");
        let keys: Vec<_> = (0..4_000).map(every).collect();
        until("the executor holds all jobs", || {
            held.jobs.lock().expect("the thread does not panic").len() == keys.len()
        });
        assert!(keys.into_iter().all(|key| held.timer.cancel(key)));
        thread::sleep(ms(200));
        let read = held.readings_while(|| thread::sleep(ms(1_000)));
        assert!(read <= 500, "{read} readings of the clock within an idle second");
        // Recurring timers that cannot be swept are no reason to request a sweep at each cancel: then
        // the clock is read 500 times and more in a run, several times as often as by a twin without
        // them. Other programs may hold the threads up, so the best of some runs counts.
        let run = |it: &Counted| it.readings_while(|| (0..100).for_each(|_| churn(&it.timer, 64)));
        let runs: Vec<_> = (0..8)
            .map(|_| (run(&held), run(&others)))
            .take_while(|&(held, twin)| held > 250 + 2 * twin)
            .collect();
        assert!(runs.len() < 8, "{runs:?} readings of the clock while others cancel, and of the twin's");
        held.jobs.lock().expect("the thread does not panic").clear();
    });
}

/// A timer of one shard, whose executor keeps its jobs and whose thread's readings of the clock are
/// counted.
struct Counted {
    timer: Timer,
    readings: Arc<AtomicUsize>,
    jobs: Arc<Mutex<Vec<Job>>>,
}

impl Counted {
    fn new(thread: &'static str, name: &str) -> Self {
        let (readings, jobs) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::<Job>::new())));
        let (read, keep) = (Arc::clone(&readings), Arc::clone(&jobs));
        let before = move || {
            if is_on_shard_of(thread) {
                read.fetch_add(1, Ordering::SeqCst);
            }
        };
        let builder = Timer::builder().shards(1).thread_name(name).clock(Tampered { before, manual: None });
        let builder =
            builder.executor(move |job: Job| keep.lock().expect("the thread does not panic").push(job));
        Self { timer: builder.build().expect("settings within their limits"), readings, jobs }
    }

    fn readings_while(&self, what: impl FnOnce()) -> usize {
        let before = self.readings.load(Ordering::SeqCst);
        what();
        self.readings.load(Ordering::SeqCst) - before
    }
}

/// Cancels so many timers, and waits a little.
fn churn(timer: &Timer, count: usize) {
    for _ in 0..count {
        let key = timer.schedule_after(HOUR, || ()).expect("the timer is open");
        assert!(timer.cancel(key));
    }
    thread::sleep(ms(1));
}

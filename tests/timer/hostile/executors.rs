//! An executor that keeps its jobs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use shardwheel::{Job, Timer};

use crate::support::{Built, Tampered, is_on_shard_of, ms, until, watched};

/// Recurring timers that are cancelled while a slow executor holds them keep no thread awake.
/// Promise 9.
#[test]
fn cancelled_recurring_timers_in_an_executor_keep_no_thread_awake() {
    watched(|| {
        let (readings, jobs) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::<Job>::new())));
        let (read, keep) = (Arc::clone(&readings), Arc::clone(&jobs));
        let before = move || {
            if is_on_shard_of("held-") {
                read.fetch_add(1, Ordering::SeqCst);
            }
        };
        let builder = Timer::builder().shards(1).thread_name("held").clock(Tampered { before, manual: None });
        let timer = builder
            .executor(move |job: Job| keep.lock().expect("the thread does not panic").push(job))
            .built();
        let every = |_| timer.schedule_every(ms(1), || ()).expect("the timer is open");
        let keys: Vec<_> = (0..4_000).map(every).collect();
        until("the executor holds all jobs", || {
            jobs.lock().expect("the thread does not panic").len() == keys.len()
        });
        assert!(keys.into_iter().all(|key| timer.cancel(key)));
        thread::sleep(ms(100));
        let before = readings.load(Ordering::SeqCst);
        thread::sleep(ms(300));
        let read = readings.load(Ordering::SeqCst) - before;
        assert!(read <= 150, "{read} readings of the clock within 300 idle ticks");
        jobs.lock().expect("the thread does not panic").clear();
    });
}

//! An executor that keeps its jobs.

use std::thread;

use shardwheel::{Job, Timer};

use crate::support::{Built, Count, Log, Tampered, is_on_shard_of, ms, until, watched};

/// Recurring timers that are cancelled while a slow executor holds them keep no thread awake.
/// Promise 9.
#[test]
fn cancelled_recurring_timers_in_an_executor_keep_no_thread_awake() {
    watched(|| {
        let (readings, jobs) = (Count::default(), Log::<Job>::new());
        let (read, keep) = (readings.clone(), jobs.clone());
        let before = move || {
            if is_on_shard_of("held-") {
                read.one();
            }
        };
        let builder = Timer::builder().shards(1).thread_name("held").clock(Tampered { before, manual: None });
        let timer = builder.executor(move |job: Job| keep.add(job)).built();
        let every = |_| timer.schedule_every(ms(1), || ()).expect("the timer is open");
        let keys: Vec<_> = (0..4_000).map(every).collect();
        until("the executor holds all jobs", || jobs.len() == keys.len());
        assert!(keys.into_iter().all(|key| timer.cancel(key)));
        thread::sleep(ms(100));
        let before = readings.get();
        thread::sleep(ms(300));
        let read = readings.get() - before;
        assert!(read <= 150, "{read} readings of the clock within 300 idle ticks");
        drop(jobs.take());
    });
}

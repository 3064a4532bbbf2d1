//! A delay queue: jobs that fail come back later, each time after a longer delay.
//!
//! `cargo run --example delay_queue`

use std::error::Error;
use std::thread;
use std::time::Duration;

use shardwheel::{DelayQueue, QueueKey, Timer};

#[derive(Debug)]
struct Job {
    name: &'static str,
    /// How many attempts it takes.
    takes: u32,
    attempt: u32,
}

const JOBS: [(&str, u32); 4] =
    [("send a mail", 3), ("scale a picture", 2), ("write a report", 1), ("count the sheep", 9)];

/// Any thread inserts, by a shared reference; the keys are small and `Copy`.
fn insert_from_threads(queue: &DelayQueue<Job>) -> [QueueKey; 4] {
    let insert = |(name, takes)| queue.insert(Job { name, takes, attempt: 1 }, Duration::from_millis(200));
    thread::scope(|scope| {
        let threads = JOBS.map(|job| scope.spawn(move || insert(job)));
        threads.map(|thread| thread.join().expect("no panic").expect("the timer is open"))
    })
}

/// One consumer. Here it blocks; with an async executor, the queue is a `Stream`.
fn consume(timer: &Timer, queue: &DelayQueue<Job>) -> Result<(), Box<dyn Error>> {
    let begin = timer.now();
    while !queue.is_empty() {
        let expired = queue.blocking_recv().ok_or("the timer was shut down")?;
        assert!(timer.now() >= expired.deadline, "never early");
        let Job { name, takes, attempt } = expired.value;
        let passed = (timer.now() - begin).as_millis();
        if attempt == takes {
            println!("{passed:>4} ms  {name}: done at attempt {attempt}");
        } else {
            let delay = Duration::from_millis(50 << attempt);
            println!("{passed:>4} ms  {name}: failed, again in {} ms", delay.as_millis());
            queue.insert(Job { name, takes, attempt: attempt + 1 }, delay)?;
        }
    }
    println!("the queue is empty");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let timer = Timer::new()?;
    let queue = DelayQueue::new(&timer);
    let [_mail, _picture, report, sheep] = insert_from_threads(&queue);

    // A value can be put off (its key stays the same), and taken out again.
    queue.reset(&report, Duration::from_millis(300));
    let removed = queue.remove(&sheep).map(|job| job.name);
    println!("removed before it was due: {removed:?}; {} jobs wait", queue.len());
    consume(&timer, &queue)?;

    // What is left when a program ends: when the next is due, what waits, and all of it.
    insert_from_threads(&queue);
    let next = queue.peek_deadline().map(|due| due.saturating_duration_since(timer.now()));
    println!("{} jobs wait again, the next for {next:.0?}", queue.iter().len());
    let names: Vec<_> = queue.drain().map(|(_, job)| job.name).collect();
    println!("{} are written to a file, {} are left", names.len(), queue.len());
    Ok(())
}

//! Slack: sleeps that may end a little later are woken together. The same 100,000 sleeps, with more
//! and more of it.
//!
//! `cargo run --release --example slack`, or with milliseconds of your own: `... slack -- 5 50`

use std::error::Error;
use std::time::{Duration, Instant};
use std::{env, fs};

use futures::StreamExt;
use futures::executor::block_on;
use futures::stream::FuturesUnordered;
use shardwheel::Timer;

const SLEEPS: u64 = 100_000;

/// The sleeps end within two seconds, after one second to begin them all.
const FIRST: Duration = Duration::from_secs(1);
const SPREAD: Duration = Duration::from_secs(2);

/// How often the `Timer`'s threads have gone to sleep, and how often the others. Linux counts that
/// for each thread; elsewhere it is zero.
fn wake_ups() -> (u64, u64) {
    let mut wakes = (0, 0);
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let status = read("status");
        let slept = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let slept = slept.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
        let own = if read("comm").starts_with("timer") { &mut wakes.0 } else { &mut wakes.1 };
        *own += slept;
    }
    wakes
}

/// The processor time of this process in milliseconds, to 10 ms.
fn processor_time() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let jiffies = |field: usize| fields.get(field).and_then(|text| text.parse::<u64>().ok());
    (jiffies(11).unwrap_or(0) + jiffies(12).unwrap_or(0)) * 10
}

/// Waits for all sleeps on a `Timer` with that slack.
fn sleeps(slack: Duration) -> Result<(), Box<dyn Error>> {
    let timer = Timer::builder().thread_name("timer").slack(slack).build()?; // the one line
    let gap = SPREAD / SLEEPS as u32;
    // In an order that scatters them: 48,271 has no factor in common with their number.
    let delays = (0..SLEEPS).map(|i| FIRST + gap * (i * 48_271 % SLEEPS) as u32);
    let begin = Instant::now();
    let mut all: FuturesUnordered<_> = delays
        .map(|delay| {
            let (sleep, due) = (timer.sleep(delay), Instant::now() + delay);
            async move { sleep.await.map(|()| due.elapsed()) }
        })
        .collect();
    let (before, begun) = (wake_ups(), processor_time());
    let late = block_on(async {
        let mut late = Duration::ZERO;
        while let Some(ended) = all.next().await {
            late += ended?; // `elapsed` is zero for what is early, which the sum would not show
        }
        Ok::<_, shardwheel::SleepError>(late / SLEEPS as u32)
    })?;
    let (after, took) = (wake_ups(), processor_time() - begun);
    let (timers, tasks) = (after.0 - before.0, after.1 - before.1);
    assert!(begin.elapsed() >= FIRST + gap * (SLEEPS - 1) as u32, "never early");
    println!("{slack:>6.0?} {timers:>16} {tasks:>17} {took:>12} ms {late:>10.1?}");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{SLEEPS} sleeps that end within {SPREAD:?}:");
    println!(" slack   timer's wake-ups   task's wake-ups  processor time  mean late");
    let given = env::args().skip(1).map(|millis| millis.parse()).collect::<Result<Vec<_>, _>>()?;
    let slacks = if given.is_empty() { vec![0, 1, 10, 100] } else { given };
    slacks.into_iter().map(Duration::from_millis).try_for_each(sleeps)
}

//! Sleeps of a timer on tokio's workers beside those of tokio's own timer.
//!
//! ```sh
//! cargo run --release -p shardwheel-compat --features tokio --example tokio_timer -- workers --workers 2
//! ```
//!
//! 51 tasks sleep 2,800 times, for 5 and for 20 ms; or `--tasks` do, 55 times each. Or `--million`
//! sleeps of an hour are created and dropped, and then a million tasks sleep for 3 to 5 s. It prints
//! how late the sleeps were, and what the process has used meanwhile: voluntary context switches and
//! processor time (on Linux).
//! With `RUSTFLAGS="--cfg tokio_unstable"` there is tokio's alternative timer, too, on several
//! threads.

use std::fs;
use std::future::Future;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use shardwheel::Timer;
use shardwheel_compat::{tokio_timer, tokio_timer_with};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, unconstrained};

const MILLION: u64 = 1_000_000;

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Engine {
    /// A timer with threads of its own.
    Threads,
    /// A timer on tokio's workers.
    Workers,
    /// tokio's timer.
    Tokio,
    /// tokio's alternative timer.
    Alternative,
}

#[derive(Parser)]
struct Args {
    engine: Engine,
    /// The runtime's worker threads; 0 for a runtime of one thread.
    #[arg(long, default_value_t = 0)]
    workers: usize,
    /// A million sleeps in the place of 55 of each task.
    #[arg(long)]
    million: bool,
    /// The tasks that sleep, without `--million`.
    #[arg(long, default_value_t = 51)]
    tasks: usize,
    /// The timer's tick in microseconds, in the place of the default.
    #[arg(long)]
    tick: Option<u64>,
    #[arg(long, default_value_t = 1)]
    shards: usize,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    runtime(&args)?.block_on(async {
        let timer = match (args.engine, args.tick) {
            (Engine::Threads, _) => Some(Timer::new()?),
            (Engine::Workers, None) => Some(tokio_timer()?),
            (Engine::Workers, Some(tick)) => {
                let builder = Timer::builder().tick(Duration::from_micros(tick)).shards(args.shards);
                Some(tokio_timer_with(builder)?)
            }
            (Engine::Tokio | Engine::Alternative, _) => None,
        };
        if args.million {
            create_and_drop(timer.clone()).await;
        }
        let (begin, before) = (Instant::now(), Used::until_now());
        // The timer lives on: what its threads have used is gone with them.
        let of_tasks = timer.clone();
        let mut late = if args.million { million(of_tasks).await } else { few(of_tasks, args.tasks).await };
        let (took, used) = (begin.elapsed(), Used::until_now());
        drop(timer);
        late.sort_unstable();
        let at = |share: f64| late[(late.len() as f64 * share) as usize].as_secs_f64() * 1e3;
        println!(
            "{} sleeps in {:.2} s: {} switches, {:.1} ms of processor time; late {:.2} ms at the median, \
             {:.2} at 99 %, {:.2} at most",
            late.len(),
            took.as_secs_f64(),
            used.switches - before.switches,
            (used.nanos - before.nanos) as f64 / 1e6,
            at(0.5),
            at(0.99),
            at(1.0 - f64::EPSILON),
        );
        Ok(())
    })
}

fn runtime(args: &Args) -> std::io::Result<Runtime> {
    let mut builder = match args.workers {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if args.workers > 0 {
        builder.worker_threads(args.workers);
    }
    #[cfg(tokio_unstable)]
    if args.engine == Engine::Alternative {
        builder.enable_alt_timer();
    }
    #[cfg(not(tokio_unstable))]
    assert!(args.engine != Engine::Alternative, "the alternative timer needs `--cfg tokio_unstable`");
    builder.enable_time().build()
}

async fn sleep(timer: &Option<Timer>, delay: Duration) -> Duration {
    let due = Instant::now() + delay;
    match timer {
        Some(timer) => timer.sleep(delay).await.expect("the timer has no bound, and goes on"),
        None => tokio::time::sleep(delay).await,
    }
    Instant::now().checked_duration_since(due).expect("no sleep ends early")
}

async fn few(timer: Option<Timer>, number: usize) -> Vec<Duration> {
    let mut tasks = JoinSet::new();
    for task in 0..number {
        let (delay, times) = if task == 0 { (20, 50) } else { (5, 55) };
        let timer = timer.clone();
        tasks.spawn(async move {
            let mut late = Vec::with_capacity(times);
            for _ in 0..times {
                late.push(sleep(&timer, Duration::from_millis(delay)).await);
            }
            late
        });
    }
    tasks.join_all().await.concat()
}

/// A million sleeps in one task, each polled once. Without `unconstrained`, tokio's would stop to
/// register at the end of the task's budget. The processor time of the whole process counts.
async fn create_and_drop(timer: Option<Timer>) {
    let task = tokio::spawn(unconstrained(async move {
        let mut sleeps = Vec::with_capacity(MILLION as usize);
        let begin = Used::until_now().nanos;
        for millis in 0..MILLION {
            let mut sleep = Box::pin(sleep(&timer, Duration::from_millis(3_600_000 + millis)));
            assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            sleeps.push(sleep);
        }
        let created = Used::until_now().nanos;
        drop(sleeps);
        (created - begin, Used::until_now().nanos - created)
    }));
    let (created, dropped) = task.await.expect("no sleep ends");
    println!("{} ns to create a sleep, {} ns to drop it", created / MILLION, dropped / MILLION);
}

async fn million(timer: Option<Timer>) -> Vec<Duration> {
    let mut tasks = JoinSet::new();
    for task in 0..MILLION {
        let timer = timer.clone();
        let delay = Duration::from_micros(3_000_000 + task * 7_919 % 2_000_000);
        tasks.spawn(async move { sleep(&timer, delay).await });
    }
    tasks.join_all().await
}

/// What the process has used.
struct Used {
    switches: u64,
    nanos: u64,
}

impl Used {
    fn until_now() -> Self {
        let mut used = Self { switches: 0, nanos: 0 };
        for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let number =
                |text: Option<&str>| text.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
            let (status, stat) = (read("status"), read("schedstat"));
            used.switches +=
                number(status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")));
            used.nanos += number(stat.split(' ').next());
        }
        used
    }
}

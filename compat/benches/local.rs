//! Timers on the loops of compio, monoio and glommio, each beside the runtime's own.
//!
//! ```sh
//! cargo bench -p shardwheel-compat --features compio,glommio,monoio --bench local
//! ```
//!
//! For 1, 10,000 and a million sleeps that are pending on the thread: what it costs to create a
//! sleep, poll it once and drop it; what it costs to fire each of the pending ones; and how late 51
//! tasks are that sleep for 5 ms again and again beside them, with the thread's voluntary context
//! switches and processor time. Medians of `--rounds`, in turns. Linux alone.

use std::cell::RefCell;
use std::error::Error;
use std::fs;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use clap::Parser;
use compio::driver::{DriverType, ProactorBuilder};
use cpu_time::ThreadTime;
use glommio::{LocalExecutorBuilder, Placement};
use shardwheel_compat::{LocalTimer, compio_timer, glommio_timer, monoio_timer};

const TASKS: usize = 51;
const SLEEPS: usize = 50;
const PERIOD: Duration = Duration::from_millis(5);
/// Sleeps that are created, polled once and dropped.
const CREATED: usize = 100_000;
/// What is pending is not due while the tasks sleep.
const FAR: Duration = Duration::from_secs(600);

#[derive(Parser)]
struct Args {
    /// Sleeps that are pending.
    #[arg(long, value_delimiter = ',', default_value = "1,10000,1000000")]
    pending: Vec<usize>,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Nanoseconds a sleep, switches a thousand sleeps, milliseconds.
#[derive(Clone, Copy)]
struct Figures {
    create: f64,
    fire: f64,
    switches: f64,
    processor: f64,
    late: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    println!(
        "| runtime | timer | pending | create + drop, ns | fire, ns | switches, 1,000 sleeps | CPU, ms | late, ms |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for &pending in &args.pending {
        for (runtime, run) in RUNTIMES {
            let mut figures = [Vec::new(), Vec::new()];
            for _ in 0..args.rounds {
                for (own, figures) in [true, false].into_iter().zip(&mut figures) {
                    figures
                        .push(std::thread::spawn(move || run(own, pending)).join().expect("it ended well"));
                }
            }
            for (timer, figures) in ["its own", "shardwheel"].into_iter().zip(figures) {
                let of = |figure: fn(&Figures) -> f64| median(figures.iter().map(figure).collect());
                // Of a single sleep it is the wait that takes the time.
                let fire = if pending == 1 { "-".into() } else { format!("{:.0}", of(|all| all.fire)) };
                println!(
                    "| {runtime} | {timer} | {pending} | {:.0} | {fire} | {:.0} | {:.1} | {:.2} |",
                    of(|all| all.create),
                    of(|all| all.switches),
                    of(|all| all.processor),
                    of(|all| all.late),
                );
            }
        }
    }
    Ok(())
}

type Run = fn(bool, usize) -> Figures;

const RUNTIMES: [(&str, Run); 5] = [
    ("compio, io_uring", |own, pending| compio(DriverType::IoUring, own, pending)),
    ("compio, epoll", |own, pending| compio(DriverType::Poll, own, pending)),
    ("monoio, io_uring", monoio_uring),
    ("monoio, epoll", monoio_epoll),
    ("glommio", glommio),
];

fn compio(driver: DriverType, own: bool, pending: usize) -> Figures {
    let mut proactor = ProactorBuilder::new();
    proactor.driver_type(driver);
    let runtime = compio::runtime::RuntimeBuilder::new().with_proactor(proactor).build().expect("a runtime");
    let spawn = |task: Task| compio::runtime::spawn(task).detach();
    runtime.block_on(async {
        if own {
            measure(compio::time::sleep, spawn, pending).await
        } else {
            measure(sleeps_of(compio_timer().expect("a timer")), spawn, pending).await
        }
    })
}

fn monoio_uring(own: bool, pending: usize) -> Figures {
    let runtime = monoio::RuntimeBuilder::<monoio::IoUringDriver>::new().enable_timer().build();
    runtime.expect("a runtime").block_on(on_monoio(own, pending))
}

fn monoio_epoll(own: bool, pending: usize) -> Figures {
    let runtime = monoio::RuntimeBuilder::<monoio::LegacyDriver>::new().enable_timer().build();
    runtime.expect("a runtime").block_on(on_monoio(own, pending))
}

async fn on_monoio(own: bool, pending: usize) -> Figures {
    let spawn = |task: Task| drop(monoio::spawn(task));
    if own {
        measure(monoio::time::sleep, spawn, pending).await
    } else {
        measure(sleeps_of(monoio_timer().expect("a timer")), spawn, pending).await
    }
}

fn glommio(own: bool, pending: usize) -> Figures {
    let executor = LocalExecutorBuilder::new(Placement::Unbound).make().expect("an executor");
    let spawn = |task: Task| drop(glommio::spawn_local(task).detach());
    executor.run(async {
        if own {
            measure(glommio::timer::sleep, spawn, pending).await
        } else {
            measure(sleeps_of(glommio_timer().expect("a timer")), spawn, pending).await
        }
    })
}

fn sleeps_of(timer: LocalTimer) -> impl Fn(Duration) -> Pin<Box<dyn Future<Output = ()>>> + Clone + 'static {
    move |delay| {
        let sleep = timer.sleep(delay);
        Box::pin(async move { sleep.await.expect("the timer goes on") })
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

async fn measure<S, F>(sleep: S, spawn: impl Fn(Task), pending: usize) -> Figures
where
    S: Fn(Duration) -> F + Clone + 'static,
    F: Future<Output = ()> + 'static,
{
    // Boxed in both cases: a task would have it on the heap as well.
    let boxed = move |delay| -> Task { Box::pin(sleep(delay)) };
    let begun = |waker, delay: fn(usize) -> Duration| {
        let boxed = boxed.clone();
        Begun { sleeps: (0..pending).map(move |number| boxed(delay(number))).collect(), waker }
    };
    let mut waiting = begun(Waker::noop().clone(), |_| FAR);
    waiting.begin().await;

    let begin = processor();
    for number in 0..CREATED {
        let mut one = boxed(Duration::from_millis(1_000 + number as u64 % 5_000));
        let polled = std::future::poll_fn(|context| Poll::Ready(one.as_mut().poll(context))).await;
        assert!(polled.is_pending(), "it is not due");
    }
    let create = (processor() - begin).as_nanos() as f64 / CREATED as f64;

    let (late, processor_ms, switches) = rhythm(&boxed, &spawn).await;
    drop(waiting);

    // Due within a fifth of a second, once all have begun.
    let fired = Arc::new(Fired { count: AtomicUsize::new(0), of: pending, main: Mutex::new(None) });
    let started = Instant::now();
    let mut due = begun(Waker::from(Arc::clone(&fired)), |number| {
        Duration::from_micros(3_000_000 + (number as u64 * 7_919) % 200_000)
    });
    due.begin().await;
    assert!(started.elapsed() < Duration::from_millis(2_900), "the machine is too slow for this");
    let begin = processor();
    fired.all().await;
    let fire = (processor() - begin).as_nanos() as f64 / pending as f64;
    Figures { create, fire, switches, processor: processor_ms, late }
}

/// 51 tasks sleep for 5 ms, 50 times each: how late at the median, processor time, switches.
async fn rhythm(
    boxed: &(impl Fn(Duration) -> Task + Clone + 'static),
    spawn: &impl Fn(Task),
) -> (f64, f64, f64) {
    let late = Rc::new(RefCell::new(Vec::with_capacity(TASKS * SLEEPS)));
    let (begin, before) = (processor(), switches());
    for _ in 0..TASKS {
        let (boxed, late) = (boxed.clone(), Rc::clone(&late));
        spawn(Box::pin(async move {
            for _ in 0..SLEEPS {
                let due = Instant::now() + PERIOD;
                boxed(PERIOD).await;
                let after = Instant::now().checked_duration_since(due).expect("no sleep ends early");
                late.borrow_mut().push(after.as_secs_f64() * 1e3);
            }
        }));
    }
    while late.borrow().len() < TASKS * SLEEPS {
        boxed(PERIOD * 4).await;
    }
    let (used, switched) = (processor() - begin, switches() - before);
    let late = median(late.take());
    (late, used.as_secs_f64() * 1e3, switched as f64 * 1e3 / (TASKS * SLEEPS) as f64)
}

/// Sleeps that have been polled, all with one waker.
struct Begun {
    sleeps: Vec<Task>,
    waker: Waker,
}

impl Begun {
    /// Within a task: a runtime's own sleeps look for their runtime.
    async fn begin(&mut self) {
        let context = &mut Context::from_waker(&self.waker);
        for sleep in &mut self.sleeps {
            assert!(sleep.as_mut().poll(context).is_pending(), "it is not due");
        }
    }
}

/// Counts wakes, and wakes the main task at the last.
struct Fired {
    count: AtomicUsize,
    of: usize,
    main: Mutex<Option<Waker>>,
}

impl Fired {
    async fn all(&self) {
        std::future::poll_fn(|context| {
            *self.main.lock().expect("no panic") = Some(context.waker().clone());
            // Ordering: Relaxed, there is one thread.
            if self.count.load(Ordering::Relaxed) == self.of { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Wake for Fired {
    fn wake(self: Arc<Self>) {
        // Ordering: Relaxed, there is one thread.
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.of {
            self.main.lock().expect("no panic").take().expect("it waits").wake();
        }
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_unstable_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The thread's processor time. (That of `/proc` goes up by 4 ms at a time while the thread runs.)
fn processor() -> Duration {
    ThreadTime::now().as_duration()
}

/// The thread's voluntary context switches.
fn switches() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).expect("a number")
}

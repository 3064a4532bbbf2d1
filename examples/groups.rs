//! A server's connections, each with an idle timeout, a ping and a limit on the task that serves
//! it. All of a connection's timers are in one group, so closing the connection is one drop.
//!
//! `cargo run --example groups`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::executor::LocalPool;
use futures::task::LocalSpawnExt;
use shardwheel::{Group, ManualClock, Timer, TimerKey};

const CONNECTIONS: usize = 10_000;
const IDLE: Duration = Duration::from_secs(60);
const PING: Duration = Duration::from_secs(20);
const PONG: Duration = Duration::from_secs(5);

/// What the timers of all connections count.
#[derive(Default)]
struct Counts {
    pings: AtomicUsize,
    lost: AtomicUsize,
    idle: AtomicUsize,
    served: AtomicUsize,
}

/// Adds one to a count. Ordering: Relaxed, only the numbers matter.
fn count(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

struct Connection {
    timers: Group,
    idle: TimerKey,
}

impl Connection {
    fn open(timer: &Timer, counts: &Arc<Counts>) -> Result<Self, Box<dyn Error>> {
        let timers = timer.group();
        let shared = Arc::clone(counts);
        let idle = timers.schedule_after(IDLE, move || count(&shared.idle))?;

        // The ping starts another member of the group. It holds a weak handle: a `Group` in its own
        // recurring callback would keep the group.
        let (weak, shared) = (timers.downgrade(), Arc::clone(counts));
        timers.schedule_every(PING, move || {
            count(&shared.pings);
            let lost = Arc::clone(&shared);
            // An error here means that the connection was closed meanwhile.
            let _ = weak.upgrade().map(|timers| timers.schedule_after(PONG, move || count(&lost.lost)));
        })?;
        Ok(Self { timers, idle })
    }

    /// A packet has come. The timer stays a member.
    fn receive(&mut self, timer: &Timer) {
        if let Some(key) = timer.reschedule_after(self.idle, IDLE) {
            self.idle = key;
        }
    }

    /// Serves the connection until it is closed, a minute at a time.
    async fn serve(sleeps: Timer, counts: Arc<Counts>) {
        while sleeps.sleep(Duration::from_secs(60)).await.is_ok() {}
        count(&counts.served);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build()?;
    let (counts, mut tasks) = (Arc::<Counts>::default(), LocalPool::new());

    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let connection = Connection::open(&timer, &counts)?;
        // A handle of the timer within the group, which does not keep the group.
        let sleeps = Timer::clone(&connection.timers);
        tasks.spawner().spawn_local(Connection::serve(sleeps, Arc::clone(&counts)))?;
        connections.push(connection);
    }
    tasks.run_until_stalled();
    let of_one = connections[0].timers.len();
    println!("{CONNECTIONS} connections: {of_one} members each, {} timers pending", timer.stats().pending);

    clock.advance(Duration::from_secs(50));
    connections.iter_mut().for_each(|connection| connection.receive(&timer));
    clock.advance(Duration::from_secs(50));
    tasks.run_until_stalled();
    println!(
        "after 100 s: {} pings, {} idle",
        counts.pings.load(Ordering::Relaxed),
        counts.idle.load(Ordering::Relaxed)
    );

    let first = connections.swap_remove(0);
    println!("one connection ends its {} timers, and could go on", first.timers.cancel_all());
    let begin = Instant::now();
    drop((first, connections));
    println!(
        "all others are closed in {} ms: {} timers pending",
        begin.elapsed().as_millis(),
        timer.stats().pending
    );

    tasks.run_until_stalled();
    clock.advance(Duration::from_secs(3600));
    println!(
        "{} tasks have ended, {} pings had no answer",
        counts.served.load(Ordering::Relaxed),
        counts.lost.load(Ordering::Relaxed)
    );
    Ok(())
}

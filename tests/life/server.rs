//! What a server does with one timer.

use std::thread;
use std::time::Duration;

use shardwheel::{ManualClock, Stats, Tick, Timer, TimerKey};

use crate::queue::Queue;
use crate::support::ledger::{End, Ledger};
use crate::support::{Count, HOUR, ms};

/// Connections that are open at once, at most.
const CONNECTIONS: usize = 2_000;

/// Nodes that a night may leave memory for: four segments of each shard.
const NODES_OF_A_NIGHT: usize = 2 * 4 * (2 << 20) / 64;

/// A connection that is closed if nothing comes for `idle` milliseconds.
struct Connection {
    /// The entry of its timer, in the ledger of the day on which it came.
    id: usize,
    ledger: Ledger,
    key: TimerKey,
    idle: Tick,
    due: Tick,
}

pub(crate) struct Server {
    timer: Timer,
    clock: ManualClock,
    connections: Vec<Connection>,
    queue: Queue,
    hourly: Count,
    /// One of each day whose timers have not all ended; today's is the last.
    ledgers: Vec<Ledger>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::new();
        let builder = Timer::builder().clock(clock.clone()).shards(2);
        let timer = builder.build().expect("settings within their limits");
        let (hourly, queue) = (Count::default(), Queue::new(&timer));
        let runs = hourly.clone();
        timer.schedule_every(HOUR, move || runs.one()).expect("it is open");
        Self { timer, clock, connections: Vec::new(), queue, hourly, ledgers: vec![Ledger::default()] }
    }

    /// The millisecond on the clock.
    fn now(&self) -> Tick {
        self.clock.elapsed().as_millis() as Tick
    }

    /// What happens in a minute.
    pub(crate) fn act(&mut self, random: &mut fastrand::Rng) {
        for _ in 0..random.usize(..8).min(CONNECTIONS - self.connections.len()) {
            let connection = self.schedule(random.u64(30_000..900_000));
            self.connections.push(connection);
        }
        for _ in 0..random.usize(..24).min(self.connections.len()) {
            self.receive(random);
        }
        self.queue.act(self.now(), random);
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// A timer with an entry in today's ledger, in which its callback notes when it fires.
    fn schedule(&self, idle: Tick) -> Connection {
        let (due, ledger) = (self.now() + idle, self.ledgers.last().expect("today's").clone());
        let (payload, clock) = (ledger.payload_due(due), self.clock.clone());
        let id = payload.id();
        let fire = move || payload.fire_at(clock.elapsed().as_millis() as Tick);
        let key = self.timer.schedule_after(ms(idle), fire).expect("it is open");
        Connection { id, ledger, key, idle, due }
    }

    fn cancel(&self, connection: &Connection) -> bool {
        let is_cancelled = self.timer.cancel(connection.key);
        if is_cancelled {
            connection.ledger.note(connection.id, End::Cancelled);
        }
        is_cancelled
    }

    /// A packet of some connection comes, or its end.
    fn receive(&mut self, random: &mut fastrand::Rng) {
        if self.connections.is_empty() {
            return;
        }
        let (nth, now) = (random.usize(..self.connections.len()), self.now());
        let connection = &self.connections[nth];
        let is_open = connection.due > now;
        assert_eq!(self.timer.is_pending(connection.key), is_open);
        if random.u32(..8) == 0 {
            assert_eq!(self.cancel(connection), is_open);
            self.connections.swap_remove(nth);
            return;
        }
        let moved = self.timer.reschedule_after(connection.key, ms(connection.idle));
        assert_eq!(moved.is_some(), is_open, "a timer that has not fired can be put off");
        let Some(key) = moved else { return drop(self.connections.swap_remove(nth)) };
        let connection = &mut self.connections[nth];
        (connection.key, connection.due) = (key, now + connection.idle);
        connection.ledger.due(connection.id, connection.due);
    }

    /// Threads come, schedule and cancel, and go; some timers outlive them.
    pub(crate) fn run_threads(&self, random: &mut fastrand::Rng) {
        let work = |mut random: fastrand::Rng| {
            for _ in 0..200 {
                let timer = self.schedule(random.u64(1..48 * 3_600_000));
                assert!(random.u32(..4) == 0 || self.cancel(&timer));
            }
        };
        thread::scope(|scope| {
            for random in [(); 4].map(|()| random.fork()) {
                scope.spawn(|| work(random));
            }
        });
    }

    pub(crate) fn stats(&self) -> Stats {
        self.timer.stats()
    }

    /// Callbacks without an outcome, by the ledgers.
    fn pending(&self) -> usize {
        self.ledgers.iter().map(Ledger::living).sum()
    }

    /// Everything balances; and a ledger whose timers have all ended is closed.
    pub(crate) fn end_day(&mut self, day: u64) {
        let stats = self.stats();
        let ended = stats.fired + stats.cancelled + stats.handed_back;
        assert_eq!(stats.scheduled + stats.recurred, ended + stats.pending as u64, "{stats:?}");
        // The values that have expired have no timers any more.
        self.queue.receive(self.now());
        assert_eq!(stats.pending, self.pending() + self.queue.len() + 1, "{stats:?}");
        assert_eq!(self.hourly.get() as u64, 24 * day);
        assert_eq!(stats.panics, 0);
        assert!(stats.node_capacity <= NODES_OF_A_NIGHT, "{} nodes", stats.node_capacity);
        self.ledgers.retain(|ledger| {
            let is_closed = ledger.living() == 0;
            if is_closed {
                ledger.check_exact();
            }
            !is_closed
        });
        self.ledgers.push(Ledger::default());
    }

    /// The timer ends, and hands back what is pending.
    pub(crate) fn end(self) {
        let pending = self.pending();
        let unfired = self.timer.shutdown();
        // The hourly job is a callback, too.
        assert_eq!(unfired.len(), pending + 1);
        drop(unfired);
        let dropped: Option<usize> = self.ledgers.iter().map(Ledger::dropped_without_an_end).sum();
        assert_eq!(dropped, Some(pending), "each timer has one outcome");
        self.queue.end();
        assert_eq!(self.timer.stats().pending, 0);
    }
}

//! What a thread counts, and what it has. Each number has one writer, so it needs no atomic
//! addition; INFO and the metrics read the numbers of all threads, as they stand.

pub(crate) mod info;
pub(crate) mod metrics;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::commands::table::COMMANDS;

/// Of this many commands, one is timed: reading a clock twice takes as long as a small command.
const SAMPLE: usize = 16;

/// Lists what each thread has a number of, with its kind and its name in INFO and in the metrics.
macro_rules! figures {
    ($($kind:ident $figure:ident $name:literal,)*) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Figure { $($figure),* }

        const FIGURES: &[(Figure, &str, &str)] = &[$((Figure::$figure, stringify!($kind), $name)),*];
    };
}

figures! {
    gauge Keys "keys",
    gauge ExpiringKeys "expiring_keys",
    gauge KeyBytes "key_bytes",
    gauge BufferBytes "buffer_bytes",
    gauge Clients "clients",
    gauge Patterns "pubsub_patterns",
    counter Expired "expired_keys",
    counter Hits "keyspace_hits",
    counter Misses "keyspace_misses",
    counter Connections "total_connections_received",
    counter Refused "rejected_connections",
    counter IdleClosed "idle_closed",
    counter SlowClosed "slow_closed",
    counter ProtocolErrors "protocol_errors",
    counter Errors "total_error_replies",
    counter BytesIn "total_net_input_bytes",
    counter BytesOut "total_net_output_bytes",
    counter Forwarded "forwarded_commands",
}

/// What is counted of each command. The nanoseconds are an estimate: see `SAMPLE`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    Calls,
    Nanos,
    Rejected,
    Failed,
}

/// A thread's numbers, in memory that no other thread writes to.
#[repr(align(128))]
pub(crate) struct Stats {
    figures: [AtomicU64; FIGURES.len()],
    commands: Box<[[AtomicU64; 4]]>,
}

impl Default for Stats {
    fn default() -> Self {
        Self { figures: Default::default(), commands: COMMANDS.iter().map(|_| Default::default()).collect() }
    }
}

// Ordering: Relaxed in this file; only the numbers matter. What a client can know of them from a
// reply is older than the message, or the write to a socket, that brought the reply.

fn add(number: &AtomicU64, by: u64) {
    number.store(number.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

impl Stats {
    pub(crate) fn add(&self, figure: Figure, by: usize) {
        add(&self.figures[figure as usize], by as u64);
    }

    pub(crate) fn sub(&self, figure: Figure, by: usize) {
        add(&self.figures[figure as usize], (by as u64).wrapping_neg());
    }

    pub(crate) fn set(&self, figure: Figure, to: usize) {
        self.figures[figure as usize].store(to as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, figure: Figure) -> usize {
        self.figures[figure as usize].load(Ordering::Relaxed) as usize
    }

    pub(crate) fn memory(&self) -> usize {
        self.get(Figure::KeyBytes) + self.get(Figure::BufferBytes)
    }

    pub(crate) fn count(&self, command: u16, what: Of) {
        add(&self.commands[usize::from(command)][what as usize], 1);
    }

    /// A command, or a part of one, begins. Returns the time if it is timed.
    pub(crate) fn start(&self) -> Option<Instant> {
        (fastrand::usize(..SAMPLE) == 0).then(Instant::now)
    }

    pub(crate) fn stop(&self, start: Option<Instant>, command: u16) {
        if let Some(start) = start {
            let nanos = &self.commands[usize::from(command)][Of::Nanos as usize];
            add(nanos, start.elapsed().as_nanos() as u64 * SAMPLE as u64);
        }
    }
}

fn sum(all: &[Arc<Stats>], figure: Figure) -> usize {
    all.iter().map(|stats| stats.get(figure)).sum()
}

/// The commands that clients have tried, with what all threads have counted of each.
fn commands(all: &[Arc<Stats>]) -> impl Iterator<Item = (&'static str, [u64; 4])> {
    let tried = COMMANDS.iter().enumerate().map(move |(number, command)| {
        let count = |stats: &Stats, what: usize| stats.commands[number][what].load(Ordering::Relaxed);
        (command.name, [0, 1, 2, 3].map(|what| all.iter().map(|stats| count(stats, what)).sum()))
    });
    tried.filter(|(_, counts): &(_, [u64; 4])| counts[Of::Calls as usize] + counts[Of::Rejected as usize] > 0)
}

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

/// Lists what there is a number of in each thread: a kind, a name in the program, in metrics and in
/// INFO (if it is there), and what it is.
macro_rules! figures {
    ($($kind:ident $figure:ident $name:literal $info:literal $help:literal,)*) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Figure { $($figure),* }

        /// Each figure, its name in INFO, and for metrics its kind, its name and what it is.
        const FIGURES: &[(Figure, &str, [&str; 3])] =
            &[$((Figure::$figure, $info, [stringify!($kind), $name, $help])),*];
    };
}

figures! {
    gauge Keys "keys" "" "Keys",
    gauge ExpiringKeys "expiring_keys" "" "Keys with a time to live",
    gauge KeyBytes "key_bytes" "" "Memory of keys and values, estimated",
    gauge BufferBytes "buffer_bytes" "" "Memory of the buffers of clients",
    counter Expired "expired_keys" "expired_keys" "Keys that have expired",
    counter Hits "hits" "keyspace_hits" "Lookups that found a key",
    counter Misses "misses" "keyspace_misses" "Lookups that found none",
    counter Connections "connections" "total_connections_received" "Connections served",
    counter Refused "refused_connections" "rejected_connections" "Connections beyond the limit of clients",
    counter IdleClosed "idle_closed" "idle_closed" "Connections closed because they were idle",
    counter SlowClosed "slow_closed" "slow_closed" "Subscribers cut off because they did not read",
    counter ProtocolErrors "protocol_errors" "protocol_errors" "Connections ended for what the client sent",
    counter Errors "errors" "total_error_replies" "Replies that were errors",
    counter BytesIn "bytes_in" "total_net_input_bytes" "Bytes received",
    counter BytesOut "bytes_out" "total_net_output_bytes" "Bytes sent",
    counter Forwarded "forwarded" "forwarded_commands" "Commands, and parts of them, sent to another thread",
    counter Rounds "rounds" "eventloop_cycles" "Rounds of the event loops",
    counter Parts "parts" "" "Commands, and parts of them, that this thread ran",
}

/// What is counted of each command: calls, nanoseconds (an estimate: see `SAMPLE`), calls that were
/// refused, and calls that replied an error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    Calls,
    Nanos,
    Rejected,
    Failed,
}

/// A thread's numbers, in memory that no other thread writes to.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Stats {
    figures: [AtomicU64; FIGURES.len()],
    commands: Box<[[AtomicU64; 4]]>,
}

impl Default for Stats {
    fn default() -> Self {
        let commands = COMMANDS.iter().map(|_| Default::default()).collect();
        Self { figures: [const { AtomicU64::new(0) }; FIGURES.len()], commands }
    }
}

/// Adds to a number that only this thread writes.
fn add(number: &AtomicU64, by: u64) {
    // Ordering: Relaxed, only the number matters. What a client can know of it from a reply is older
    // than the message, or the write to a socket, that brought the reply.
    number.store(number.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

impl Stats {
    pub(crate) fn add(&self, figure: Figure, by: usize) {
        add(&self.figures[figure as usize], by as u64);
    }

    pub(crate) fn sub(&self, figure: Figure, by: usize) {
        add(&self.figures[figure as usize], (by as u64).wrapping_neg());
    }

    pub(crate) fn get(&self, figure: Figure) -> usize {
        // Ordering: Relaxed, only the number matters.
        self.figures[figure as usize].load(Ordering::Relaxed) as usize
    }

    /// The memory that counts: of keys and of buffers.
    pub(crate) fn memory(&self) -> usize {
        self.get(Figure::KeyBytes) + self.get(Figure::BufferBytes)
    }

    pub(crate) fn count(&self, command: u16, what: Of) {
        add(&self.commands[usize::from(command)][what as usize], 1);
    }

    /// Counts a command, or a part of one, that begins. The time if it is one that is timed.
    pub(crate) fn start(&self) -> Option<Instant> {
        self.add(Figure::Parts, 1);
        self.get(Figure::Parts).is_multiple_of(SAMPLE).then(Instant::now)
    }

    pub(crate) fn stop(&self, start: Option<Instant>, command: u16) {
        if let Some(start) = start {
            let nanos = &self.commands[usize::from(command)][Of::Nanos as usize];
            add(nanos, start.elapsed().as_nanos() as u64 * SAMPLE as u64);
        }
    }

    /// Starts all counts again: not what there is.
    pub(crate) fn reset(&self) {
        let counters = FIGURES.iter().filter(|(.., [kind, ..])| *kind == "counter");
        let counts = counters.map(|&(figure, ..)| &self.figures[figure as usize]);
        // Ordering: Relaxed, only the numbers matter.
        counts.chain(self.commands.as_flattened()).for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

/// The sum of a figure over all threads.
fn sum(all: &[Arc<Stats>], figure: Figure) -> usize {
    all.iter().map(|stats| stats.get(figure)).sum()
}

/// The commands that clients have tried, with what all threads have counted of each.
fn commands(all: &[Arc<Stats>]) -> impl Iterator<Item = (&'static str, [u64; 4])> {
    let tried = COMMANDS.iter().enumerate().map(move |(number, command)| {
        // Ordering: Relaxed, only the numbers matter.
        let count = |stats: &Stats, what: usize| stats.commands[number][what].load(Ordering::Relaxed);
        (command.name, [0, 1, 2, 3].map(|what| all.iter().map(|stats| count(stats, what)).sum()))
    });
    tried.filter(|(_, counts): &(_, [u64; 4])| counts[Of::Calls as usize] + counts[Of::Rejected as usize] > 0)
}

//! What a thread counts, and what it has. Each number has one writer, so it needs no atomic
//! addition; INFO reads the numbers of all threads, as they stand.

pub(crate) mod info;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What each thread has a number of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Figure {
    Keys,
    ExpiringKeys,
    KeyBytes,
    BufferBytes,
    // From here on, what has happened since the start.
    Commands,
    Expired,
    Hits,
    Misses,
    Connections,
    Refused,
    IdleClosed,
    SlowClosed,
    ProtocolErrors,
    Errors,
    BytesIn,
    BytesOut,
    Forwarded,
}

/// The names of what has happened in INFO.
const COUNTERS: [(Figure, &str); 13] = [
    (Figure::Commands, "total_commands_processed"),
    (Figure::Expired, "expired_keys"),
    (Figure::Hits, "keyspace_hits"),
    (Figure::Misses, "keyspace_misses"),
    (Figure::Connections, "total_connections_received"),
    (Figure::Refused, "rejected_connections"),
    (Figure::IdleClosed, "idle_closed"),
    (Figure::SlowClosed, "slow_closed"),
    (Figure::ProtocolErrors, "protocol_errors"),
    (Figure::Errors, "total_error_replies"),
    (Figure::BytesIn, "total_net_input_bytes"),
    (Figure::BytesOut, "total_net_output_bytes"),
    (Figure::Forwarded, "forwarded_commands"),
];

/// A thread's numbers, in memory that no other thread writes to.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Stats {
    figures: [AtomicU64; Figure::Forwarded as usize + 1],
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

    pub(crate) fn get(&self, figure: Figure) -> usize {
        self.figures[figure as usize].load(Ordering::Relaxed) as usize
    }

    pub(crate) fn memory(&self) -> usize {
        self.get(Figure::KeyBytes) + self.get(Figure::BufferBytes)
    }
}

fn sum(all: &[Arc<Stats>], figure: Figure) -> usize {
    all.iter().map(|stats| stats.get(figure)).sum()
}

//! What a thread counts. Only the thread itself writes its counts; others ask it for them.

pub(crate) mod info;
pub(crate) mod metrics;

use std::time::Instant;

use crate::commands::table::COMMANDS;
use crate::desk::Desk;
use crate::session::gather::Gather;

/// Of this many commands, one is timed: reading a clock twice takes as long as a small command.
const SAMPLE: u64 = 16;

/// What a thread counts besides commands; the names are in `FIGURES`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    Connections,
    Refused,
    IdleClosed,
    SlowClosed,
    ProtocolErrors,
    Errors,
    BytesIn,
    BytesOut,
    Forwarded,
    Rounds,
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

#[derive(Debug)]
pub(crate) struct Stats {
    pub(crate) counts: [u64; Count::Rounds as usize + 1],
    pub(crate) commands: Vec<[u64; 4]>,
    commands_run: u64,
}

impl Default for Stats {
    fn default() -> Self {
        Self { counts: Default::default(), commands: vec![[0; 4]; COMMANDS.len()], commands_run: 0 }
    }
}

impl Stats {
    pub(crate) fn add(&mut self, count: Count, number: u64) {
        self.counts[count as usize] += number;
    }

    pub(crate) fn add_of(&mut self, command: u16, what: Of, number: u64) {
        self.commands[usize::from(command)][what as usize] += number;
    }

    /// The start of a command, if it is one that is timed.
    pub(crate) fn start(&mut self) -> Option<Instant> {
        self.commands_run += 1;
        self.commands_run.is_multiple_of(SAMPLE).then(Instant::now)
    }

    pub(crate) fn stop(&mut self, start: Option<Instant>, command: u16) {
        if let Some(start) = start {
            self.add_of(command, Of::Nanos, start.elapsed().as_nanos() as u64 * SAMPLE);
        }
    }
}

/// The name for metrics, whether it only grows, what it is, and its name in the counts of INFO.
type Figure = (&'static str, bool, &'static str, &'static str);

pub(crate) const FIGURES: [Figure; 32] = [
    ("keys", false, "Keys", ""),
    ("expiring_keys", false, "Keys with a deadline", ""),
    ("key_bytes", false, "Memory of the keys, by the sizes of their parts", ""),
    ("buffer_bytes", false, "Memory of the buffers of clients", ""),
    ("subscribers", false, "Clients that have subscribed to a channel", "pubsub_clients"),
    ("channels", false, "Channels with a subscriber, counted in each thread", "pubsub_channels"),
    ("expired_keys_total", true, "Keys that have expired", "expired_keys"),
    ("hits_total", true, "Lookups that found a key", "keyspace_hits"),
    ("misses_total", true, "Lookups that found none", "keyspace_misses"),
    ("connections_total", true, "Connections accepted", "total_connections_received"),
    ("refused_connections_total", true, "Connections beyond the limit of clients", "rejected_connections"),
    ("idle_closed_total", true, "Connections closed because they were idle", "idle_closed"),
    ("slow_closed_total", true, "Subscribers cut off because they did not read", "slow_closed"),
    ("protocol_errors_total", true, "Connections ended for what the client sent", "protocol_errors"),
    ("errors_total", true, "Replies that were errors", "total_error_replies"),
    ("bytes_in_total", true, "Bytes received", "total_net_input_bytes"),
    ("bytes_out_total", true, "Bytes sent", "total_net_output_bytes"),
    ("forwarded_total", true, "Commands, and parts of them, that another thread ran", "forwarded_commands"),
    ("rounds_total", true, "Rounds of the event loops", "eventloop_cycles"),
    ("timers_scheduled_total", true, "Timers scheduled", "timers_scheduled"),
    ("timers_fired_total", true, "Timers fired", "timers_fired"),
    ("timers_cancelled_total", true, "Timers cancelled", "timers_cancelled"),
    ("timers_extended_total", true, "Timers put off in place", "timers_extended"),
    ("timers_moved_total", true, "Timers moved to another node", ""),
    ("timers_cascaded_total", true, "Nodes moved to a finer wheel", ""),
    ("timers_reused_total", true, "Timers put into a cancelled timer's node", ""),
    ("timers_swept_total", true, "Nodes of cancelled timers that a sweep unlinked", ""),
    ("timers_pending", false, "Timers pending", "timers_pending"),
    ("timer_dead_nodes", false, "Nodes of cancelled timers that are still linked", ""),
    ("timer_nodes", false, "Nodes in use", ""),
    ("timer_node_capacity", false, "Nodes for which memory is mapped", ""),
    ("timer_wheels", false, "Wheels in use", ""),
];

/// All counts of a thread at one moment, or of all threads, as numbers that can be sent and added:
/// the figures, and then four numbers for each command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot(pub(crate) Vec<u64>);

impl Snapshot {
    pub(crate) fn of(desk: &Desk) -> Self {
        let (keys, timers) = (&desk.keyspace, desk.timers.stats());
        let subscribers = desk.sessions.iter().filter(|(_, session)| session.has_subscribed()).count();
        let store = &keys.store;
        let sizes = [store.slab.len(), store.expiring, store.bytes, desk.buffer_bytes, subscribers];
        let mut all: Vec<_> = sizes.into_iter().chain([desk.channels.len()]).map(|it| it as u64).collect();
        all.extend([keys.counts.expired, keys.counts.hits, keys.counts.misses]);
        all.extend(desk.stats.counts);
        all.extend([timers.scheduled, timers.fired, timers.cancelled, timers.extended, timers.moved]);
        all.extend([timers.cascaded, timers.reused, timers.swept]);
        let nodes = [timers.pending, timers.dead_nodes, timers.nodes, timers.node_capacity, timers.wheels];
        all.extend(nodes.map(|count| count as u64));
        debug_assert_eq!(all.len(), FIGURES.len());
        all.extend(desk.stats.commands.iter().flatten());
        Self(all)
    }

    /// Writes it as a thread's part of a reply.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.0.iter().flat_map(|number| number.to_le_bytes()));
    }

    /// Each thread's part.
    pub(crate) fn read_all(gather: &Gather) -> Vec<Self> {
        let read = |part: &Vec<u8>| part.as_chunks().0.iter().copied().map(u64::from_le_bytes).collect();
        gather.parts.iter().map(|part| Self(read(part))).collect()
    }

    /// The sum of all threads.
    pub(crate) fn sum(parts: &[Self]) -> Self {
        let numbers = FIGURES.len() + COMMANDS.len() * 4;
        Self((0..numbers).map(|at| parts.iter().map(|part| part.0[at]).sum()).collect())
    }

    /// A figure by its name.
    pub(crate) fn get(&self, figure: &str) -> u64 {
        FIGURES.iter().zip(&self.0).find(|((name, ..), _)| *name == figure).map_or(0, |(_, &number)| number)
    }

    /// The commands that clients have tried, with their numbers.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (&'static str, [u64; 4])> {
        let numbers = self.0[FIGURES.len()..].as_chunks().0.iter().copied();
        let all = COMMANDS.iter().map(|command| command.name).zip(numbers);
        all.filter(|(_, numbers)| numbers[Of::Calls as usize] + numbers[Of::Rejected as usize] > 0)
    }
}

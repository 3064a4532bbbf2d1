//! Metrics in the format of Prometheus, over HTTP, served by a thread of their own.

use std::fmt::{Display, Write as _};
use std::io::{self, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use shardwheel::ShardStats;

use crate::shared::Shared;
use crate::stats::info::process;
use crate::stats::{FIGURES, commands};

/// The longest request, and how long a client may take to send it and to take the response.
const MAX_REQUEST: usize = 16 * 1024;
const PATIENCE: Duration = Duration::from_secs(1);
const PREFIX: &str = "shardwheel_cache";

/// Answers one client after the other.
pub(crate) fn serve(listener: &TcpListener, shared: &Shared) {
    for stream in listener.incoming() {
        // A client that does not take its response, or asks for none, gets none.
        let _ = stream.and_then(|stream| answer(stream, shared));
    }
}

/// Whatever the path is that a client asks for, it gets the metrics.
fn answer(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let (deadline, mut request, mut buffer) = (Instant::now() + PATIENCE, Vec::new(), [0; 4096]);
    stream.set_write_timeout(Some(PATIENCE))?;
    while request.len() < MAX_REQUEST && !request.ends_with(b"\r\n\r\n") {
        // No time left is an error.
        stream.set_read_timeout(Some(deadline.saturating_duration_since(Instant::now())))?;
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            len => request.extend_from_slice(&buffer[..len]),
        }
    }
    let text = text(shared);
    let kind = "Content-Type: text/plain; version=0.0.4\r\nConnection: close";
    write!(stream, "HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

/// Collects samples.
#[derive(Default)]
struct Text(String);

impl Text {
    /// Adds a metric with its samples: labels and values.
    fn add<L: Display, V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) {
        // A string has room for whatever is written to it.
        let _ = write!(self.0, "# HELP {PREFIX}_{name} {help}.\n# TYPE {PREFIX}_{name} {kind}\n");
        samples
            .into_iter()
            .for_each(|(labels, value)| _ = writeln!(self.0, "{PREFIX}_{name}{labels} {value}"));
    }
}

fn text(shared: &Shared) -> String {
    let mut text = Text::default();
    let threads = || (0..shared.threads()).map(|thread| format!("{{thread=\"{thread}\"}}"));
    for &(figure, name, _, kind, help) in FIGURES {
        text.add(name, kind, help, threads().zip(shared.stats.iter().map(|stats| stats.get(figure))));
    }
    text.add(
        "channels",
        "gauge",
        "Channels with a subscriber",
        threads().zip((0..).map(|it| shared.channels(it))),
    );
    let timers: Vec<_> = shared.timers.iter().map(|shard| timers(&shard.stats())).collect();
    for (at, (name, kind, help, _)) in timers[0].into_iter().enumerate() {
        text.add(name, kind, help, threads().zip(timers.iter().map(|figures| figures[at].3)));
    }
    let [system, user, resident] = process();
    let uptime = shared.clock.tick() as f64 / 1e3;
    text.add("clients", "gauge", "Open connections", [("", shared.clients())]);
    text.add("resident_bytes", "gauge", "Memory of the process", [("", resident)]);
    text.add(
        "system_seconds_total",
        "counter",
        "Processor time of the process in the kernel",
        [("", system)],
    );
    text.add("user_seconds_total", "counter", "Processor time of the process in the program", [("", user)]);
    text.add("uptime_seconds", "gauge", "Time since the start", [("", uptime)]);
    let columns = [
        ("commands_total", "Commands run", 1.0),
        ("command_seconds_total", "Time spent in commands, estimated from samples", 1e9),
        ("commands_rejected_total", "Commands not run", 1.0),
        ("commands_failed_total", "Commands that replied an error", 1.0),
    ];
    for (column, (name, help, unit)) in columns.into_iter().enumerate() {
        let samples = commands(&shared.stats)
            .map(|(command, counts)| (format!("{{command=\"{command}\"}}"), counts[column] as f64 / unit));
        text.add(name, "counter", help, samples);
    }
    text.0
}

/// What a shard says of itself.
fn timers(stats: &ShardStats) -> [(&'static str, &'static str, &'static str, u64); 13] {
    [
        ("timers_scheduled_total", "counter", "Timers scheduled", stats.scheduled),
        ("timers_fired_total", "counter", "Timers fired", stats.fired),
        ("timers_cancelled_total", "counter", "Timers cancelled", stats.cancelled),
        ("timers_extended_total", "counter", "Timers put off in place", stats.extended),
        ("timers_moved_total", "counter", "Timers moved to another node", stats.moved),
        ("timers_cascaded_total", "counter", "Nodes moved to a finer wheel", stats.cascaded),
        ("timers_reused_total", "counter", "Timers put into a cancelled timer's node", stats.reused),
        ("timers_swept_total", "counter", "Nodes of cancelled timers that a sweep unlinked", stats.swept),
        ("timers_pending", "gauge", "Timers pending", stats.pending as u64),
        (
            "timer_dead_nodes",
            "gauge",
            "Nodes of cancelled timers that are still linked",
            stats.dead_nodes as u64,
        ),
        ("timer_nodes", "gauge", "Nodes in use", stats.nodes as u64),
        ("timer_node_capacity", "gauge", "Nodes for which memory is mapped", stats.node_capacity as u64),
        ("timer_wheels", "gauge", "Wheels in use", stats.wheels as u64),
    ]
}

//! Metrics in the format of Prometheus, over HTTP, served by a thread of their own.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use shardwheel::ShardStats;

use super::info::process;
use super::*;
use crate::shared::Shared;

/// The longest request, and how long a client may take to send it and to take the response.
const MAX_REQUEST: usize = 16 * 1024;
const PATIENCE: Duration = Duration::from_secs(1);
/// After a failure, the next client is answered after this.
const PAUSE: Duration = Duration::from_millis(1);
const PREFIX: &str = "shardwheel_cache";

/// Answers one client after the other.
pub(crate) fn serve(listener: &TcpListener, shared: &Shared) {
    for stream in listener.incoming() {
        // The client has left, or asks for nothing, or the system has no descriptor for it.
        if stream.and_then(|stream| answer(stream, shared)).is_err() {
            thread::sleep(PAUSE);
        }
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

/// One metric with its samples: labels and values. The name of a counter ends with `_total`.
fn metric<V: Display>([kind, name, help]: [&str; 3], samples: impl Iterator<Item = (String, V)>) -> String {
    let name = format!("{PREFIX}_{name}{}", if kind == "counter" { "_total" } else { "" });
    let head = format!("# HELP {name} {help}.\n# TYPE {name} {kind}\n");
    samples.fold(head, |text, (labels, value)| text + &format!("{name}{labels} {value}\n"))
}

fn text(shared: &Shared) -> String {
    let threads = || (0..shared.threads()).map(|thread| format!("{{thread=\"{thread}\"}}"));
    let mut text = String::new();
    for &(figure, _, about) in FIGURES {
        text += &metric(about, threads().zip(shared.stats.iter().map(|stats| stats.get(figure))));
    }
    let shards: Vec<_> = shared.timers.iter().map(|shard| timers(&shard.stats())).collect();
    for (at, (about, _)) in shards[0].into_iter().enumerate() {
        text += &metric(about, threads().zip(shards.iter().map(|shard| shard[at].1)));
    }
    let [system, user, resident] = process();
    let (clients, uptime) = (shared.clients() as f64, shared.clock.tick() as f64 / 1e3);
    for (about, value) in [
        (["gauge", "clients", "Open connections"], clients),
        (["gauge", "resident_bytes", "Memory of the process"], resident),
        (["gauge", "uptime_seconds", "Time since the start"], uptime),
        (["counter", "system_seconds", "Processor time of the process in the kernel"], system),
        (["counter", "user_seconds", "Processor time of the process in the program"], user),
    ] {
        text += &metric(about, std::iter::once((String::new(), value)));
    }
    for (column, name, help, unit) in [
        (Of::Calls, "commands", "Commands run", 1.0),
        (Of::Nanos, "command_seconds", "Time spent in commands, estimated from samples", 1e9),
        (Of::Rejected, "commands_rejected", "Commands not run", 1.0),
        (Of::Failed, "commands_failed", "Commands that replied an error", 1.0),
    ] {
        let samples = commands(&shared.stats).map(|(command, counts)| {
            (format!("{{command=\"{command}\"}}"), counts[column as usize] as f64 / unit)
        });
        text += &metric(["counter", name, help], samples);
    }
    text
}

/// Lists what a shard of timers counts: the kind, the name, what it is, and the number.
macro_rules! shard {
    ($stats:ident: $($kind:ident $field:ident $help:literal,)*) => {
        [$(([stringify!($kind), concat!("timers_", stringify!($field)), $help], $stats.$field as u64)),*]
    };
}

fn timers(stats: &ShardStats) -> [([&'static str; 3], u64); 13] {
    shard! { stats:
        counter scheduled "Timers scheduled",
        counter fired "Timers fired",
        counter cancelled "Timers cancelled",
        counter extended "Timers put off in place",
        counter moved "Timers moved to another node",
        counter cascaded "Nodes moved to a finer wheel",
        counter reused "Timers put into a cancelled timer's node",
        counter swept "Nodes of cancelled timers that a sweep unlinked",
        gauge pending "Timers pending",
        gauge dead_nodes "Nodes of cancelled timers that are still linked",
        gauge nodes "Nodes in use",
        gauge node_capacity "Nodes for which memory is mapped",
        gauge wheels "Wheels in use",
    }
}

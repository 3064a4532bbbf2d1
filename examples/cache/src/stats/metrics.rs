//! Metrics in the format of Prometheus, over HTTP, served by threads of their own.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use shardwheel::ShardStats;

use super::*;
use crate::shared::Shared;

/// The longest request, and how long a client may take to send it and to take the response.
const MAX_REQUEST: usize = 16 * 1024;
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);
/// Clients that are served at once, so that one that is stuck keeps no other waiting.
const AT_ONCE: usize = 8;
const PREFIX: &str = "shardwheel_cache";

pub(crate) fn serve(listener: &TcpListener, shared: &Shared) {
    let serve_one_by_one = || {
        for stream in listener.incoming() {
            // The client has left, or asks for nothing, or the system has no descriptor for it.
            if stream.and_then(|stream| answer(stream, shared)).is_err() {
                thread::sleep(PAUSE);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(serve_one_by_one);
        }
    });
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

/// A metric with its samples. The names of counters end in `_total`, where INFO's may begin with it.
fn metric(kind: &str, name: &str, label: &str, samples: impl Iterator<Item = (String, f64)>) -> String {
    let (name, end) = (name.trim_start_matches("total_"), if kind == "counter" { "_total" } else { "" });
    let name = format!("{PREFIX}_{name}{end}");
    let head = format!("# TYPE {name} {kind}\n");
    samples.fold(head, |text, (of, value)| text + &format!("{name}{{{label}=\"{of}\"}} {value}\n"))
}

fn text(shared: &Shared) -> String {
    let threads = || (0..shared.threads()).map(|thread| thread.to_string());
    let mut text = String::new();
    for &(figure, kind, name) in FIGURES {
        let values = shared.stats.iter().map(|stats| stats.get(figure) as f64);
        text += &metric(kind, name, "thread", threads().zip(values));
    }
    let shards: Vec<_> = shared.timers.iter().map(|shard| timers(&shard.stats())).collect();
    for (at, (kind, name, _)) in shards[0].into_iter().enumerate() {
        text += &metric(kind, name, "thread", threads().zip(shards.iter().map(|shard| shard[at].2 as f64)));
    }
    for (column, name, unit) in [
        (Of::Calls, "commands", 1.0),
        (Of::Nanos, "command_seconds", 1e9),
        (Of::Rejected, "commands_rejected", 1.0),
        (Of::Failed, "commands_failed", 1.0),
    ] {
        let value = |counts: [u64; 4]| counts[column as usize] as f64 / unit;
        let samples = commands(&shared.stats).map(|(command, counts)| (command.into(), value(counts)));
        text += &metric("counter", name, "command", samples);
    }
    text
}

fn timers(stats: &ShardStats) -> [(&'static str, &'static str, u64); 6] {
    [
        ("counter", "timers_scheduled", stats.scheduled),
        ("counter", "timers_fired", stats.fired),
        ("counter", "timers_cancelled", stats.cancelled),
        ("counter", "timers_extended", stats.extended),
        ("gauge", "timers_pending", stats.pending as u64),
        ("gauge", "timers_nodes", stats.nodes as u64),
    ]
}

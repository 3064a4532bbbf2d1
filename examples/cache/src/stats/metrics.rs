//! Metrics in the format of Prometheus, over HTTP: each figure of each thread.

use std::fmt::{Result, Write};

use crate::desk::Desk;
use crate::session::gather::Gather;
use crate::stats::info::{processor_time, resident};
use crate::stats::{FIGURES, Snapshot};

/// The longest request.
pub(crate) const MAX_REQUEST: usize = 16 * 1024;
const PREFIX: &str = "shardwheel_cache";

/// Whether a request has come to its end.
pub(crate) fn is_complete(request: &[u8]) -> bool {
    request.windows(4).any(|window| window == b"\r\n\r\n")
}

/// Writes the response.
pub(crate) fn write(desk: &Desk, gather: &Gather, out: &mut Vec<u8>) {
    let (parts, mut text) = (Snapshot::read_all(gather), String::new());
    // A string has room for whatever is written to it.
    let _ = threads(&parts, &mut text).and_then(|()| process(desk, &parts, &mut text));
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\nContent-Length:";
    out.extend_from_slice(format!("{head} {}\r\n\r\n{text}", text.len()).as_bytes());
}

fn describe(text: &mut String, name: &str, grows: bool, help: &str) -> Result {
    let kind = if grows { "counter" } else { "gauge" };
    write!(text, "# HELP {PREFIX}_{name} {help}.\n# TYPE {PREFIX}_{name} {kind}\n")
}

fn threads(parts: &[Snapshot], text: &mut String) -> Result {
    FIGURES.into_iter().enumerate().try_for_each(|(figure, (name, grows, help, _))| {
        describe(text, name, grows, help)?;
        let mut each = parts.iter().enumerate();
        each.try_for_each(|(thread, all)| {
            writeln!(text, "{PREFIX}_{name}{{thread=\"{thread}\"}} {}", all.0[figure])
        })
    })
}

fn process(desk: &Desk, parts: &[Snapshot], text: &mut String) -> Result {
    let (system, user) = processor_time();
    let uptime = desk.keyspace.time.tick() as f64 / 1e3;
    let figures = [
        ("clients", false, "Open connections", desk.shared.open_clients() as f64),
        ("resident_bytes", false, "Memory of the process", resident() as f64),
        ("system_seconds_total", true, "Processor time of the process in the kernel", system),
        ("user_seconds_total", true, "Processor time of the process in the program", user),
        ("uptime_seconds", false, "Time since the start", uptime),
    ];
    for (name, grows, help, value) in figures {
        describe(text, name, grows, help)?;
        writeln!(text, "{PREFIX}_{name} {value}")?;
    }
    commands(&Snapshot::sum(parts), text)
}

fn commands(all: &Snapshot, text: &mut String) -> Result {
    let columns = [
        ("commands_total", "Commands run", 1.0),
        ("command_seconds_total", "Time spent in commands, estimated from samples", 1e9),
        ("commands_rejected_total", "Commands not run", 1.0),
        ("commands_failed_total", "Commands that replied an error", 1.0),
    ];
    for (column, (name, help, unit)) in columns.into_iter().enumerate() {
        describe(text, name, true, help)?;
        for (command, numbers) in all.commands() {
            writeln!(text, "{PREFIX}_{name}{{command=\"{command}\"}} {}", numbers[column] as f64 / unit)?;
        }
    }
    Ok(())
}

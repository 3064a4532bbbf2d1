//! INFO, with the names that tools know.

use std::fmt::{Result, Write};

use crate::clock::wall_clock;
use crate::commands::client::REDIS_VERSION;
use crate::desk::Desk;
use crate::protocol::Reply;
use crate::session::gather::Gather;
use crate::stats::{FIGURES, Snapshot};

/// Writes the lines of a section.
type Section = fn(&Desk, &Snapshot, &mut String) -> Result;

/// The sections, in their order, and whether they are part of the default.
const SECTIONS: [(&str, bool, Section); 9] = [
    ("Server", true, server),
    ("Clients", true, clients),
    ("Memory", true, memory),
    ("Persistence", true, |_, _, text| {
        lines(text, &[("loading", &0), ("rdb_bgsave_in_progress", &0), ("aof_enabled", &0)])
    }),
    ("Stats", true, counts),
    ("Replication", true, |_, _, text| lines(text, &[("role", &"master"), ("connected_slaves", &0)])),
    ("CPU", true, |_, _, text| {
        let (system, user) = processor_time();
        lines(
            text,
            &[("used_cpu_sys", &format_args!("{system:.6}")), ("used_cpu_user", &format_args!("{user:.6}"))],
        )
    }),
    ("Commandstats", false, commands),
    ("Keyspace", true, keyspace),
];

fn lines(text: &mut String, all: &[(&str, &dyn std::fmt::Display)]) -> Result {
    all.iter().try_for_each(|(name, value)| write!(text, "{name}:{value}\r\n"))
}

/// Writes the reply to INFO.
pub(crate) fn write(desk: &Desk, gather: &Gather, out: &mut Vec<u8>) {
    let snapshot = Snapshot::sum(&Snapshot::read_all(gather));
    let mut text = String::new();
    for (name, is_default, section) in SECTIONS {
        let is_asked = |section: &Vec<u8>| match &section[..] {
            b"all" | b"everything" => true,
            b"default" => is_default,
            section => section.eq_ignore_ascii_case(name.as_bytes()),
        };
        if gather.about.iter().any(is_asked) || gather.about.is_empty() && is_default {
            let gap = if text.is_empty() { "" } else { "\r\n" };
            // A string has room for whatever is written to it.
            let _ = write!(text, "{gap}# {name}\r\n").and_then(|()| section(desk, &snapshot, &mut text));
        }
    }
    Reply { out, is_resp3: gather.is_resp3 }.text(&text);
}

fn server(desk: &Desk, _: &Snapshot, text: &mut String) -> Result {
    let seconds = desk.keyspace.time.tick() / 1_000;
    lines(
        text,
        &[
            ("redis_version", &REDIS_VERSION),
            ("redis_mode", &"standalone"),
            ("os", &std::env::consts::OS),
            ("process_id", &std::process::id()),
            ("tcp_port", &desk.settings.port),
            ("threads", &desk.shared.threads()),
            ("server_time_usec", &wall_clock().as_micros()),
            ("uptime_in_seconds", &seconds),
            ("uptime_in_days", &(seconds / (24 * 60 * 60))),
        ],
    )
}

fn clients(desk: &Desk, _: &Snapshot, text: &mut String) -> Result {
    let (open, limit) = (desk.shared.open_clients(), desk.settings.max_clients);
    lines(text, &[("connected_clients", &open), ("maxclients", &limit), ("blocked_clients", &0)])
}

fn memory(desk: &Desk, all: &Snapshot, text: &mut String) -> Result {
    let (keys, buffers) = (all.get("key_bytes"), all.get("buffer_bytes"));
    lines(text, &[("used_memory", &(keys + buffers)), ("used_memory_rss", &resident())])?;
    lines(text, &[("used_memory_dataset", &keys), ("mem_clients_normal", &buffers)])?;
    lines(text, &[("maxmemory", &desk.settings.max_memory), ("maxmemory_policy", &"noeviction")])?;
    lines(text, &[("mem_allocator", &"mimalloc")])
}

fn counts(_: &Desk, all: &Snapshot, text: &mut String) -> Result {
    let commands: u64 = all.commands().map(|(_, [calls, ..])| calls).sum();
    lines(text, &[("total_commands_processed", &commands), ("evicted_keys", &0)])?;
    let mut named = FIGURES.iter().zip(&all.0).filter(|((.., name), _)| !name.is_empty());
    named.try_for_each(|((.., name), number)| lines(text, &[(name, number)]))
}

fn commands(_: &Desk, all: &Snapshot, text: &mut String) -> Result {
    all.commands().try_for_each(|(name, [calls, nanos, rejected, failed])| {
        let (micros, each) = (nanos / 1_000, nanos as f64 / 1e3 / calls.max(1) as f64);
        write!(text, "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={each:.2},")?;
        write!(text, "rejected_calls={rejected},failed_calls={failed}\r\n")
    })
}

fn keyspace(_: &Desk, all: &Snapshot, text: &mut String) -> Result {
    match (all.get("keys"), all.get("expiring_keys")) {
        (0, _) => Ok(()),
        (keys, expiring) => write!(text, "db0:keys={keys},expires={expiring},avg_ttl=0\r\n"),
    }
}

/// The process's memory, if the system reports it.
pub(crate) fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// The process's time in seconds: in the kernel, and in the program.
pub(crate) fn processor_time() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may contain spaces; it ends with the last bracket.
    let after_name: Vec<_> = text.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let ticks = |field: usize| after_name.get(field).and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    (ticks(13) / per_second, ticks(12) / per_second)
}

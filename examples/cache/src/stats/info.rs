//! INFO, with the names that tools know.

use std::fmt::{Display, Write};

use crate::clock::wall_clock;
use crate::commands::client::REDIS_VERSION;
use crate::desk::Desk;
use crate::protocol::Reply;
use crate::session::gather::Gather;
use crate::stats::{FIGURES, Snapshot};

/// The section that is not part of the default.
const ON_DEMAND: &str = "Commandstats";

/// Writes the reply to INFO.
pub(crate) fn write(desk: &Desk, gather: &Gather, out: &mut Vec<u8>) {
    let all = Snapshot::sum(&Snapshot::read_all(gather));
    let is_wanted = |name: &str| {
        let is_asked = |section: &Vec<u8>| match &section[..] {
            b"all" | b"everything" => true,
            b"default" => name != ON_DEMAND,
            section => section.eq_ignore_ascii_case(name.as_bytes()),
        };
        gather.about.iter().any(is_asked) || gather.about.is_empty() && name != ON_DEMAND
    };
    let sections = [server(desk, &all), figures(&all)].concat();
    let wanted = sections.iter().filter(|(name, _)| is_wanted(name));
    let texts: Vec<_> = wanted.map(|(name, lines)| format!("# {name}\r\n{lines}")).collect();
    Reply { out, is_resp3: gather.is_resp3 }.text(&texts.join("\r\n"));
}

/// A section: its name and its lines.
type Section = (&'static str, String);

fn lines(all: &[(&str, &dyn Display)]) -> String {
    all.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect()
}

/// The sections about the process, in the order of Redis.
fn server(desk: &Desk, all: &Snapshot) -> Vec<Section> {
    let (settings, shared, seconds) = (&desk.settings, &desk.shared, desk.keyspace.time.tick() / 1_000);
    let (keys, buffers) = (all.get("key_bytes"), all.get("buffer_bytes"));
    let server: [(&str, &dyn Display); 9] = [
        ("redis_version", &REDIS_VERSION),
        ("redis_mode", &"standalone"),
        ("os", &std::env::consts::OS),
        ("process_id", &std::process::id()),
        ("tcp_port", &settings.port),
        ("threads", &shared.threads()),
        ("server_time_usec", &wall_clock().as_micros()),
        ("uptime_in_seconds", &seconds),
        ("uptime_in_days", &(seconds / (24 * 60 * 60))),
    ];
    let clients: [(&str, &dyn Display); 3] = [
        ("connected_clients", &shared.open_clients()),
        ("maxclients", &settings.max_clients),
        ("blocked_clients", &0),
    ];
    let memory: [(&str, &dyn Display); 7] = [
        ("used_memory", &(keys + buffers)),
        ("used_memory_rss", &resident()),
        ("used_memory_dataset", &keys),
        ("mem_clients_normal", &buffers),
        ("maxmemory", &settings.max_memory),
        ("maxmemory_policy", &"noeviction"),
        ("mem_allocator", &"mimalloc"),
    ];
    vec![("Server", lines(&server)), ("Clients", lines(&clients)), ("Memory", lines(&memory))]
}

/// The sections about what has been counted, in the order of Redis.
fn figures(all: &Snapshot) -> Vec<Section> {
    let (system, user) = processor_time();
    let cpu = format!("used_cpu_sys:{system:.6}\r\nused_cpu_user:{user:.6}\r\n");
    let calls: u64 = all.commands().map(|(_, [calls, ..])| calls).sum();
    let mut stats = lines(&[("total_commands_processed", &calls), ("evicted_keys", &0)]);
    let named = FIGURES.iter().zip(&all.0).filter(|((.., name), _)| !name.is_empty());
    stats.extend(named.map(|((.., name), number)| format!("{name}:{number}\r\n")));
    let mut commands = String::new();
    for (name, [calls, nanos, rejected, failed]) in all.commands() {
        let (micros, each) = (nanos / 1_000, nanos as f64 / 1e3 / calls.max(1) as f64);
        // A string has room for whatever is written to it.
        let _ = write!(commands, "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={each:.2},");
        let _ = write!(commands, "rejected_calls={rejected},failed_calls={failed}\r\n");
    }
    let keyspace = match (all.get("keys"), all.get("expiring_keys")) {
        (0, _) => String::new(),
        (keys, expiring) => format!("db0:keys={keys},expires={expiring},avg_ttl=0\r\n"),
    };
    vec![
        ("Persistence", lines(&[("loading", &0), ("rdb_bgsave_in_progress", &0), ("aof_enabled", &0)])),
        ("Stats", stats),
        ("Replication", lines(&[("role", &"master"), ("connected_slaves", &0)])),
        ("CPU", cpu),
        (ON_DEMAND, commands),
        ("Keyspace", keyspace),
    ]
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

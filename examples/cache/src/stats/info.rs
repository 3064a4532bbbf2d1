//! INFO, with the names that tools know.

use std::fmt::{Display, Write};

use crate::clock::wall_clock;
use crate::commands::client::REDIS_VERSION;
use crate::desk::Desk;
use crate::protocol::{Outcome, Reply, Request};
use crate::stats::{FIGURES, Figure, commands, sum};

/// The section that is not part of the default.
const ON_DEMAND: &str = "Commandstats";

pub(crate) fn info(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let is_wanted = |name: &str| {
        let mut asked = request.from(1).map(|section| section.to_ascii_lowercase());
        let is_asked = |section: Vec<u8>| match &section[..] {
            b"all" | b"everything" => true,
            b"default" => name != ON_DEMAND,
            section => section.eq_ignore_ascii_case(name.as_bytes()),
        };
        asked.any(is_asked) || request.len() == 1 && name != ON_DEMAND
    };
    let wanted = sections(desk).into_iter().filter(|(name, _)| is_wanted(name));
    let texts: Vec<_> = wanted.map(|(name, lines)| format!("# {name}\r\n{lines}")).collect();
    Ok(reply.text(&texts.join("\r\n")))
}

fn lines(all: &[(&str, &dyn Display)]) -> String {
    all.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect()
}

/// All sections, in the order of Redis: their names and their lines.
fn sections(desk: &Desk) -> [(&'static str, String); 9] {
    let (settings, shared, seconds) = (&desk.settings, &desk.shared, desk.keyspace.time.tick() / 1_000);
    let sum = |figure| sum(&shared.stats, figure);
    let (key_bytes, buffers, [system, user, resident]) =
        (sum(Figure::KeyBytes), sum(Figure::BufferBytes), process());
    let server = lines(&[
        ("redis_version", &REDIS_VERSION),
        ("redis_mode", &"standalone"),
        ("os", &std::env::consts::OS),
        ("process_id", &std::process::id()),
        ("tcp_port", &settings.port),
        ("threads", &shared.threads()),
        ("server_time_usec", &wall_clock().as_micros()),
        ("uptime_in_seconds", &seconds),
        ("uptime_in_days", &(seconds / (24 * 60 * 60))),
    ]);
    let clients = lines(&[
        ("connected_clients", &shared.clients()),
        ("maxclients", &settings.max_clients),
        ("blocked_clients", &0),
    ]);
    let memory = lines(&[
        ("used_memory", &(key_bytes + buffers)),
        ("used_memory_rss", &resident),
        ("used_memory_dataset", &key_bytes),
        ("mem_clients_normal", &buffers),
        ("maxmemory", &settings.max_memory),
        ("maxmemory_policy", &"noeviction"),
        ("mem_allocator", &"mimalloc"),
    ]);
    let keyspace = match (sum(Figure::Keys), sum(Figure::ExpiringKeys)) {
        (0, _) => String::new(),
        (keys, expiring) => format!("db0:keys={keys},expires={expiring},avg_ttl=0\r\n"),
    };
    [
        ("Server", server),
        ("Clients", clients),
        ("Memory", memory),
        ("Persistence", lines(&[("loading", &0), ("rdb_bgsave_in_progress", &0), ("aof_enabled", &0)])),
        ("Stats", counts(desk)),
        ("Replication", lines(&[("role", &"master"), ("connected_slaves", &0)])),
        ("CPU", lines(&[("used_cpu_sys", &system), ("used_cpu_user", &user)])),
        (ON_DEMAND, command_counts(desk)),
        ("Keyspace", keyspace),
    ]
}

fn counts(desk: &Desk) -> String {
    let all = &desk.shared.stats;
    let calls: u64 = commands(all).map(|(_, [calls, ..])| calls).sum();
    let channels: usize = (0..all.len()).map(|thread| desk.shared.channels(thread)).sum();
    let head = [
        ("total_commands_processed", &calls as &dyn Display),
        ("evicted_keys", &0),
        ("pubsub_channels", &channels),
    ];
    let named = FIGURES.iter().filter(|(_, _, name, ..)| !name.is_empty());
    named.fold(lines(&head), |text, (figure, _, name, ..)| text + &lines(&[(name, &sum(all, *figure))]))
}

fn command_counts(desk: &Desk) -> String {
    let mut text = String::new();
    for (name, [calls, nanos, rejected, failed]) in commands(&desk.shared.stats) {
        let (micros, each) = (nanos / 1_000, nanos as f64 / 1e3 / calls.max(1) as f64);
        // A string has room for whatever is written to it.
        let _ = write!(text, "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={each:.2},");
        let _ = write!(text, "rejected_calls={rejected},failed_calls={failed}\r\n");
    }
    text
}

/// The process's time in seconds, in the kernel and in the program, and its memory in bytes, if the
/// system reports them.
pub(super) fn process() -> [f64; 3] {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field, the name of the program, may contain spaces; it ends with the last bracket.
    let fields: Vec<f64> = text
        .rsplit(") ")
        .next()
        .into_iter()
        .flat_map(|it| it.split(' '))
        .map(|it| it.trim().parse().unwrap_or(0.0))
        .collect();
    let field = |number: usize| fields.get(number - 3).copied().unwrap_or(0.0);
    let (hertz, page) = (rustix::param::clock_ticks_per_second() as f64, rustix::param::page_size() as f64);
    [field(15) / hertz, field(14) / hertz, field(24) * page]
}

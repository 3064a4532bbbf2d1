//! INFO, with the names that tools know.

use std::env::consts::OS;

use super::*;
use crate::commands::client::REDIS_VERSION;
use crate::desk::Desk;
use crate::protocol::{Outcome, Reply, Request};

const ON_DEMAND: &str = "Commandstats";

pub(crate) fn info(desk: &mut Desk, request: &Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let asked: Vec<_> = request.from(1).map(<[u8]>::to_ascii_lowercase).collect();
    let is_wanted = |name: &str| {
        let is_asked = |section: &Vec<u8>| match &section[..] {
            b"all" | b"everything" => true,
            b"default" => name != ON_DEMAND,
            section => section.eq_ignore_ascii_case(name.as_bytes()),
        };
        asked.iter().any(is_asked) || asked.is_empty() && name != ON_DEMAND
    };
    let wanted = sections(desk).into_iter().filter(|(name, _)| is_wanted(name));
    let texts: Vec<_> = wanted.map(|(name, lines)| format!("# {name}\n{lines}")).collect();
    Ok(reply.text(&texts.join("\n").replace('\n', "\r\n")))
}

/// All sections, in the order of Redis: their names and their lines.
fn sections(desk: &Desk) -> [(&'static str, String); 10] {
    let (settings, shared, id, bits) = (&desk.settings, &desk.shared, std::process::id(), usize::BITS);
    let (port, max_clients, max_memory) = (settings.listen.port(), settings.max_clients, settings.max_memory);
    let (threads, uptime, clients) = (shared.threads(), shared.clock.tick() / 1_000, shared.clients());
    let [system, user, resident] = process();
    let [keys, expiring, dataset, buffers] =
        [Figure::Keys, Figure::ExpiringKeys, Figure::KeyBytes, Figure::BufferBytes]
            .map(|figure| sum(&shared.stats, figure));
    let used = dataset + buffers;
    let server = format!(
        "redis_version:{REDIS_VERSION}\nredis_mode:standalone\nos:{OS}\narch_bits:{bits}\nprocess_id:{id}\n\
         tcp_port:{port}\nuptime_in_seconds:{uptime}\nthreads:{threads}\n\
         transactions:in_one_piece_per_thread\n"
    );
    let memory = format!(
        "used_memory:{used}\nused_memory_rss:{resident}\nused_memory_dataset:{dataset}\n\
         mem_clients_normal:{buffers}\nmaxmemory:{max_memory}\nmaxmemory_policy:noeviction\n"
    );
    let keyspace = format!("db0:keys={keys},expires={expiring},avg_ttl=0\n");
    [
        ("Server", server),
        ("Clients", format!("connected_clients:{clients}\nmaxclients:{max_clients}\nblocked_clients:0\n")),
        ("Memory", memory),
        ("Persistence", "loading:0\nrdb_bgsave_in_progress:0\naof_enabled:0\n".into()),
        ("Stats", counts(desk)),
        ("Replication", "role:master\nconnected_slaves:0\n".into()),
        ("CPU", format!("used_cpu_sys:{system:.6}\nused_cpu_user:{user:.6}\n")),
        (ON_DEMAND, command_counts(desk)),
        ("Cluster", "cluster_enabled:0\n".into()),
        ("Keyspace", if keys > 0 { keyspace } else { String::new() }),
    ]
}

fn counts(desk: &Desk) -> String {
    let all = &desk.shared.stats;
    let calls: u64 = commands(all).map(|(_, [calls, ..])| calls).sum();
    let patterns = sum(all, Figure::Patterns);
    let channels = (0..all.len()).map(|it| desk.shared.channels(it)).sum::<usize>().saturating_sub(patterns);
    let head = format!(
        "total_commands_processed:{calls}\nevicted_keys:0\npubsub_channels:{channels}\n\
         pubsub_patterns:{patterns}\n"
    );
    let counters = FIGURES.iter().filter(|(_, kind, _)| *kind == "counter");
    counters.fold(head, |text, &(figure, _, name)| text + &format!("{name}:{}\n", sum(all, figure)))
}

fn command_counts(desk: &Desk) -> String {
    let line = |(name, [calls, nanos, rejected, failed]): (_, [u64; 4])| {
        let (micros, each) = (nanos / 1_000, nanos as f64 / 1e3 / calls.max(1) as f64);
        format!(
            "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={each:.2},rejected_calls={rejected},\
             failed_calls={failed}\n"
        )
    };
    commands(&desk.shared.stats).map(line).collect()
}

/// The process's time in seconds, in the kernel and in the program, and its memory in bytes, if the
/// system reports them.
fn process() -> [f64; 3] {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field, the name of the program, may contain spaces; it ends with the last bracket.
    let fields: Vec<_> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let field = |number: usize| fields.get(number - 3).and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
    let (hertz, page) = (rustix::param::clock_ticks_per_second() as f64, rustix::param::page_size() as f64);
    [field(15) / hertz, field(14) / hertz, field(24) * page]
}

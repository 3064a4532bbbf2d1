//! What a cluster does on this machine: servers, workers and the feed share its cores.
//!
//! ```text
//! cargo bench -p orders --bench cluster -- [--orders N] [--kills N] [--lease MS] [--servers N]
//! [--server-dies 1]
//! ```
//!
//! Orders decided and answered a second; bytes on disk an order, with all replicas; then workers are
//! killed, and the time until other workers have read what the dead one owned and go on. Without
//! `--servers`, once with one server and once with three. With `--server-dies 1` only the take-over, and
//! one of the servers is killed together with each worker.

#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use support::nats::{Nats, Worker};
use support::{Directory, PROGRAM, memory, options, until};

const NAMES: [&str; 3] = ["anna", "bert", "carl"];
const PARTITIONS: usize = 12;
const CATCH_UP: Duration = Duration::from_secs(5);

fn main() {
    let [orders, kills, lease] = options([("--orders", 500_000), ("--kills", 20), ("--lease", 2_000)]);
    let [servers, server_dies] = options([("--servers", 0), ("--server-dies", 0)]);
    for servers in if servers == 0 { vec![1, 3] } else { vec![servers] } {
        println!("| {servers} servers | |\n|---|---|");
        if server_dies == 0 {
            throughput(servers as usize, orders);
        }
        take_over(servers as usize, kills, Duration::from_millis(lease), server_dies > 0);
    }
}

fn report(what: &str, value: f64) {
    println!("| {what} | {value:.2} |");
}

fn worker(name: &str, nats: &Nats, servers: usize, args: &[&str]) -> Worker {
    let (replicas, partitions) = (servers.to_string(), PARTITIONS.to_string());
    let shop = ["--replicas", &replicas, "--partitions", &partitions, "--stock", "1000000000"];
    Worker::start(name, nats, &[&shop, args].concat())
}

/// Orders only, none of which is due before the end.
fn throughput(servers: usize, orders: u64) {
    let directory = Directory::new("bench-cluster");
    let mut text = "order_id,item,quantity,amount_cents,placed_at_ms\n".to_owned();
    for id in 0..orders {
        let _ = writeln!(text, "{id},item-{},2,1999,{id}", id % 10_000);
    }
    let file = directory.path().join("orders.csv");
    fs::write(&file, text).expect("a file");
    let nats = Nats::start(&directory, servers);
    let worker = worker(NAMES[0], &nats, servers, &["--check-after", "1h"]);
    until("the worker owns all", || worker.count("partition ") >= PARTITIONS);
    let mut feed = Command::new(PROGRAM);
    feed.args(["feed", "--to", &nats.urls(), "--batch", "1600", "--connections", "24", "--orders"]).arg(file);
    let output = feed.output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().find(|line| line.contains(" lines in ")).unwrap_or_else(|| panic!("{text}"));
    let seconds = lines.split(' ').nth(3).and_then(|seconds| seconds.parse::<f64>().ok()).expect("seconds");
    report("orders answered a second", orders as f64 / seconds);
    report("bytes of memory of the worker an order", memory(worker.pid()) / orders as f64);
    report("bytes on disk an order, all servers", size(directory.path()) / orders as f64);
}

/// Kills workers one by one. What a worker owned is taken over when another has caught up with it. A server
/// that is killed as well comes back afterwards.
fn take_over(servers: usize, kills: u64, lease: Duration, server_dies: bool) {
    let directory = Directory::new("bench-take-over");
    let mut nats = Nats::start(&directory, servers);
    let lease_ms = format!("{}ms", lease.as_millis());
    let args = ["--check-after", "1m", "--lease", &lease_ms];
    let start = |nats: &Nats, name: &str| worker(name, nats, servers, &args);
    let mut workers = NAMES.iter().map(|name| start(&nats, name)).collect::<Vec<_>>();
    let share = PARTITIONS / NAMES.len();
    let owned = |worker: &Worker| worker.count("partition ");
    workers.iter().for_each(|worker| until("each has its share", || owned(worker) >= share));
    thread::sleep(lease * 2);
    let (mut rng, mut times) = (fastrand::Rng::with_seed(1), Vec::new());
    for kill in 0..kills as usize {
        thread::sleep(lease.mul_f64(1.0 + rng.f64()));
        let (victim, begin) = (kill % NAMES.len(), Instant::now());
        if server_dies {
            nats.kill(kill % servers);
        }
        drop(workers.remove(victim));
        let taken = || {
            let lines = workers.iter().flat_map(|worker| worker.since(begin));
            lines.filter(|(_, line)| line.ends_with(" owned")).map(|(at, _)| at - begin).collect::<Vec<_>>()
        };
        until("all that it owned is taken over", || taken().len() >= share);
        times.extend(taken());
        if server_dies {
            nats.begin_again(kill % servers);
        }
        workers.insert(victim, start(&nats, NAMES[victim]));
        until("it has its share again", || owned(&workers[victim]) >= share);
        if server_dies {
            // It has to catch up before the next one dies.
            thread::sleep(CATCH_UP);
        }
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    report("lease, ms", lease.as_secs_f64() * 1e3);
    report("partitions taken over", times.len() as f64);
    for (name, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
        report(&format!("take-over {name}, ms"), at(share));
    }
}

/// The bytes below a directory that belong to servers.
fn size(directory: &Path) -> f64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(directory).expect("a directory").map_while(Result::ok);
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => size(&entry.path()),
        Ok(about) if entry.path().to_string_lossy().contains("jetstream") => (about.blocks() * 512) as f64,
        _ => 0.0,
    };
    entries.map(size).sum()
}

//! What a cluster does on this machine: servers, a worker and the feed share its cores.
//!
//! ```text
//! cargo bench -p orders --bench cluster -- [--orders N] [--servers N]
//! ```
//!
//! Orders decided and answered a second; bytes on disk an order, with all replicas. Without
//! `--servers`, once with one server and once with three.

#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use support::nats::{Nats, Worker};
use support::{Directory, PROGRAM, memory, options, until};

const PARTITIONS: usize = 12;

fn main() {
    let [orders, servers] = options([("--orders", 500_000), ("--servers", 0)]);
    for servers in if servers == 0 { vec![1, 3] } else { vec![servers] } {
        println!("| {servers} servers | |\n|---|---|");
        throughput(servers as usize, orders);
    }
}

fn report(what: &str, value: f64) {
    println!("| {what} | {value:.2} |");
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
    let (replicas, partitions) = (servers.to_string(), PARTITIONS.to_string());
    let shop = ["--replicas", &replicas, "--partitions", &partitions, "--stock", "1000000000"];
    let worker = Worker::start("anna", &nats, &[&shop[..], &["--check-after", "1h"]].concat());
    until("the worker owns all", || worker.owned() >= PARTITIONS);
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

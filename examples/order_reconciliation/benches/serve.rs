//! What `serve` does on this machine, over HTTP, with every answer synced to disk.
//!
//! ```text
//! cargo bench -p order-reconciliation --bench serve -- [SECONDS]
//! ```
//!
//! Acknowledged orders a second from eight connections with a hundred lines a request; then a million
//! pending orders, `kill -9`, and the time until `/healthz` answers 200; memory and disk an order;
//! then the lateness of checks while 20,000 orders a second come in.

#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::{Directory, Server, order};

const CONNECTIONS: u64 = 8;
const LINES: u64 = 100;
const MILLION: u64 = 1_000_000;
/// Orders a second while lateness is measured.
const PACE: u64 = 20_000;

fn main() {
    let seconds = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(10);
    let directory = Directory::new("bench");
    let server = Server::start(directory.path(), &["--check-after", "1h", "--stock", "1000000000"]);
    let next = AtomicU64::new(0);
    let begin = Instant::now();
    place(&server, &next, |_| begin.elapsed().as_secs() < seconds);
    report(
        "orders acknowledged a second",
        next.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64(),
    );
    report(
        "mean commit, ms",
        1e3 * server.metric("orders_commit_seconds_total") / server.metric("orders_commits_total"),
    );
    place(&server, &next, |placed| placed < MILLION);
    let pending = server.metric("orders_pending");
    report("pending orders", pending);
    report("bytes of memory an order", memory(server.pid()) / pending);
    report("bytes of disk an order", size(directory.path()) / pending);
    server.kill();
    let begin = Instant::now();
    let server = Server::start(directory.path(), &["--check-after", "1h"]);
    report("from start to /healthz, s", begin.elapsed().as_secs_f64());
    assert_eq!(server.metric("orders_pending"), pending, "after the restart");
    server.kill();
    lateness(seconds);
}

fn report(what: &str, value: f64) {
    println!("| {what} | {value:.2} |");
}

/// Places requests on all connections for as long as `more` says, by the number of orders so far.
fn place(server: &Server, next: &AtomicU64, more: impl Fn(u64) -> bool + Sync) {
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut client = server.connect();
                while more(next.load(Ordering::Relaxed)) {
                    // Ordering: Relaxed; each id is given once, and that is all.
                    let first = next.fetch_add(LINES, Ordering::Relaxed);
                    let body = (first..first + LINES).map(|id| order(id, &format!("item-{}", id % 1_000)));
                    let answer = client.send("POST", "/orders", &[], body.collect::<String>().as_bytes());
                    let answer = answer.expect("an answer");
                    assert_eq!((answer.status, answer.text().matches("\"placed\"").count()), (200, 100));
                }
            });
        }
    });
}

/// Orders at a steady pace, each checked after a second.
fn lateness(seconds: u64) {
    let directory = Directory::new("bench-lateness");
    let server = Server::start(directory.path(), &["--check-after", "1s", "--stock", "1000000000"]);
    let (next, begin) = (AtomicU64::new(0), Instant::now());
    place(&server, &next, |placed| {
        let due = Duration::from_secs_f64(placed as f64 / PACE as f64);
        thread::sleep(due.saturating_sub(begin.elapsed()));
        begin.elapsed().as_secs() < seconds
    });
    report("orders a second, paced", next.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64());
    let count = server.metric("orders_check_lateness_seconds_count");
    for bound in ["0.001", "0.002", "0.003", "0.005", "0.01", "0.025", "0.05", "0.1"] {
        let within = server.metric(&format!("orders_check_lateness_seconds_bucket{{le=\"{bound}\"}}"));
        report(&format!("checks at most {bound} s late, %"), 100.0 * within / count);
    }
}

fn memory(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1_024.0
}

fn size(directory: &std::path::Path) -> f64 {
    use std::os::unix::fs::MetadataExt;
    let files = fs::read_dir(directory).expect("the directory");
    files
        .map(|file| file.and_then(|file| file.metadata()).map_or(0, |about| about.blocks() * 512))
        .sum::<u64>() as f64
}

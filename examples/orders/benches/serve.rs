//! What `serve` does on this machine, over HTTP, with every answer synced to disk.
//!
//! ```text
//! cargo bench -p orders --bench serve -- [SECONDS]
//! ```
//!
//! How long the disk takes to sync 4 KiB; acknowledged orders a second from eight connections with a
//! hundred lines a request, for SECONDS (10); then, with a million pending orders, memory and disk an
//! order, `kill -9`, and the time until `/healthz` answers 200; then the lateness of checks while
//! 20,000 orders a second come in, for SECONDS. Client and server share the machine.

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
    report("sync of 4 KiB, ms, median of 101", support::median_sync(directory.path()).as_secs_f64() * 1e3);
    let server = Server::start(directory.path(), &["--check-after", "1h", "--stock", "1000000000"]);
    let next = AtomicU64::new(0);
    let begin = Instant::now();
    place(&server, &next, |_| begin.elapsed().as_secs() < seconds);
    report(
        "orders acknowledged a second",
        next.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64(),
    );
    report("mean commit, ms", mean_commit(&server));
    place(&server, &next, |placed| placed < MILLION);
    let pending = server.metric("orders_pending");
    report("pending orders", pending);
    report("bytes of memory an order", support::memory(server.pid()) / pending);
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
    // One scrape, as checks go on.
    let text = server.get("/metrics").text();
    for share in [0.5, 0.9, 0.99, 0.999] {
        let bound = lateness_bound(&text, share).map_or("more than 60,000".to_owned(), |ms| format!("{ms}"));
        println!("| lateness of checks, {}th percentile, ms, at most | {bound} |", share * 100.0);
    }
    report("mean commit then, ms", mean_commit(&server));
}

/// The bound of the bucket that holds a share of all checks, in ms.
fn lateness_bound(metrics: &str, share: f64) -> Option<f64> {
    let buckets = metrics.lines().filter_map(|line| {
        let (bound, count) =
            line.strip_prefix("orders_check_lateness_seconds_bucket{le=\"")?.split_once("\"} ")?;
        Some((bound.parse::<f64>().unwrap_or(f64::INFINITY), count.parse::<f64>().ok()?))
    });
    let buckets = buckets.collect::<Vec<_>>();
    let &(_, all) = buckets.last()?;
    let &(bound, _) = buckets.iter().find(|(_, count)| *count >= share * all)?;
    bound.is_finite().then_some(bound * 1e3)
}

fn mean_commit(server: &Server) -> f64 {
    1e3 * server.metric("orders_commit_seconds_total") / server.metric("orders_commits_total")
}

fn size(directory: &std::path::Path) -> f64 {
    use std::os::unix::fs::MetadataExt;
    let files = fs::read_dir(directory).expect("the directory");
    files
        .map(|file| file.and_then(|file| file.metadata()).map_or(0, |about| about.blocks() * 512))
        .sum::<u64>() as f64
}

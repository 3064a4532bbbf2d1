//! A start with many orders pending, after a long absence with many checks overdue: how soon the server
//! answers and decides, how late the checks are that fall due meanwhile, and how much memory it takes.
//!
//! ```text
//! cargo test --release -p orders --test overdue -- [--pending N] [--overdue N] [--soon N] [--in-memory N]
//! ```
//!
//! `--pending` orders are pending at the start. The checks of `--overdue` of them fell due before
//! it; those of `--soon` fall due after it, 5,000 a second; the others a day later. A client places
//! an order every few ms, to be checked soon after. A check that falls due does not wait for all
//! that is overdue. Of the orders, `--in-memory` are in memory, about.

mod support;

use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use orders::store::{Changes, Disk, Open, Store};
use serde_json::Value;
use support::{Directory, PROGRAM, Server, memory, options, order, peak_memory, until};

const HOUR: u64 = 3_600_000;
/// Orders in one commit, as the store is filled.
const BATCH: u64 = 100_000;
/// The pause between two orders.
const PAUSE: Duration = Duration::from_millis(5);
/// How late 99 of 100 checks that fall due may be, in ms, beyond the slowest answer to an order: a busy
/// machine delays both.
const LATENESS: u64 = 500;
/// The memory that the server may have taken at any time, in MiB.
const MEMORY: f64 = 2_048.0;
/// When the first check falls due of the orders that have `--soon`, after the store is made.
const SOON: Duration = Duration::from_secs(5);
/// How many of them there are in a ms.
const PACE: u64 = 5;

fn main() {
    let [pending, overdue, soon, in_memory] =
        options([("--pending", 400_000), ("--overdue", 200_000), ("--soon", 50_000), ("--in-memory", 1_000)]);
    let directory = Directory::new("overdue");
    fill(&directory, pending - soon, overdue);
    let soon = pending - soon + 1..pending + 1;
    let over = Instant::now() + SOON + Duration::from_millis((pending + 1 - soon.start) / PACE);
    let wall = wall();
    fill_with(&directory, soon.clone(), |id| wall + SOON.as_millis() as u64 + (id - soon.start) / PACE);
    let begin = Instant::now();
    let args = ["--check-after", "20ms", "--in-memory", &in_memory.to_string()];
    let server = Server::launch(Command::new(PROGRAM), directory.path(), &args);
    println!(
        "| after a start with {pending} pending orders, {overdue} of them overdue, {in_memory} in memory | |"
    );
    report("first answer to an order, s", first_answer(&server, pending + 1, begin));
    until("an overdue check is made", || overdue == 0 || !server.get("/outcomes?limit=1").lines().is_empty());
    report("first overdue decision, s", begin.elapsed().as_secs_f64());
    let mut slowest = Duration::ZERO;
    let next = place_until(&server, pending + 2, &mut slowest, || {
        server.metric("orders_checks_missed_total") >= overdue as f64
    });
    report("all overdue decisions, s", begin.elapsed().as_secs_f64());
    report("memory then, MiB", memory(server.pid()) / f64::from(1 << 20));
    let last = place_until(&server, next, &mut slowest, || Instant::now() >= over);
    report("slowest answer to an order, ms", slowest.as_secs_f64() * 1e3);
    let limit = LATENESS + slowest.as_millis() as u64;
    let met = (pending + 1..last).map(|id| ended(&server, id)).collect::<Vec<_>>();
    let place = |end: &Value| end["seq"].as_u64().expect("a number");
    if overdue > 0 {
        assert!(place(&met[0]) <= overdue, "it has waited for all that was overdue: {}", met[0]);
        report_lateness("that fell due meanwhile", limit, met.iter().filter(|end| place(end) <= overdue));
    }
    report_lateness("of all new orders", limit, met.iter());
    let read = soon.clone().step_by(10).map(|id| ended(&server, id)).collect::<Vec<_>>();
    report_lateness("that were pending at the start and fell due later, one in ten", limit, read.iter());
    let peak = peak_memory(server.pid()) / f64::from(1 << 20);
    report("most memory at any time, MiB", peak);
    assert!(peak <= MEMORY, "pending orders are not bounded by the disk alone");
    assert_eq!(server.metric("orders_checks_missed_total"), overdue as f64);
    assert_eq!(server.metric("orders_decided_total{state=\"released\"}") as u64, overdue + last - soon.start);
    assert_eq!(server.metric("orders_pending") as u64, soon.start - 1 - overdue);
}

fn report(what: &str, value: f64) {
    println!("| {what} | {value:.2} |");
}

fn report_lateness<'a>(which: &str, limit: u64, ends: impl Iterator<Item = &'a Value>) {
    let mut late = ends.map(lateness).collect::<Vec<_>>();
    late.sort_unstable();
    let Some(greatest) = late.last() else { return };
    let part = |share: f64| late[(late.len() as f64 * share) as usize];
    println!("| checks {which} | {} |", late.len());
    println!(
        "| their lateness, ms: median, 99th percentile, greatest | {}, {}, {greatest} |",
        part(0.5),
        part(0.99)
    );
    assert!(part(0.99) <= limit, "checks {which} are late");
}

fn wall() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_millis() as u64
}

/// Makes a store. The check of each overdue order fell due within the hour before now.
fn fill(directory: &Directory, pending: u64, overdue: u64) {
    let (begin, wall) = (Instant::now(), wall());
    let due = |id| if id <= overdue { wall - HOUR + id * HOUR / (overdue + 1) } else { wall + 24 * HOUR };
    fill_with(directory, 1..pending + 1, due);
    let blocks = fs::metadata(directory.path().join("orders.redb")).expect("the store").blocks();
    report("disk, bytes an order", (blocks * 512) as f64 / pending as f64);
    report("time to make the store, s", begin.elapsed().as_secs_f64());
}

fn fill_with(directory: &Directory, ids: Range<u64>, due: impl Fn(u64) -> u64) {
    let (store, now) = (Disk::open(directory.path()).expect("a store"), wall() - 2 * HOUR);
    let order = |order_id: u64| {
        let (due, item) = (due(order_id), format!("item-{}", order_id % 1_000));
        Open { order_id, item, quantity: 2, amount: 1999, paid: 0, placed_at: due - HOUR, check_at: due }
    };
    for first in ids.clone().step_by(BATCH as usize) {
        let open = (first..(first + BATCH).min(ids.end)).map(order).collect();
        store.commit(&Changes { now, open, ..Changes::default() }).expect("a commit");
    }
}

/// Places an order as soon as the server takes one.
fn first_answer(server: &Server, id: u64, begin: Instant) -> f64 {
    let mut took = begin.elapsed();
    until("the server takes an order", || {
        let placed = server.post("/orders", &order(id, "nut")).status == 200;
        took = begin.elapsed();
        placed
    });
    took.as_secs_f64()
}

/// Places orders until something holds. Returns the first id that is not placed.
fn place_until(server: &Server, first: u64, slowest: &mut Duration, holds: impl Fn() -> bool) -> u64 {
    let (mut client, mut next) = (server.connect(), first);
    while !holds() {
        let begin = Instant::now();
        let answer = client.send("POST", "/orders", &[], order(next, "nut").as_bytes()).expect("an answer");
        assert_eq!(answer.statuses(), ["placed"]);
        *slowest = begin.elapsed().max(*slowest);
        next += 1;
        thread::sleep(PAUSE);
    }
    next
}

/// An order, when it has ended.
fn ended(server: &Server, id: u64) -> Value {
    let mut order = Value::Null;
    until("the order is checked", || {
        order = server.get(&format!("/orders/{id}")).json();
        order["state"] != "pending"
    });
    order
}

fn lateness(order: &Value) -> u64 {
    let at = |field: &str| order[field].as_u64().expect("a time");
    at("decided_at_ms") - at("check_at_ms")
}

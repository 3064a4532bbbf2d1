//! A start after a long absence, with many checks overdue: how soon the server answers and decides, and
//! how late the checks are that fall due while it catches up.
//!
//! ```text
//! cargo test --release -p orders --test overdue -- [--pending N] [--overdue N]
//! ```
//!
//! `--pending` orders are pending at the start; the checks of `--overdue` of them fell due before it. A
//! client places an order every few ms, to be checked soon after. A check that falls due does not wait
//! for all that is overdue.

mod support;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use orders::store::{Changes, Disk, Open, Store};
use serde_json::Value;
use support::{Directory, PROGRAM, Server, memory, options, order, until};

const HOUR: u64 = 3_600_000;
/// Orders in one commit, as the store is filled.
const BATCH: u64 = 100_000;
/// The pause between two orders.
const PAUSE: Duration = Duration::from_millis(5);
/// How late 99 of 100 checks that fall due may be, in ms: the machine may be busy.
const LATENESS: u64 = 500;

fn main() {
    let [pending, overdue] = options([("--pending", 400_000), ("--overdue", 200_000)]);
    let directory = Directory::new("overdue");
    fill(&directory, pending, overdue);
    let begin = Instant::now();
    let server = Server::launch(Command::new(PROGRAM), directory.path(), &["--check-after", "20ms"]);
    println!("| after a start with {pending} pending orders, {overdue} of them overdue | |");
    report("first answer to an order, s", first_answer(&server, pending + 1, begin));
    until("an overdue check is made", || !server.get("/outcomes?limit=1").lines().is_empty());
    report("first overdue decision, s", begin.elapsed().as_secs_f64());
    let last = place_until_caught_up(&server, pending + 2, overdue);
    report("all overdue decisions, s", begin.elapsed().as_secs_f64());
    report("memory then, MiB", memory(server.pid()) / f64::from(1 << 20));
    let met = (pending + 1..last).map(|id| ended(&server, id)).collect::<Vec<_>>();
    let place = |end: &Value| end["seq"].as_u64().expect("a number");
    assert!(place(&met[0]) <= overdue, "it has waited for all that was overdue: {}", met[0]);
    let mut late = met.iter().filter(|end| place(end) <= overdue).map(lateness).collect::<Vec<_>>();
    late.sort_unstable();
    let part = |share: f64| late[(late.len() as f64 * share) as usize];
    println!("| checks that fell due meanwhile | {} |", late.len());
    let greatest = late.last().expect("the first one is among them");
    println!(
        "| their lateness, ms: median, 99th percentile, greatest | {}, {}, {greatest} |",
        part(0.5),
        part(0.99)
    );
    assert!(part(0.99) <= LATENESS, "checks that fall due wait for the catch-up");
    assert_eq!(server.metric("orders_checks_missed_total"), overdue as f64);
    assert_eq!(
        server.metric("orders_decided_total{state=\"released\"}") as u64,
        overdue + last - pending - 1
    );
}

fn report(what: &str, value: f64) {
    println!("| {what} | {value:.2} |");
}

/// Makes a store. The check of each overdue order fell due within the hour before now.
fn fill(directory: &Directory, pending: u64, overdue: u64) {
    let store = Disk::open(directory.path()).expect("a store");
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_millis() as u64;
    let order = |order_id: u64| {
        let due = if order_id <= overdue {
            wall - HOUR + order_id * HOUR / (overdue + 1)
        } else {
            wall + 24 * HOUR
        };
        let item = format!("item-{}", order_id % 1_000);
        Open { order_id, item, quantity: 2, amount: 1999, paid: 0, placed_at: due - HOUR, check_at: due }
    };
    for first in (1..=pending).step_by(BATCH as usize) {
        let open = (first..(first + BATCH).min(pending + 1)).map(order).collect();
        store.commit(&Changes { now: wall - 2 * HOUR, open, ..Changes::default() }).expect("a commit");
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

/// Places orders until no check is overdue. Returns the first id that is not placed.
fn place_until_caught_up(server: &Server, first: u64, overdue: u64) -> u64 {
    let (mut client, mut next) = (server.connect(), first);
    while server.metric("orders_checks_missed_total") < overdue as f64 {
        let answer = client.send("POST", "/orders", &[], order(next, "nut").as_bytes()).expect("an answer");
        assert_eq!(answer.statuses(), ["placed"]);
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

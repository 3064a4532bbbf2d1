//! Kills the server at random instants under load, and compares what is left with a replay.
//!
//! ```text
//! cargo test --release -p orders --test kills -- [--kills N] [--seconds S] [--seed N]
//! ```
//!
//! Clients place orders and pay them, and send again whatever was not answered. A reader follows the
//! outcomes. After the last kill no outcome that the reader saw may have changed, and all of them are
//! compared with what a replay decides from the answers.

mod support;

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use order_reconciliation::outcomes::PlacedOrder;
use serde_json::Value;
use support::audit::Book;
use support::{Answer, Client, Directory, PROGRAM, Server, options, until};

const CHECK_AFTER: u64 = 700;
const STOCK: u64 = 1_000;
/// Orders of an item: a little more than there is stock for.
const PER_ITEM: u64 = 450;
const BATCH: u64 = 40;
const CLIENTS: usize = 4;

fn main() {
    let [kills, seconds, seed] = options([("--kills", 10), ("--seconds", u64::MAX), ("--seed", 1)]);
    let begin = Instant::now();
    let book = Mutex::new(Book::new(CHECK_AFTER));
    let scene = Arc::new(Scene { book, ..Scene::default() });
    let directory = Directory::new("kills");
    let audited = torment(&scene, &directory, kills, seconds, seed);
    let took = begin.elapsed().as_secs();
    println!("{} kills in {took} s\n{audited}", scene.kills.load(Ordering::SeqCst));
}

/// What the threads share. Orderings are all SeqCst: this is a test.
#[derive(Default)]
struct Scene {
    address: Mutex<Option<SocketAddr>>,
    next_order: AtomicU64,
    kills: AtomicU64,
    /// No new orders are placed.
    closing: AtomicBool,
    /// All outcomes are there.
    over: AtomicBool,
    /// What the clients know from answers.
    book: Mutex<Book>,
}

fn torment(scene: &Arc<Scene>, directory: &Directory, kills: u64, seconds: u64, seed: u64) -> String {
    let clients = (0..CLIENTS).map(|_| {
        let scene = Arc::clone(scene);
        thread::spawn(move || shop(&scene))
    });
    let clients = clients.collect::<Vec<_>>();
    let reader = thread::spawn({
        let scene = Arc::clone(scene);
        move || follow(&scene)
    });
    let end = Instant::now().checked_add(Duration::from_secs(seconds));
    let mut rng = fastrand::Rng::with_seed(seed);
    while scene.kills.load(Ordering::SeqCst) < kills && end.is_none_or(|end| Instant::now() < end) {
        // One in eight dies while it starts and recovers.
        if rng.u8(0..8) == 0 {
            let args = args(scene);
            let after = Duration::from_millis(rng.u64(0..60));
            Server::interrupt(&directory.path().join("data"), &args.each_ref().map(String::as_str), after);
        } else {
            let server = start(scene, directory);
            thread::sleep(Duration::from_millis(rng.u64(0..300)));
            *scene.address.lock().expect("no panic") = None;
            server.kill();
        }
        scene.kills.fetch_add(1, Ordering::SeqCst);
    }
    let server = start(scene, directory);
    scene.closing.store(true, Ordering::SeqCst);
    clients.into_iter().for_each(|client| client.join().expect("a client does not panic"));
    until("all are decided", || server.metric("orders_pending") == 0.0);
    scene.over.store(true, Ordering::SeqCst);
    let followed = reader.join().expect("the reader does not panic");
    audit(&server, &mut scene.book.lock().expect("no panic"), &followed)
}

fn args(scene: &Scene) -> [String; 6] {
    // With so few in memory, every order crosses the horizon. Every other server has all in memory.
    let in_memory = if scene.kills.load(Ordering::SeqCst).is_multiple_of(2) { "50" } else { "1000000" };
    let [check_after, stock] = [format!("{CHECK_AFTER}ms"), STOCK.to_string()];
    ["--check-after", &check_after, "--stock", &stock, "--in-memory", in_memory].map(str::to_owned)
}

fn start(scene: &Scene, directory: &Directory) -> Server {
    let args = args(scene);
    let args = args.each_ref().map(String::as_str);
    let server = Server::launch(Command::new(PROGRAM), &directory.path().join("data"), &args);
    *scene.address.lock().expect("no panic") = Some(server.address);
    server
}

/// A client: places a batch, pays it, and so on.
fn shop(scene: &Scene) {
    let mut line = Line::default();
    while !scene.closing.load(Ordering::SeqCst) {
        let first = scene.next_order.fetch_add(BATCH, Ordering::SeqCst) + 1;
        let placed = place(scene, &mut line, first..first + BATCH);
        pay(scene, &mut line, &placed);
    }
}

/// Returns the orders that are placed.
fn place(scene: &Scene, line: &mut Line, ids: std::ops::Range<u64>) -> Vec<PlacedOrder> {
    let order = |order_id: u64| PlacedOrder {
        order_id,
        item: format!("item-{}", order_id / PER_ITEM),
        quantity: (order_id * 7 % 4) as u32 + 1,
        amount: order_id * 31 % 5_000 + 200,
        placed_at: 0,
    };
    let mut orders = ids.map(order).collect::<Vec<_>>();
    let body = orders.iter().map(|PlacedOrder { order_id, item, quantity, amount, .. }| {
        let names = format!("\"order_id\":{order_id},\"item\":\"{item}\"");
        format!("{{{names},\"quantity\":{quantity},\"amount_cents\":{amount}}}\n")
    });
    let answers = line.insist(scene, "/orders", &body.collect::<String>()).lines();
    assert_eq!(answers.len(), orders.len(), "an answer a line");
    let (mut book, mut answers) = (scene.book.lock().expect("no panic"), answers.iter());
    orders.retain(|order| book.ordered(order, answers.next().expect("an answer")));
    orders
}

/// Half of the orders are paid in full, a sixth each in two parts, wrongly, and not at all.
fn pay(scene: &Scene, line: &mut Line, placed: &[PlacedOrder]) {
    let mut payments = Vec::new();
    for &PlacedOrder { order_id: id, amount, .. } in placed {
        let amounts = match id * 11 % 6 {
            0..=2 => vec![amount],
            3 => vec![amount / 2, amount - amount / 2],
            4 => vec![amount + id % 2 * 2 - 1],
            _ => vec![],
        };
        let named =
            amounts.into_iter().zip(1..).map(|(cents, number)| (format!("p-{id}-{number}"), id, cents));
        payments.extend(named);
    }
    let body = payments.iter().map(|(name, id, cents)| support::payment(name, *id, *cents));
    let answers = line.insist(scene, "/payments", &body.collect::<String>()).lines();
    assert_eq!(answers.len(), payments.len(), "an answer a line");
    let mut book = scene.book.lock().expect("no panic");
    for ((name, id, cents), answer) in payments.iter().zip(answers) {
        book.paid(name, *id, *cents, &answer, wall());
    }
}

fn wall() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// A connection that is made again as often as it breaks.
#[derive(Default)]
struct Line {
    client: Option<(SocketAddr, Client)>,
}

impl Line {
    /// Sends until there is an answer.
    fn insist(&mut self, scene: &Scene, path: &str, body: &str) -> Answer {
        loop {
            if let Some(answer) = self.send(scene, "POST", path, body) {
                return answer;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn send(&mut self, scene: &Scene, method: &str, path: &str, body: &str) -> Option<Answer> {
        let address = (*scene.address.lock().expect("no panic"))?;
        if self.client.as_ref().is_none_or(|(known, _)| *known != address) {
            self.client = Some((address, Client::connect(address).ok()?));
        }
        let (_, client) = self.client.as_mut()?;
        match client.send(method, path, &[], body.as_bytes()) {
            Ok(answer) if answer.status == 200 => Some(answer),
            Ok(answer) if answer.status == 503 => None,
            Ok(answer) => panic!("{answer:?}"),
            Err(_) => {
                self.client = None;
                None
            }
        }
    }
}

/// A reader of outcomes, across all restarts. Returns their lines.
fn follow(scene: &Scene) -> String {
    let (mut seen, mut after, mut line) = (String::new(), 0, Line::default());
    while !scene.over.load(Ordering::SeqCst) {
        if let Some(answer) = line.send(scene, "GET", &format!("/outcomes?after={after}&limit=5000"), "") {
            after += answer.text().lines().count();
            seen += &answer.text();
        }
        thread::sleep(Duration::from_millis(5));
    }
    seen
}

/// The lines of all outcomes.
fn all_outcomes(server: &Server) -> String {
    let (mut all, mut after) = (String::new(), 0);
    loop {
        let page = server.get(&format!("/outcomes?after={after}&limit=10000")).text();
        if page.is_empty() {
            return all;
        }
        after += page.lines().count();
        all += &page;
    }
}

/// What only a reader that was there all the time can check.
fn expect_history(found: &str, followed: &str) {
    assert!(found.starts_with(followed), "what was seen stays");
    let mut last = 0;
    for (line, seq) in found.lines().zip(1_u64..) {
        let line = serde_json::from_str::<Value>(line).expect("a line of JSON");
        let decided_at = line["decided_at_ms"].as_u64().expect("a time");
        assert!(
            line["seq"] == seq && decided_at >= last,
            "numbers have no gaps, times do not go back: {line}"
        );
        last = decided_at;
    }
}

/// Compares all outcomes with what was seen of them, and with a replay of the answers.
fn audit(server: &Server, book: &mut Book, followed: &str) -> String {
    let outcomes = all_outcomes(server);
    expect_history(&outcomes, followed);
    let lines = outcomes.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
    lines.for_each(|line| book.ended(&line, u64::MAX));
    book.compare(STOCK)
}

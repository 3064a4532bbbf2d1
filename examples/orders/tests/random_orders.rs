//! Random orders and payments through a running server, compared line by line with a model of the rules.
//!
//! ```text
//! cargo test --release -p orders --test random_orders -- [--orders N] [--seed N] [--in-memory N]
//! ```
//!
//! Stock is scarce, and a check comes 50 ms after its order: so most of what is placed depends on what was
//! released just before. Orders and payments come again, with the same content and with other content.
//!
//! The server dates what comes in. Each request of orders begins with one for an item of its own, whose answer
//! says the instant of the request. A request of payments is between two such instants: if a check is between
//! them too, a payment may be counted or late, and the model follows the answer. All else has one right answer.

mod support;

use std::collections::{HashMap, VecDeque};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::Value;
use support::{Client, Directory, Server, options, until};

const CHECK_AFTER: u64 = 50;
const STOCK: u64 = 60;
/// So many orders come before an item gives way to the next one, and so many items are on sale at a time: each
/// has twice as many buyers as units.
const PER_ITEM: u64 = 60;
const ITEMS: u64 = 20;
const BATCH: u64 = 600;
/// Orders and payments that come again are among this many before.
const RECENT: u64 = 2_000;
/// The ids of the orders that say the instant.
const FIRST_BEACON: u64 = 1 << 40;
/// With more pending orders the client waits. The server makes 8,192 checks in one commit at most, and does not
/// keep an order waiting for more.
const MAX_PENDING: usize = 4_000;

fn main() {
    let [count, seed, in_memory] = options([("--orders", 20_000), ("--seed", 1), ("--in-memory", 500)]);
    let (begin, directory) = (Instant::now(), Directory::new("random-orders"));
    let (check_after, stock, in_memory) =
        (format!("{CHECK_AFTER}ms"), STOCK.to_string(), in_memory.to_string());
    let args = ["--check-after", &check_after, "--stock", &stock, "--in-memory", &in_memory];
    let server = Server::start(directory.path(), &args);
    let (mut model, mut rng) = (Model::default(), Rng::with_seed(seed));
    let mut client = server.connect();
    for request in 0.. {
        let orders = draw_orders(&model, &mut rng, request, count);
        model.placed(&orders, &ask(&mut client, "/orders", orders.iter().map(Order::line).collect()));
        if model.drawn == count {
            break;
        }
        let payments = draw_payments(&mut model, &mut rng);
        model.paid(&payments, &ask(&mut client, "/payments", payments.iter().map(Payment::line).collect()));
        if model.pending.len() > MAX_PENDING {
            thread::sleep(Duration::from_millis(CHECK_AFTER));
        }
    }
    until("all checks are made", || server.metric("orders_pending") == 0.0);
    model.advance(u64::MAX);
    let totals = model.compare(&server);
    let took = begin.elapsed();
    println!(
        "| random orders through serve: orders, payments, ends, differences, time | {count}, {}, {totals:?}, 0, \
         {took:.0?} |",
        model.payments
    );
}

/// Sends lines, and returns the answer to each.
fn ask(client: &mut Client, path: &str, lines: String) -> Vec<Value> {
    let answer = client.send("POST", path, &[], lines.as_bytes()).expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.lines()
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Order {
    id: u64,
    item: String,
    quantity: u64,
    amount: u64,
}

impl Order {
    fn line(&self) -> String {
        let Self { id, item, quantity, amount } = self;
        format!(
            "{{\"order_id\":{id},\"item\":\"{item}\",\"quantity\":{quantity},\"amount_cents\":{amount}}}\n"
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Payment {
    id: u64,
    order: u64,
    amount: u64,
}

impl Payment {
    fn line(&self) -> String {
        let Self { id, order, amount } = self;
        format!("{{\"payment_id\":\"p{id}\",\"order_id\":{order},\"amount_cents\":{amount}}}\n")
    }
}

/// The beacon of a request, and new orders, or old ones that come again.
fn draw_orders(model: &Model, rng: &mut Rng, request: u64, count: u64) -> Vec<Order> {
    let beacon =
        Order { id: FIRST_BEACON + request, item: format!("beacon-{request}"), quantity: 1, amount: 1 };
    let (mut orders, mut next) = (vec![beacon], model.drawn + 1);
    for _ in 0..rng.u64(1..=BATCH) {
        if model.drawn > RECENT && rng.u8(0..50) == 0 {
            let mut again = model.content(model.drawn - rng.u64(0..RECENT)).clone();
            again.quantity += rng.u64(0..2);
            orders.push(again);
        } else if next <= count {
            let item = format!("item-{}", next / PER_ITEM + rng.u64(0..ITEMS));
            orders.push(Order { id: next, item, quantity: rng.u64(1..4), amount: rng.u64(0..4) });
            next += 1;
        }
    }
    orders
}

/// Payments of recent orders, half of them in full.
fn draw_payments(model: &mut Model, rng: &mut Rng) -> Vec<Payment> {
    let mut payments = Vec::<Payment>::new();
    for _ in 0..rng.u64(1..=BATCH) {
        let first = model.drawn.saturating_sub(RECENT).max(1);
        let &Order { id: order, amount, .. } = model.content(rng.u64(first..=model.drawn));
        let amount = if rng.bool() { amount } else { rng.u64(0..4) };
        let payment = match payments.last() {
            Some(before) if rng.u8(0..50) == 0 => {
                Payment { amount: before.amount + rng.u64(0..2), ..*before }
            }
            _ => {
                model.payments += 1;
                Payment { id: model.payments, order, amount }
            }
        };
        payments.push(payment);
    }
    payments
}

#[derive(Debug)]
struct Placed {
    due: u64,
    paid: u64,
    end: Option<&'static str>,
}

/// The rules, in the words of the README.
#[derive(Default)]
struct Model {
    /// The instant of the last request of orders.
    now: u64,
    /// New orders so far: their ids are the numbers from 1 on.
    drawn: u64,
    payments: u64,
    contents: HashMap<u64, Order>,
    orders: HashMap<u64, Placed>,
    /// Units that are sold or held, by item.
    taken: HashMap<String, u64>,
    counted: HashMap<u64, Payment>,
    /// The orders that wait for their check, and those that were paid early, by the date of the check.
    pending: VecDeque<(u64, u64)>,
    /// Checks that must have been due before the next request of orders, since a payment was late.
    overdue: Vec<u64>,
}

impl Model {
    fn content(&self, id: u64) -> &Order {
        &self.contents[&id]
    }

    /// Makes the checks that were due before an instant.
    fn advance(&mut self, now: u64) {
        assert!(now >= self.now, "time goes back");
        self.now = now;
        while let Some((_, id)) = self.pending.pop_front_if(|(due, _)| *due < now) {
            let (order, placed) = (&self.contents[&id], self.orders.get_mut(&id).expect("it was placed"));
            if placed.end.is_some() {
                continue;
            }
            placed.end = Some(if placed.paid == order.amount { "confirmed" } else { "released" });
            if placed.end == Some("released") {
                *self.taken.get_mut(&order.item).expect("it was held") -= order.quantity;
            }
        }
    }

    fn placed(&mut self, orders: &[Order], answers: &[Value]) {
        assert_eq!(answers.len(), orders.len());
        let due = answers[0]["check_at_ms"].as_u64().expect("the first one is always placed");
        self.advance(due - CHECK_AFTER);
        assert!(
            self.overdue.drain(..).all(|due| due < self.now),
            "a payment was late before its check was due"
        );
        for (order, answer) in orders.iter().zip(answers) {
            let expected = match self.orders.get(&order.id) {
                Some(_) if self.contents[&order.id] == *order => "duplicate",
                Some(_) => "conflict",
                None => self.place(order, due),
            };
            let context = || format!("at {}: {order:?} was answered {answer}", self.now);
            assert_eq!(answer["status"], expected, "{}", context());
            assert_eq!(answer["order_id"], order.id, "{}", context());
            if expected == "placed" || expected == "duplicate" {
                assert_eq!(answer["check_at_ms"], self.orders[&order.id].due, "{}", context());
            }
        }
    }

    fn place(&mut self, order: &Order, due: u64) -> &'static str {
        if order.id < FIRST_BEACON {
            self.drawn = self.drawn.max(order.id);
        }
        self.contents.insert(order.id, order.clone());
        let taken = self.taken.entry(order.item.clone()).or_default();
        if *taken + order.quantity > STOCK {
            return "sold_out";
        }
        *taken += order.quantity;
        self.orders.insert(order.id, Placed { due, paid: 0, end: None });
        self.pending.push_back((due, order.id));
        "placed"
    }

    fn paid(&mut self, payments: &[Payment], answers: &[Value]) {
        assert_eq!(answers.len(), payments.len());
        for (payment, answer) in payments.iter().zip(answers) {
            let status = answer["status"].as_str().expect("a status");
            let expected = self.pay(payment, status);
            assert_eq!(status, expected, "after {}: {payment:?} was answered {answer}", self.now);
        }
    }

    fn pay(&mut self, payment: &Payment, status: &str) -> &'static str {
        if let Some(before) = self.counted.get(&payment.id) {
            return if before == payment { "duplicate" } else { "conflict" };
        }
        let Some(placed) = self.orders.get_mut(&payment.order) else { return "unknown_order" };
        if placed.end.is_some() {
            return "late";
        }
        if status == "late" {
            self.overdue.push(placed.due);
            return "late";
        }
        if placed.paid == 0 && payment.amount == self.contents[&payment.order].amount {
            placed.end = Some("paid_early");
        }
        placed.paid += payment.amount;
        self.counted.insert(payment.id, payment.clone());
        "counted"
    }

    /// Compares how the orders ended, and what was sold. Returns how many ended in each way.
    fn compare(&self, server: &Server) -> HashMap<&'static str, u64> {
        let (mut totals, mut found) = (HashMap::new(), 0);
        for outcome in server.outcomes() {
            let id = outcome["order_id"].as_u64().expect("a number");
            let placed = self.orders.get(&id).unwrap_or_else(|| panic!("it was never placed: {outcome}"));
            let end = placed.end.expect("all checks are made");
            assert_eq!(outcome["state"], end, "{placed:?}, {outcome}");
            let decided_at = outcome["decided_at_ms"].as_u64().expect("a number");
            assert_eq!(decided_at <= placed.due, end == "paid_early", "{placed:?}, {outcome}");
            *totals.entry(end).or_default() += 1;
            found += 1;
        }
        assert_eq!(found, self.orders.len(), "each order ends once");
        for (item, taken) in self.taken.iter().filter(|(item, _)| item.ends_with('7')) {
            let stock = server.get(&format!("/stock/{item}")).json();
            assert_eq!(
                (&stock["sold"], &stock["reserved"]),
                (&Value::from(*taken), &Value::from(0)),
                "{item}"
            );
        }
        totals.insert("sold_out", (self.contents.len() - self.orders.len()) as u64);
        totals
    }
}

//! Compares what a shop has answered and decided with a replay of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use async_nats::ServerAddr;
use async_nats::jetstream::{self, Context};
use futures_util::TryStreamExt;
use order_reconciliation::Streams;
use order_reconciliation::files::Files;
use order_reconciliation::outcomes::{MadePayment, PlacedOrder, outcomes};
use serde_json::Value;

use super::PATIENCE;

/// How much the clocks of a shop and of its test may differ, in ms.
const TOLERANCE: u64 = 250;

/// What is known from answers and outcomes. What cannot be true panics.
#[derive(Default)]
pub(crate) struct Book {
    /// How long orders wait for their check, in ms.
    check_after: u64,
    /// Orders and payments with the times that the shop gave them.
    orders: Vec<PlacedOrder>,
    payments: Vec<MadePayment>,
    sold_out: HashSet<u64>,
    ends: BTreeMap<u64, String>,
    /// When orders that were placed are checked.
    checks: HashMap<u64, u64>,
    /// Payments that were answered.
    paid: HashSet<String>,
}

fn number(line: &Value, field: &str) -> u64 {
    line[field].as_u64().unwrap_or_else(|| panic!("no {field} in {line}"))
}

impl Book {
    pub(crate) fn new(check_after: u64) -> Self {
        Self { check_after, ..Self::default() }
    }

    /// Notes the answer to an order. Returns whether it is placed.
    pub(crate) fn ordered(&mut self, order: &PlacedOrder, answer: &Value) -> bool {
        if answer["status"] == "sold_out" {
            self.sold_out.insert(order.order_id);
            return false;
        }
        assert!(answer["status"] == "placed" || answer["status"] == "duplicate", "{answer}");
        let check_at = number(answer, "check_at_ms");
        match self.checks.insert(order.order_id, check_at) {
            None => {
                self.sold_out.remove(&order.order_id);
                self.orders.push(PlacedOrder { placed_at: check_at - self.check_after, ..order.clone() });
            }
            before => assert_eq!(before, Some(check_at), "{answer}"),
        }
        true
    }

    /// Notes the answer to a payment, which came at a time in ms.
    pub(crate) fn paid(&mut self, id: &str, order_id: u64, amount: u64, answer: &Value, at: u64) {
        let Some(&check_at) = self.checks.get(&order_id) else {
            return assert_eq!(answer["status"], "unknown_order", "{answer}");
        };
        let ended = self.ends.contains_key(&order_id);
        let paid_at = match answer["status"].as_str() {
            Some("counted") if !ended => check_at - self.check_after,
            Some("duplicate") => check_at - self.check_after,
            Some("late") if ended || at + TOLERANCE > check_at => check_at + 1,
            _ => panic!("{answer}, due at {check_at}, at {at}"),
        };
        if self.paid.insert(id.to_owned()) {
            self.payments.push(MadePayment { order_id, amount, paid_at });
        }
    }

    /// Notes an outcome, which was there at a time in ms.
    pub(crate) fn ended(&mut self, line: &Value, at: u64) {
        let (order_id, decided_at) = (number(line, "order_id"), number(line, "decided_at_ms"));
        let state = line["state"].as_str().expect("a state");
        let check_at = *self.checks.get(&order_id).unwrap_or_else(|| panic!("not placed: {line}"));
        let in_time =
            if state == "paid_early" { decided_at <= check_at } else { decided_at.min(at) >= check_at };
        assert!(in_time, "due at {check_at}: {line}");
        assert_eq!(self.ends.insert(order_id, state.to_owned()), None, "a second end: {line}");
    }

    /// Every order that was placed has ended as in a replay, in which nothing is oversold.
    pub(crate) fn compare(&self, stock: u64) -> String {
        let expected = outcomes(&self.orders, &self.payments, stock, self.check_after);
        for (id, end) in &expected {
            assert_eq!(self.ends.get(id).map(String::as_str), Some(*end), "order {id}");
        }
        assert_eq!(self.ends.len(), expected.len(), "no other order has ended");
        let (ended, sold_out) = (self.ends.len(), self.sold_out.len());
        format!("{ended} outcomes, {sold_out} sold out, no difference")
    }
}

/// The results of a cluster, read line by line.
struct Reader {
    jetstream: Context,
    book: Book,
    files: Files,
    /// Payments by their names, as a feed of these files gives them.
    payments: HashMap<String, MadePayment>,
    stock: u64,
    /// Units of each item that are reserved or sold.
    taken: HashMap<String, u64>,
    /// The last message that was read of each stream.
    last: BTreeMap<String, u64>,
}

impl Reader {
    /// Reads what is new in all streams of results.
    async fn read_on(&mut self) {
        let names = self.jetstream.stream_names().try_collect::<Vec<_>>().await.unwrap_or_default();
        for name in names.into_iter().filter(|name| name.starts_with("results-")) {
            let Ok(stream) = self.jetstream.get_stream(&name).await else { continue };
            let last = self.last.get(&name).copied().unwrap_or(0);
            for number in last + 1..=stream.cached_info().state.last_sequence {
                let Ok(message) = stream.get_raw_message(number).await else { break };
                let at = (message.time.unix_timestamp_nanos() / 1_000_000) as u64;
                let text = String::from_utf8(message.payload.to_vec()).expect("a worker writes text");
                text.lines().for_each(|line| self.line(&serde_json::from_str(line).expect("JSON"), at));
                self.last.insert(name.clone(), number);
            }
        }
    }

    fn line(&mut self, line: &Value, at: u64) {
        if let Some(id) = line["payment_id"].as_str() {
            let &MadePayment { order_id, amount, .. } = &self.payments[id];
            return self.book.paid(id, order_id, amount, line, at);
        }
        let order = &self.files.orders[self.files.slots[&number(line, "order_id")] as usize];
        let (taken, quantity) =
            (self.taken.entry(order.item.clone()).or_default(), u64::from(order.quantity));
        if line["state"].is_string() {
            self.book.ended(line, at);
            *taken -= if line["state"] == "released" { quantity } else { 0 };
            return;
        }
        let is_new = line["status"] == "placed";
        if self.book.ordered(order, line) {
            *taken += if is_new { quantity } else { 0 };
        } else {
            assert!(*taken + quantity > self.stock, "there is stock: {line}");
        }
    }

    fn unfinished(&self) -> usize {
        let Book { ends, sold_out, .. } = &self.book;
        let is_open = |id: &u64| !ends.contains_key(id) && !sold_out.contains(id);
        self.files.orders.iter().filter(|order| is_open(&order.order_id)).count()
    }
}

/// Waits until each order of the files in a directory has ended or is sold out in a cluster, and compares
/// that with a replay of the answers. `check_after` is in ms.
pub(crate) fn cluster(urls: &str, directory: &Path, stock: u64, check_after: u64) -> String {
    let [orders, payments] = ["orders.csv", "payments.csv"].map(|name| directory.join(name));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams { out: &mut out, err: &mut err };
    let files = Files::read(&orders, Some(&payments), &mut streams).expect("the files are read");
    let mut numbers = HashMap::<u64, u32>::new();
    let named = files.payments.iter().map(|payment| {
        let number = numbers.entry(payment.order_id).or_default();
        *number += 1;
        (format!("{}-{number}", payment.order_id), *payment)
    });
    let payments = named.collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    // It begins tasks of its own.
    let _guard = runtime.enter();
    let servers = urls.split(',').map(|url| url.parse::<ServerAddr>().expect("a URL"));
    let servers = servers.collect::<Vec<_>>();
    let client = runtime.block_on(async_nats::connect(servers)).expect("a connection");
    let book = Book::new(check_after);
    let (jetstream, taken, last) = (jetstream::new(client), HashMap::new(), BTreeMap::new());
    let mut reader = Reader { jetstream, book, files, payments, stock, taken, last };
    let begin = Instant::now();
    loop {
        runtime.block_on(reader.read_on());
        let unfinished = reader.unfinished();
        if unfinished == 0 {
            return reader.book.compare(stock);
        }
        assert!(begin.elapsed() < PATIENCE, "{unfinished} orders are not decided");
        thread::sleep(Duration::from_millis(200));
    }
}

//! Random cases for tests: scarce stock, and events that meet at the same instants; and how they end by a
//! model of the rules, which shares no code with the shop, and by the program `order-reconciliation`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use order_reconciliation::Streams;
use order_reconciliation::outcomes::{MadePayment, PlacedOrder};

use crate::serve::books::Shop;

/// The orders of a case. All of their checks are before instant 30.
pub(crate) const ORDERS: u64 = 20;

/// Draws a shop, with its orders and its payments by date.
pub(crate) fn case(
    rng: &mut fastrand::Rng,
    max_pending: usize,
) -> (Shop, Vec<PlacedOrder>, Vec<MadePayment>) {
    let check_after = rng.u64(1..6);
    let order = |order_id| {
        let (item, placed_at) = (format!("item-{}", rng.u8(0..2)), rng.u64(1..20));
        PlacedOrder { order_id, item, quantity: rng.u32(1..3), amount: rng.u64(0..3), placed_at }
    };
    let mut orders = (1..=ORDERS).map(order).collect::<Vec<_>>();
    orders.sort_by_key(|order| order.placed_at);
    let payment = |_| {
        let order = &orders[rng.usize(0..orders.len())];
        let paid_at = order.placed_at + rng.u64(0..check_after + 3);
        MadePayment { order_id: order.order_id, amount: rng.u64(0..3), paid_at }
    };
    let mut payments = (0..30).map(payment).collect::<Vec<_>>();
    payments.sort_by_key(|payment| payment.paid_at);
    let shop = Shop { stock: rng.u64(1..6), check_after, max_pending, in_memory: usize::MAX };
    (shop, orders, payments)
}

/// How each order ends, by the rules in words. It looks at every order and payment again for each order.
pub(crate) fn model(
    shop: Shop,
    orders: &[PlacedOrder],
    payments: &[MadePayment],
) -> BTreeMap<u64, &'static str> {
    let mut ends = Vec::<(&PlacedOrder, &str)>::new();
    for order in orders {
        // What is released at an instant is on sale from the next one on.
        let holds = |(earlier, end): &(&PlacedOrder, &str)| {
            let sells = *end == "released" && earlier.placed_at + shop.check_after < order.placed_at;
            earlier.item == order.item && *end != "sold_out" && !sells
        };
        let held = ends.iter().filter(|end| holds(end)).map(|(earlier, _)| u64::from(earlier.quantity));
        let fits = held.sum::<u64>() + u64::from(order.quantity) <= shop.stock;
        ends.push((order, if fits { end(shop, order, payments) } else { "sold_out" }));
    }
    ends.into_iter().map(|(order, end)| (order.order_id, end)).collect()
}

/// How an order ends that is placed.
fn end(shop: Shop, order: &PlacedOrder, payments: &[MadePayment]) -> &'static str {
    let counts = |payment: &&MadePayment| {
        payment.order_id == order.order_id && payment.paid_at <= order.placed_at + shop.check_after
    };
    let mut sum = 0;
    for payment in payments.iter().filter(counts) {
        if sum == 0 && payment.amount == order.amount {
            return "paid_early";
        }
        sum += payment.amount;
    }
    if sum == order.amount { "confirmed" } else { "released" }
}

/// How many orders end in each way.
pub(crate) fn totals<'a>(ends: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, u64> {
    let mut totals = BTreeMap::new();
    ends.into_iter().for_each(|end| *totals.entry(end.to_owned()).or_default() += 1);
    totals
}

/// The program `order-reconciliation`, with files in a directory of its own.
pub(crate) struct Replay(PathBuf);

impl Replay {
    pub(crate) fn new() -> Self {
        let directory = std::env::temp_dir().join(format!("orders-scarce-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        Self(directory)
    }

    /// How many orders end in each way.
    pub(crate) fn totals(
        &self,
        shop: Shop,
        orders: &[PlacedOrder],
        payments: &[MadePayment],
    ) -> BTreeMap<String, u64> {
        let (mut placed, mut paid) =
            ("order_id,item,quantity,amount_cents,placed_at_ms\n".to_owned(), String::new());
        for PlacedOrder { order_id, item, quantity, amount, placed_at } in orders {
            let _ = writeln!(placed, "{order_id},{item},{quantity},{amount},{placed_at}");
        }
        for MadePayment { order_id, amount, paid_at } in payments {
            let _ = writeln!(paid, "{order_id},{amount},{paid_at}");
        }
        let placed = self.write("orders.csv", placed);
        let paid = self.write("payments.csv", format!("order_id,amount_cents,paid_at_ms\n{paid}"));
        let (stock, check_after) = (shop.stock.to_string(), format!("{}ms", shop.check_after));
        let args = ["order-reconciliation", "--json", "--stock", &stock, "--check-after", &check_after];
        let files = [OsString::from("--orders"), placed.into(), "--payments".into(), paid.into()];
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams { input: &mut &b""[..], out: &mut out, err: &mut err };
        let code = order_reconciliation::run(args.map(OsString::from).into_iter().chain(files), &mut streams);
        assert_eq!((code, String::from_utf8_lossy(&err).as_ref()), (0, ""));
        let report = serde_json::from_slice::<serde_json::Value>(&out).expect("a report");
        let count = |path: &str| report.pointer(path).and_then(serde_json::Value::as_u64).expect("a number");
        let ends = ["paid_early", "confirmed", "released", "orders/sold_out"];
        let counts = ends.map(|end| (end.trim_start_matches("orders/"), count(&format!("/0/{end}"))));
        counts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(end, count)| (end.to_owned(), count))
            .collect()
    }

    fn write(&self, name: &str, text: String) -> PathBuf {
        let path = Path::new(&self.0).join(name);
        fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

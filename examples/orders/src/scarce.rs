//! Random cases for tests: scarce stock, and events that meet at the same instants; and how they end by a
//! model of the rules, which shares no code with the shop.

use std::collections::BTreeMap;

use order_reconciliation::outcomes::{MadePayment, PlacedOrder};

use crate::serve::books::Shop;

/// The orders of a case. All of their checks are before instant 30.
pub(crate) const ORDERS: u64 = 20;

/// Draws a shop, with its orders and its payments by date.
pub(crate) fn case(rng: &mut fastrand::Rng) -> (Shop, Vec<PlacedOrder>, Vec<MadePayment>) {
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
    let shop = Shop { stock: rng.u64(1..6), check_after, in_memory: usize::MAX };
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

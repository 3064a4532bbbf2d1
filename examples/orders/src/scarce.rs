//! Random cases for tests: scarce stock, and events that meet at the same instants.

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

//! What the replay decides for each order, by its id: for audits of a server.

use std::collections::{BTreeMap, HashMap};

use crate::ledger::{Item, Ledger, Micros, Order, Page, State};
use crate::load::{self, PlannedOrder, PlannedPayment, Timeline};
use crate::progress::Progress;
use crate::slices;
use crate::wheel::WheelDriver;

/// An order that was accepted. Times are in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedOrder {
    /// Names the order.
    pub order_id: u64,
    /// The item that is ordered.
    pub item: String,
    /// In units.
    pub quantity: u32,
    /// In cents.
    pub amount: u64,
    /// When it was placed.
    pub placed_at: u64,
}

/// A payment. Times are in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadePayment {
    /// The order it is for.
    pub order_id: u64,
    /// In cents.
    pub amount: u64,
    /// When it came in.
    pub paid_at: u64,
}

/// Replays orders and payments by the virtual clock, as the program does, and returns how each order
/// ended: `paid_early`, `confirmed`, `released` or `sold_out`. Payments for unknown orders are skipped.
/// `rules.rs` says which event comes first. `check_after` is in ms.
#[must_use]
pub fn outcomes(
    orders: &[PlacedOrder],
    payments: &[MadePayment],
    stock: u64,
    check_after: u64,
) -> BTreeMap<u64, &'static str> {
    let check_after = check_after * MICROS;
    let mut timeline = [timeline(orders, payments)];
    load::schedule(&mut timeline, slices::lead(check_after), 1.0);
    let ledger = Ledger::new(vec![page(orders, stock, check_after)]);
    let progress = Progress::bar("replaying", orders.len() as u64);
    slices::replay(WheelDriver::new(1), &ledger, &progress, timeline.into(), check_after);
    progress.finish();
    let ends = ledger.into_pages().flat_map(|page| page.orders);
    orders.iter().zip(ends).map(|(order, ended)| (order.order_id, name(ended.state))).collect()
}

/// The ledger counts in microseconds.
const MICROS: Micros = 1_000;

fn timeline(orders: &[PlacedOrder], payments: &[MadePayment]) -> Timeline {
    let slots = orders.iter().zip(0..).map(|(order, slot)| (order.order_id, slot)).collect::<HashMap<_, _>>();
    let placed = orders.iter().zip(0..).map(|(order, slot)| PlannedOrder { at: order.placed_at, slot });
    let paid = payments.iter().filter_map(|&MadePayment { order_id, amount, paid_at }| {
        let slot = *slots.get(&order_id)?;
        let placed_at = orders[slot as usize].placed_at;
        Some(PlannedPayment { at: placed_at, paid_at, slot, amount })
    });
    Timeline { orders: placed.collect(), payments: paid.collect() }
}

fn page(orders: &[PlacedOrder], stock: u64, check_after: Micros) -> Page {
    let (mut page, mut items) = (Page::new(check_after), HashMap::new());
    for order in orders {
        let item = *items.entry(&order.item).or_insert_with(|| {
            page.items.push(Item { stock, ..Item::default() });
            page.items.len() as u32 - 1
        });
        page.orders.push(Order::planned(item, order.quantity, order.amount));
    }
    page
}

fn name(state: State) -> &'static str {
    match state {
        State::PaidEarly => "paid_early",
        State::Confirmed => "confirmed",
        State::Released => "released",
        State::Planned | State::Pending | State::Paid | State::SoldOut | State::Refused => "sold_out",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_ends_as_its_payments_say() {
        let order = |order_id, placed_at| PlacedOrder {
            order_id,
            item: "nut".to_owned(),
            quantity: 1,
            amount: 100,
            placed_at,
        };
        let orders = [order(1, 0), order(2, 0), order(3, 1), order(4, 2), order(5, 10)];
        let pay = |order_id, amount, paid_at| MadePayment { order_id, amount, paid_at };
        let payments = [pay(1, 100, 5), pay(2, 40, 10), pay(2, 60, 10), pay(3, 100, 12), pay(9, 1, 1)];
        let ends = outcomes(&orders, &payments, 3, 10);
        let ends = ends.into_iter().collect::<Vec<_>>();
        let expected = ["paid_early", "confirmed", "released", "sold_out", "sold_out"];
        assert_eq!(ends, (1..).zip(expected).collect::<Vec<_>>());
    }
}

//! What the replay decides for each order, by its id: for audits of a server.

use std::collections::{BTreeMap, HashMap};

use crate::ledger::{Item, Micros, Order, Page, Received, State};

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

/// What happens at one time happens in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Place(u32),
    Pay(u32, usize),
    Check(u32),
}

/// Replays orders and payments in the order of time, and returns how each order ended: `paid_early`,
/// `confirmed`, `released` or `sold_out`. Stock that a check takes back is on sale at once, as on a
/// server. Payments of the same time are taken as they come; those for unknown orders are skipped.
#[must_use]
pub fn outcomes(
    orders: &[PlacedOrder],
    payments: &[MadePayment],
    stock: u64,
    check_after: u64,
) -> BTreeMap<u64, &'static str> {
    let slots = orders.iter().zip(0..).map(|(order, slot)| (order.order_id, slot)).collect::<HashMap<_, _>>();
    let placed = orders.iter().zip(0..).map(|(order, slot)| (order.placed_at, Event::Place(slot)));
    let checks =
        orders.iter().zip(0..).map(|(order, slot)| (order.placed_at + check_after, Event::Check(slot)));
    let paid = payments.iter().enumerate().filter_map(|(number, payment)| {
        slots.get(&payment.order_id).map(|&slot| (payment.paid_at, Event::Pay(slot, number)))
    });
    let mut events = placed.chain(checks).chain(paid).collect::<Vec<_>>();
    events.sort_by_key(|&(at, event)| (at, rank(event)));
    let mut page = page(orders, stock, check_after);
    events.into_iter().for_each(|(at, event)| step(&mut page, payments, at, event));
    orders.iter().zip(&page.orders).map(|(order, ended)| (order.order_id, name(ended.state))).collect()
}

fn rank(event: Event) -> (u8, usize) {
    match event {
        Event::Place(_) => (0, 0),
        Event::Pay(_, number) => (1, number),
        Event::Check(_) => (2, 0),
    }
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

fn step(page: &mut Page, payments: &[MadePayment], at: Micros, event: Event) {
    match event {
        Event::Place(slot) => drop(page.place(slot, at)),
        Event::Pay(slot, number) => {
            if page.pay(slot, payments[number].amount, at) == Received::InFull {
                page.end_early(slot);
            }
        }
        Event::Check(slot) if page.orders[slot as usize].state == State::Pending => {
            page.check(slot, at);
            page.restock();
        }
        Event::Check(_) => {}
    }
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

//! Turns orders and payments into the pages of a ledger and a timeline for each producer.

use std::collections::HashMap;

use crate::input::{MadePayment, PlacedOrder};
use crate::ledger::{Item, Micros, Order, OrderRef, Page};
use crate::replay;

/// The input of the job.
pub(crate) struct Plan {
    pub(crate) pages: Vec<Page>,
    pub(crate) timelines: Vec<Timeline>,
}

/// The events of one producer, by the time at which it handles them.
#[derive(Default)]
pub(crate) struct Timeline {
    /// The slots of the orders to place.
    pub(crate) orders: Vec<Planned<u32>>,
    pub(crate) payments: Vec<Planned<Payment>>,
}

/// An event, and when the producer handles it.
pub(crate) struct Planned<T> {
    pub(crate) at: Micros,
    pub(crate) event: T,
}

/// A payment for an order of this producer's page. The producer takes it ahead of its date.
pub(crate) struct Payment {
    pub(crate) slot: u32,
    /// In cents.
    pub(crate) amount: u64,
    pub(crate) paid_at: Micros,
}

impl Plan {
    /// Plans the job for a number of producers. Times begin at the first order. Payments are taken
    /// ahead of their dates, but not before their orders; those for unknown orders are skipped. Records
    /// of the same time keep their order. `check_after` is in ms.
    pub(crate) fn of(
        orders: &[PlacedOrder],
        payments: &[MadePayment],
        producers: u32,
        stock: u64,
        check_after: u64,
    ) -> Self {
        let check_after = check_after * replay::MICROS_PER_MS;
        let first = orders.iter().map(|order| order.placed_at).min().unwrap_or(0);
        let since_first = |millis: u64| (millis - first) * replay::MICROS_PER_MS;
        let (mut pages, mut timelines) = (Vec::new(), Vec::new());
        pages.resize_with(producers as usize, || Page::new(check_after));
        timelines.resize_with(producers as usize, Timeline::default);
        let (mut items, mut entered) = (HashMap::new(), HashMap::new());
        for order in orders {
            let next = items.len() as u32;
            let item = *items.entry(&*order.item).or_insert_with(|| {
                // New items go to the pages in turn.
                let page = next % producers;
                pages[page as usize].items.push(Item { stock, ..Item::default() });
                OrderRef { page, slot: next / producers }
            });
            let page = &mut pages[item.page as usize];
            let place = OrderRef { page: item.page, slot: page.orders.len() as u32 };
            page.orders.push(Order::planned(item.slot, order.quantity, order.amount));
            let at = since_first(order.placed_at);
            timelines[place.page as usize].orders.push(Planned { at, event: place.slot });
            entered.insert(order.order_id, (place, order.placed_at));
        }
        for &MadePayment { order_id, amount, paid_at } in payments {
            let Some(&(place, placed_at)) = entered.get(&order_id) else { continue };
            let (placed_at, paid_at) = (since_first(placed_at), since_first(paid_at.max(placed_at)));
            let at = paid_at.saturating_sub(replay::lead(check_after)).max(placed_at);
            let event = Payment { slot: place.slot, amount, paid_at };
            timelines[place.page as usize].payments.push(Planned { at, event });
        }
        for Timeline { orders, payments } in &mut timelines {
            orders.sort_by_key(|order| order.at);
            payments.sort_by_key(|payment| (payment.at, payment.event.paid_at));
        }
        Self { pages, timelines }
    }
}

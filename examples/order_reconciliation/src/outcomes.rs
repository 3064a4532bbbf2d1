//! What the replay decides for each order, by its id: for tests of a server.

use std::collections::BTreeMap;

use crate::ledger::{Ledger, State};
use crate::plan::Plan;
use crate::replay;
use crate::wheel::WheelDriver;

pub use crate::input::{MadePayment, PlacedOrder};

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
    let Plan { pages, timelines } = Plan::of(orders, payments, 1, stock, check_after);
    let ledger = Ledger::new(pages);
    replay::replay(WheelDriver::new(1), &ledger, &timelines, check_after);
    // The one page has the orders in their sequence.
    let ends = ledger.into_pages().flat_map(|page| page.orders);
    orders.iter().zip(ends).map(|(order, ended)| (order.order_id, name(ended.state))).collect()
}

fn name(state: State) -> &'static str {
    match state {
        State::PaidEarly => "paid_early",
        State::Confirmed => "confirmed",
        State::Released => "released",
        State::Planned | State::Pending | State::SoldOut => "sold_out",
    }
}

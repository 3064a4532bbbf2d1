//! What is sent over which connection, and in which order.
//!
//! An item belongs to one connection, a *lane*. The lane sends the item's orders by their dates, and
//! payments after the orders that they are for. So what is sold out does not depend on which of two
//! connections is faster, and the payments of an order are sent in the order of their dates.

use std::collections::HashMap;

use order_reconciliation::files::Files;

/// What one connection sends.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// Indices into [`Files::orders`], by date.
    pub(crate) orders: Vec<u32>,
    /// Payments in the order in which they are sent.
    pub(crate) payments: Vec<Paid>,
    /// How many payments are dated after the check, and left out.
    pub(crate) late: usize,
}

/// A payment of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paid {
    /// The index into [`Files::payments`].
    pub(crate) payment: u32,
    /// Where its order stands in [`Lane::orders`].
    pub(crate) order: u32,
    /// Which of the payments for the same order it is, counted from 1 in file order. With the order's
    /// id it names the payment, for every feed of the same files alike.
    pub(crate) number: u32,
}

/// Divides the files among connections. Times are in ms. `by_date`: payments are sent by their own
/// dates, also those that are late, and not as soon as their orders are placed.
pub(crate) fn lanes(files: &Files, connections: usize, check_after: u64, by_date: bool) -> Vec<Lane> {
    let mut lanes = (0..connections).map(|_| Lane::default()).collect::<Vec<_>>();
    let places = place(files, &mut lanes);
    let mut numbers = vec![0_u32; files.orders.len()];
    for (payment, index) in files.payments.iter().zip(0..) {
        let slot = files.slots[&payment.order_id] as usize;
        numbers[slot] += 1;
        let (lane, order) = places[slot];
        let paid = Paid { payment: index, order, number: numbers[slot] };
        let late = payment.paid_at > files.orders[slot].placed_at.saturating_add(check_after);
        let lane = &mut lanes[lane as usize];
        if late && !by_date { lane.late += 1 } else { lane.payments.push(paid) }
    }
    let paid_at = |paid: &Paid| files.payments[paid.payment as usize].paid_at;
    for lane in &mut lanes {
        lane.payments.sort_by_key(|paid| (if by_date { 0 } else { paid.order }, paid_at(paid)));
    }
    lanes
}

/// Enters the orders into the lanes by date. Returns the lane of each, and its place there.
fn place<'a>(files: &'a Files, lanes: &mut [Lane]) -> Vec<(u32, u32)> {
    let mut by_date = (0..files.orders.len() as u32).collect::<Vec<_>>();
    by_date.sort_by_key(|&slot| files.orders[slot as usize].placed_at);
    let (mut items, mut places) = (HashMap::<&'a str, u32>::new(), vec![(0, 0); files.orders.len()]);
    for slot in by_date {
        // New items go to the lanes in turn.
        let next = (items.len() % lanes.len()) as u32;
        let number = *items.entry(&files.orders[slot as usize].item).or_insert(next);
        let orders = &mut lanes[number as usize].orders;
        places[slot as usize] = (number, orders.len() as u32);
        orders.push(slot);
    }
    places
}

#[cfg(test)]
mod tests {
    use order_reconciliation::outcomes::{MadePayment, PlacedOrder};

    use super::*;

    fn files(orders: &[(u64, &str, u64)], payments: &[(u64, u64)]) -> Files {
        let order = |&(order_id, item, placed_at): &(u64, &str, u64)| {
            let item = item.to_owned();
            PlacedOrder { order_id, item, quantity: 1, amount: 9, placed_at }
        };
        let payment = |&(order_id, paid_at): &(u64, u64)| MadePayment { order_id, amount: 9, paid_at };
        let orders = orders.iter().map(order).collect::<Vec<_>>();
        let slots = orders.iter().map(|order| order.order_id).zip(0..).collect();
        let mut files = Files::default();
        (files.orders, files.slots) = (orders, slots);
        files.payments = payments.iter().map(payment).collect();
        files
    }

    fn sent(paid: &[Paid]) -> Vec<(u32, u32)> {
        paid.iter().map(|paid| (paid.payment, paid.number)).collect()
    }

    #[test]
    fn an_item_has_one_lane_and_its_orders_go_by_date() {
        let files = files(&[(1, "a", 5), (2, "b", 1), (3, "a", 2), (4, "c", 9), (5, "b", 1)], &[]);
        let lanes = lanes(&files, 2, 100, false);
        let orders = lanes.iter().map(|lane| lane.orders.clone()).collect::<Vec<_>>();
        assert_eq!(orders, [vec![1, 4, 3], vec![2, 0]]);
    }

    #[test]
    fn payments_follow_their_orders_or_their_dates_and_late_ones_are_left_out() {
        let payments = [(2, 30), (1, 101), (2, 20), (1, 100), (2, 102), (1, 40)];
        let files = files(&[(1, "a", 0), (2, "a", 1)], &payments);
        let by_order = &lanes(&files, 1, 100, false)[0];
        assert_eq!(sent(&by_order.payments), [(5, 3), (3, 2), (2, 2), (0, 1)]);
        assert_eq!(by_order.late, 2);
        let by_date = &lanes(&files, 1, 100, true)[0];
        assert_eq!(sent(&by_date.payments), [(2, 2), (0, 1), (5, 3), (3, 2), (1, 1), (4, 3)]);
    }
}

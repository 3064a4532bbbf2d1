//! The rules as an independent model: compared with the replay, on random orders of scarce stock whose
//! events meet at the same instants.

use std::collections::BTreeMap;

use fastrand::Rng;
use order_reconciliation::outcomes::{MadePayment, PlacedOrder, outcomes};

/// A case: orders and payments as files hold them, and the shop's terms.
struct Case {
    orders: Vec<PlacedOrder>,
    payments: Vec<MadePayment>,
    stock: u64,
    check_after: u64,
}

impl Case {
    fn random(rng: &mut Rng) -> Self {
        let check_after = [1, 2, 7, 600, 1_000, 1_800_000][rng.usize(0..6)];
        let (count, items) = (rng.u64(1..40), rng.u64(1..4));
        let orders = (1..=count).map(|order_id| PlacedOrder {
            order_id,
            item: format!("item-{}", rng.u64(0..items)),
            quantity: rng.u32(1..3),
            amount: rng.u64(0..4),
            // Whole numbers of waits, and the instants beside them: many orders meet checks.
            placed_at: near(1 + check_after * rng.u64(0..5), rng) + rng.u64(0..3) * (check_after / 600),
        });
        let orders = orders.collect::<Vec<_>>();
        let payments = (0..count * 2).map(|_| {
            let order = &orders[rng.usize(0..orders.len())];
            let whole = rng.bool();
            let amount = if whole { order.amount } else { rng.u64(0..4) };
            let instants =
                [0, order.placed_at, order.placed_at + check_after / 2, order.placed_at + check_after];
            let paid_at = near(instants[rng.usize(0..instants.len())], rng);
            MadePayment { order_id: order.order_id, amount, paid_at }
        });
        let payments = payments.collect();
        Self { orders, payments, stock: rng.u64(1..6), check_after }
    }

    /// How each order ends. It reads every order and payment again for each order.
    fn model(&self) -> BTreeMap<u64, &'static str> {
        let mut by_date = self.orders.iter().collect::<Vec<_>>();
        by_date.sort_by_key(|order| order.placed_at);
        let mut ends = Vec::<(&PlacedOrder, &'static str)>::new();
        for order in by_date {
            let holds = |&&(earlier, end): &&(&PlacedOrder, &str)| match end {
                "sold_out" => false,
                "released" => earlier.placed_at + self.check_after >= order.placed_at,
                _ => true,
            };
            let held = ends.iter().filter(|(earlier, _)| earlier.item == order.item).filter(holds);
            let held = held.map(|(earlier, _)| u64::from(earlier.quantity)).sum::<u64>();
            let fits = held + u64::from(order.quantity) <= self.stock;
            ends.push((order, if fits { self.end(order) } else { "sold_out" }));
        }
        ends.into_iter().map(|(order, end)| (order.order_id, end)).collect()
    }

    /// How an order ends that is placed.
    fn end(&self, order: &PlacedOrder) -> &'static str {
        let due = order.placed_at + self.check_after;
        let own = self.payments.iter().filter(|payment| payment.order_id == order.order_id);
        let mut counted = own.filter(|payment| payment.paid_at <= due).collect::<Vec<_>>();
        counted.sort_by_key(|payment| payment.paid_at.max(order.placed_at));
        let mut sum = 0;
        for payment in counted {
            if sum == 0 && payment.amount == order.amount {
                return "paid_early";
            }
            sum += payment.amount;
        }
        if sum == order.amount { "confirmed" } else { "released" }
    }
}

/// The instant, or one of those beside it.
fn near(at: u64, rng: &mut Rng) -> u64 {
    (at + rng.u64(0..3)).saturating_sub(1)
}

#[test]
fn each_order_ends_as_the_model_says() {
    for seed in 0..5_000 {
        let case = Case::random(&mut Rng::with_seed(seed));
        let found = outcomes(&case.orders, &case.payments, case.stock, case.check_after);
        assert_eq!(found, case.model(), "seed {seed}: {:#?}{:#?}", case.orders, case.payments);
    }
}

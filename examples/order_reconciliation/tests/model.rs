//! The rules as an independent model: compared with `replay` and with what audits expect, on random
//! orders of scarce stock whose events meet at the same instants.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write;

use fastrand::Rng;
use order_reconciliation::outcomes::{MadePayment, PlacedOrder, outcomes};

use support::{Directory, run};

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

    /// The totals of the program.
    fn replay(&self, directory: &Directory, more: &[&str]) -> BTreeMap<&'static str, u64> {
        let (orders, payments) = self.write(directory);
        let (stock, check_after) = (self.stock.to_string(), format!("{}ms", self.check_after));
        let args = ["--orders", &orders, "--payments", &payments, "--stock", &stock];
        let run = run(&[&args[..], &["--check-after", &check_after], more].concat());
        run.assert_ok();
        let paths = [
            ("paid_early", "    paid early"),
            ("confirmed", "    confirmed"),
            ("released", "    released"),
            ("sold_out", "  sold out"),
        ];
        let totals = paths.into_iter().map(|(end, row)| (end, run.count(row)));
        totals.filter(|&(_, count)| count > 0).collect()
    }

    fn write(&self, directory: &Directory) -> (String, String) {
        let mut orders = "order_id,item,quantity,amount_cents,placed_at_ms\n".to_owned();
        for PlacedOrder { order_id, item, quantity, amount, placed_at } in &self.orders {
            let _ = writeln!(orders, "{order_id},{item},{quantity},{amount},{placed_at}");
        }
        let mut payments = "order_id,amount_cents,paid_at_ms\n".to_owned();
        for MadePayment { order_id, amount, paid_at } in &self.payments {
            let _ = writeln!(payments, "{order_id},{amount},{paid_at}");
        }
        (directory.write("orders.csv", &orders), directory.write("payments.csv", &payments))
    }
}

/// The instant, or one of those beside it.
fn near(at: u64, rng: &mut Rng) -> u64 {
    (at + rng.u64(0..3)).saturating_sub(1)
}

fn totals(ends: &BTreeMap<u64, &'static str>) -> BTreeMap<&'static str, u64> {
    let mut totals = BTreeMap::new();
    ends.values().for_each(|&end| *totals.entry(end).or_default() += 1);
    totals
}

#[test]
fn what_audits_expect_of_each_order_is_what_the_model_says() {
    for seed in 0..5_000 {
        let case = Case::random(&mut Rng::with_seed(seed));
        let found = outcomes(&case.orders, &case.payments, case.stock, case.check_after);
        assert_eq!(found, case.model(), "seed {seed}: {:#?}{:#?}", case.orders, case.payments);
    }
}

#[test]
fn replay_agrees_with_the_model_on_both_engines_and_any_number_of_threads() {
    let directory = Directory::new("model");
    for seed in 0..200 {
        let case = Case::random(&mut Rng::with_seed(seed));
        let producers = (1 + seed % 3).to_string();
        let found = case.replay(&directory, &["--producers", &producers]);
        assert_eq!(found, totals(&case.model()), "seed {seed}: {:#?}{:#?}", case.orders, case.payments);
    }
}

/// Stock 1: an order that is released at its check, and one right after it.
#[test]
fn a_released_unit_is_on_sale_from_the_next_instant_on() {
    let directory = Directory::new("next-instant");
    let order = |order_id, placed_at| {
        let item = "nut".to_owned();
        PlacedOrder { order_id, item, quantity: 1, amount: 5, placed_at }
    };
    for (second, expected) in [(1_800_000, "sold_out"), (1_800_001, "released"), (1_800_100, "released")] {
        let orders = vec![order(1, 0), order(2, second)];
        let case = Case { orders, payments: Vec::new(), stock: 1, check_after: 1_800_000 };
        assert_eq!(case.model()[&2], expected);
        assert_eq!(case.replay(&directory, &[]), totals(&case.model()), "an order at {second}");
    }
}

use std::collections::BTreeMap;
use std::time::Instant;

use order_reconciliation::outcomes::{MadePayment, PlacedOrder, outcomes};

use super::super::{client, names, snapshot};
use super::*;
use crate::scarce::{ORDERS, case, model};
use crate::serve::books;

const REMEMBER: u64 = 1_000;
/// Instants, in ms. All checks are before the last one.
const INSTANTS: std::ops::Range<u64> = 1..30;
/// Random cases, each of [`ORDERS`] orders; `.ci/run` and `.ci/long` set other numbers.
const CASES: u64 = 100;

/// Scarce stock, events that meet at the same instants, an owner that begins again from a snapshot at any
/// instant, and any number of orders in memory: a model, the replay, the books of `serve` and a partition of
/// the cluster agree on every order.
#[test]
fn the_model_the_replay_serve_and_the_cluster_agree() {
    let cases = std::env::var("ORDERS_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let begin = Instant::now();
    for seed in 0..cases {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (shop, orders, payments) = case(&mut rng, usize::MAX);
        let expected = model(shop, &orders, &payments);
        assert_eq!(
            outcomes(&orders, &payments, shop.stock, shop.check_after),
            expected,
            "the replay, seed {seed}"
        );
        let cluster = played(shop, &orders, &payments, rng.u64(INSTANTS));
        let cluster = cluster.iter().map(|(id, end)| (*id, &**end)).collect::<BTreeMap<_, _>>();
        assert_eq!(cluster, expected, "the cluster, seed {seed}");
        let in_memory = [usize::MAX, 5, 1, 0][rng.usize(0..4)];
        let served = books::tests::played(Shop { in_memory, ..shop }, &orders, &payments);
        assert_eq!(served, expected, "serve, seed {seed}, {in_memory} in memory");
    }
    println!(
        "| model, replay, serve, cluster: orders, differences, time | {}, 0, {:.0?} |",
        cases * ORDERS,
        begin.elapsed()
    );
}

/// How each order ends, by the lines of results.
fn played(
    shop: Shop,
    orders: &[PlacedOrder],
    payments: &[MadePayment],
    restart: u64,
) -> BTreeMap<u64, String> {
    let mut partition = Partition::new(shop, REMEMBER).expect("an empty partition");
    let (mut ends, mut sequence) = (BTreeMap::new(), 0);
    for now in INSTANTS {
        if now == restart {
            let bytes = snapshot::encode(&partition);
            partition = snapshot::decode(&bytes, shop, REMEMBER).expect("a snapshot");
        }
        let placed = orders.iter().filter(|order| order.placed_at == now).map(|order| {
            let PlacedOrder { order_id, item, quantity, amount, .. } = order;
            let names = format!("\"order_id\":{order_id},\"item\":\"{item}\"");
            format!("{{{names},\"quantity\":{quantity},\"amount_cents\":{amount}}}\n")
        });
        let paid = payments.iter().enumerate().filter(|(_, payment)| payment.paid_at == now);
        let paid = paid.map(|(number, &MadePayment { order_id, amount, .. })| {
            format!("{{\"payment_id\":\"{number}\",\"order_id\":{order_id},\"amount_cents\":{amount}}}\n")
        });
        for (kind, payload) in [(Kind::Orders, placed.collect::<String>()), (Kind::Payments, paid.collect())]
        {
            sequence += 1;
            let (subject, payload) = (names::log_subject(0, kind), payload.into());
            let input = Input { sequence, time: now * NANOS, subject, payload };
            let mut lines = String::new();
            partition.apply(&input, &mut lines).expect("no message is an error");
            let ended = client::lines(lines.as_bytes()).into_iter().filter_map(|line| {
                let sold_out = line.status.filter(|status| status == "sold_out");
                line.order_id.zip(line.state.or(sold_out))
            });
            ends.extend(ended);
        }
    }
    ends
}

use std::collections::BTreeMap;

use order_reconciliation::outcomes::{MadePayment, PlacedOrder, outcomes};

use super::super::{client, names, snapshot};
use super::*;
use crate::scarce::{ORDERS, case};

const REMEMBER: u64 = 1_000;
/// Instants, in ms. All checks are before the last one.
const INSTANTS: std::ops::Range<u64> = 1..30;
/// Random cases, each of [`ORDERS`] orders; `.ci/long` sets another number.
const CASES: u64 = 500;

/// Scarce stock, events that meet at the same instants, and an owner that begins again from a snapshot at
/// any instant: a partition decides as the replay does.
#[test]
fn a_partition_decides_as_the_replay_does() {
    let cases = std::env::var("ORDERS_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    for seed in 0..cases {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (shop, orders, payments) = case(&mut rng, usize::MAX);
        let expected = outcomes(&orders, &payments, shop.stock, shop.check_after);
        let found = played(shop, &orders, &payments, rng.u64(INSTANTS));
        let same =
            found.iter().map(|(id, end)| (*id, &**end)).eq(expected.iter().map(|(id, end)| (*id, *end)));
        assert!(same, "seed {seed}: {found:?} and not {expected:?}");
    }
    println!("{} orders decided as the replay does", cases * ORDERS);
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

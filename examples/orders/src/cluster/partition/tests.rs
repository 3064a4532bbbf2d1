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
        let (shop, orders, payments) = case(&mut rng);
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

const SHOP: Shop = Shop { stock: 6, check_after: 50, in_memory: usize::MAX };

/// A log of orders, payments and ticks, several of them in one ms, some of them twice.
fn log() -> Vec<(u64, Kind, String)> {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut time = 5_000 * NANOS;
    let message = |number: u64| {
        time += rng.u64(0..4 * NANOS);
        let id = number / 3 + rng.u64(0..12);
        let order = |id| {
            let names = format!("\"order_id\":{id},\"item\":\"i{}\"", id % 9);
            format!("{{{names},\"quantity\":{},\"amount_cents\":100}}\n", id % 3 + 1)
        };
        match rng.u8(0..8) {
            0..=2 => (time, Kind::Orders, (id..id + 3).map(order).collect()),
            3..=6 => {
                let (part, whole) = (rng.u64(0..2), id.is_multiple_of(3));
                let cents = if whole { 100 } else { 40 + 20 * part };
                let names = format!("\"payment_id\":\"p{id}-{part}\",\"order_id\":{id}");
                (time, Kind::Payments, format!("{{{names},\"amount_cents\":{cents}}}\nnot a line\n"))
            }
            _ => (time, Kind::Tick, String::new()),
        }
    };
    (0..800).map(message).collect()
}

fn input(sequence: u64, time: u64, kind: Kind, text: &str) -> Input {
    let subject = names::log_subject(0, kind);
    Input { sequence, time, subject, payload: text.to_owned().into() }
}

fn applied(partition: &mut Partition, log: &[(u64, Kind, String)], from: usize) -> String {
    let mut out = String::new();
    for (number, (time, kind, payload)) in log.iter().enumerate().skip(from) {
        partition.apply(&input(number as u64 + 1, *time, *kind, payload), &mut out).unwrap();
    }
    out
}

/// The cluster depends on this: an owner that goes on from a snapshot, wherever it was taken,
/// writes what the first owner wrote.
#[test]
fn from_any_snapshot_the_log_gives_the_same_lines() {
    let log = log();
    let mut first = Partition::new(SHOP, REMEMBER).unwrap();
    let all = applied(&mut first, &log, 0);
    for state in ["sold_out", "duplicate", "late", "paid_early", "confirmed", "released", "invalid"] {
        assert!(all.contains(&format!("\"{state}\"")), "{state} does not occur");
    }
    for cut in (0..log.len()).step_by(7) {
        let mut before = Partition::new(SHOP, REMEMBER).unwrap();
        let mut out = applied(&mut before, &log[..cut], 0);
        let mut after = snapshot::decode(&snapshot::encode(&before), SHOP, REMEMBER).unwrap();
        assert_eq!(after.position, before.position);
        out += &applied(&mut after, &log, cut);
        assert!(out == all, "cut at {cut}");
        assert_eq!(after.position, first.position, "cut at {cut}");
    }
}

#[test]
fn no_check_is_early_and_a_late_log_catches_up_in_steps() {
    let mut partition = Partition::new(Shop { stock: 1 << 20, ..SHOP }, REMEMBER).unwrap();
    let order = |id| format!("{{\"order_id\":{id},\"item\":\"i\",\"quantity\":1,\"amount_cents\":1}}\n");
    let mut out = String::new();
    let mut tick = |time, kind, text: &str| {
        out.clear();
        partition.apply(&input(1, time, kind, text), &mut out).unwrap();
        (out.matches("released").count(), partition.next_check())
    };
    for first in [0, 1_000, 2_000] {
        let body = (first..first + 1_000).map(order).collect::<String>();
        tick(NANOS, Kind::Orders, &body);
    }
    assert_eq!(tick(51 * NANOS, Kind::Tick, "").0, 0, "at the instant at which they are due");
    assert_eq!(tick(51 * NANOS + 1, Kind::Tick, ""), (1_024, Some(52)));
    assert_eq!(tick(52 * NANOS, Kind::Tick, ""), (1_024, Some(52)));
    assert_eq!(tick(9 * NANOS, Kind::Tick, ""), (952, None), "a clock that went back is ignored");
}

/// What a message may hold by mistake costs itself: it is answered in a bounded number of bytes.
#[test]
fn others_items_and_great_answers_are_no_end() {
    let mut partition = Partition::new(SHOP, REMEMBER).unwrap();
    partition.home = (names::partition_of("nut", 16), 16);
    let mut apply = |kind, text: &str| {
        let mut out = String::new();
        partition.apply(&input(1, NANOS, kind, text), &mut out).unwrap();
        out
    };
    let order =
        |id, item| format!("{{\"order_id\":{id},\"item\":\"{item}\",\"quantity\":1,\"amount_cents\":1}}\n");
    let out = apply(Kind::Orders, &[order(1, "nut"), order(2, "item-1")].concat());
    assert!(out.contains("\"order_id\":1,\"status\":\"placed\""), "{out}");
    assert!(out.contains("its item belongs to partition 0, not to 8"), "{out}");
    let paid = "{\"payment_id\":\"p\",\"order_id\":1,\"item\":\"item-1\",\"amount_cents\":1}";
    assert!(apply(Kind::Payments, paid).contains("belongs to partition 0"));
    let controls = format!("{{\"order_id\":3,\"quantity\":\"{}\"}}\n", "\\u0001".repeat(160_000));
    assert!(apply(Kind::Orders, &controls).len() < 1_000);
    let many = format!("{{\"order_id\":\"{0}\",\"item\":\"{0}\"}}\n", "é".repeat(100)).repeat(MAX_LINES);
    let out = apply(Kind::Orders, &many);
    assert!(out.lines().count() == MAX_LINES && out.len() < 250 * MAX_LINES, "{}", out.len());
}

//! The bytes of a snapshot: all that a partition is at one message of its log, in JSON, and a
//! digest of it in 8 bytes.

use serde::{Deserialize, Serialize};

use crate::serve::books::Shop;
use crate::store::{Open, Recovered};

use super::memory::{Memory, Past};
use super::names::{DIGEST, digest};
use super::partition::{Partition, Position};

#[derive(Serialize, Deserialize)]
struct Snapshot {
    position: Position,
    /// The number of the last outcome.
    last_seq: u64,
    open: Vec<Open>,
    /// Items and units.
    sold: Vec<(String, u64)>,
    past: Past,
}

/// The snapshot of a partition.
pub(crate) fn encode(partition: &Partition) -> Vec<u8> {
    let Partition { books, memory, position, .. } = partition;
    let (open, sold) = (books.orders().collect(), books.sold().collect());
    let (position, last_seq, past) = (*position, books.last_seq(), memory.past());
    let snapshot = Snapshot { position, last_seq, open, sold, past };
    let mut bytes = serde_json::to_vec(&snapshot).expect("numbers and strings");
    let sum = digest(DIGEST, &bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// A partition from its snapshot; `None` if the bytes are no snapshot.
pub(crate) fn decode(bytes: &[u8], shop: Shop, remember: u64) -> Option<Partition> {
    let (json, sum) = bytes.split_last_chunk()?;
    if u64::from_le_bytes(*sum) != digest(DIGEST, json) {
        return None;
    }
    let Snapshot { position, last_seq, open, sold, past } = serde_json::from_slice(json).ok()?;
    // All checks that were due before the present ms have been made, or are due at once.
    let now = position.millis().saturating_sub(1);
    let memory = Memory::new(
        Recovered { now, last_seq, open, sold, ..Recovered::default() },
        remember,
        shop.check_after,
    );
    memory.restore(past);
    Partition::restore(shop, memory, position).ok()
}

#[cfg(test)]
mod tests {
    use super::super::names::{self, Kind};
    use super::super::partition::MAX_LINES;
    use super::super::reader::Input;
    use super::*;

    const SHOP: Shop = Shop { stock: 6, check_after: 50, in_memory: usize::MAX };
    const REMEMBER: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// A log of orders, payments and ticks, several of them in one ms, some of them twice.
    fn log() -> Vec<(u64, Kind, String)> {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut time = 5_000 * MS;
        let message = |number: u64| {
            time += rng.u64(0..4 * MS);
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

    fn apply(partition: &mut Partition, log: &[(u64, Kind, String)], from: usize) -> String {
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
        let all = apply(&mut first, &log, 0);
        for state in ["sold_out", "duplicate", "late", "paid_early", "confirmed", "released", "invalid"] {
            assert!(all.contains(&format!("\"{state}\"")), "{state} does not occur");
        }
        for cut in (0..log.len()).step_by(7) {
            let mut before = Partition::new(SHOP, REMEMBER).unwrap();
            let mut out = apply(&mut before, &log[..cut], 0);
            let mut after = decode(&encode(&before), SHOP, REMEMBER).unwrap();
            assert_eq!(after.position, before.position);
            out += &apply(&mut after, &log, cut);
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
            tick(MS, Kind::Orders, &body);
        }
        assert_eq!(tick(51 * MS, Kind::Tick, "").0, 0, "at the instant at which they are due");
        assert_eq!(tick(51 * MS + 1, Kind::Tick, ""), (1_024, Some(52)));
        assert_eq!(tick(52 * MS, Kind::Tick, ""), (1_024, Some(52)));
        assert_eq!(tick(9 * MS, Kind::Tick, ""), (952, None), "a clock that went back is ignored");
    }

    /// What a message may hold by mistake costs itself: it is answered in a bounded number of bytes.
    #[test]
    fn others_items_and_great_answers_are_no_end() {
        let mut partition = Partition::new(SHOP, REMEMBER).unwrap();
        partition.home = (names::partition_of("nut", 16), 16);
        let mut apply = |kind, text: &str| {
            let mut out = String::new();
            partition.apply(&input(1, MS, kind, text), &mut out).unwrap();
            out
        };
        let order = |id, item| {
            format!("{{\"order_id\":{id},\"item\":\"{item}\",\"quantity\":1,\"amount_cents\":1}}\n")
        };
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

    #[test]
    fn a_damaged_snapshot_is_refused() {
        let log = log();
        let mut partition = Partition::new(SHOP, REMEMBER).unwrap();
        apply(&mut partition, &log[..60], 0);
        let bytes = encode(&partition);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length], SHOP, REMEMBER).is_none(), "cut at {length}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(decode(&damaged, SHOP, REMEMBER).is_none(), "bit {at}");
        }
    }
}

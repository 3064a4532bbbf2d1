//! The bytes of a snapshot: all that a partition is at one message of its log.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | the version of the layout |
//! | 3 × 8 | last message applied, time of the log in ns, digest of all lines |
//! | 8 | number of the last outcome |
//! | 4 lists | pending orders; items and units sold; orders that ended; payments |
//! | 8 | digest of what stands before |
//!
//! A list begins with the number of its entries, in 8 bytes. Numbers are little endian.

use std::str;

use crate::serve::books::Shop;
use crate::store::{Known, Open, Recovery, Resume, StoreError, record};

use super::memory::{Memory, Restored};
use super::names::{DIGEST, digest};
use super::partition::{Partition, Position};

const VERSION: u8 = 3;

/// The snapshot of a partition.
pub(crate) fn encode(partition: &Partition) -> Vec<u8> {
    let Position { input, time, digest: lines } = partition.position;
    let mut bytes = vec![VERSION];
    for number in [input, time, lines, partition.books.last_seq()] {
        bytes.extend(number.to_le_bytes());
    }
    let (mut open, mut sold) = (List::default(), List::default());
    partition.books.tell(&mut Told(&mut open, &mut sold));
    let (mut ended, mut payments) = (List::default(), List::default());
    partition.memory.tell(
        |at, order_id, known| {
            ended.entry(|bytes| numbers(bytes, &[at, order_id, known.check_at, known.content]));
        },
        |at, payment_id, content| {
            payments.entry(|bytes| {
                numbers(bytes, &[at, content]);
                name(bytes, payment_id);
            });
        },
    );
    [open, sold, ended, payments].iter().for_each(|list| list.put(&mut bytes));
    let sum = digest(DIGEST, &bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// A partition from its snapshot.
///
/// # Errors
///
/// The bytes are no snapshot.
pub(crate) fn decode(bytes: &[u8], shop: Shop, remember: u64) -> Result<Partition, StoreError> {
    const DAMAGED: StoreError = StoreError::Damaged { what: "snapshot" };
    let (rest, sum) = bytes.split_last_chunk::<8>().map(|(rest, sum)| (rest, *sum)).ok_or(DAMAGED)?;
    if u64::from_le_bytes(sum) != digest(DIGEST, rest) {
        return Err(DAMAGED);
    }
    let (position, memory) = read(&mut &*rest, shop, remember).ok_or(DAMAGED)?;
    Partition::restore(shop, memory, position)
}

fn read(rest: &mut &[u8], shop: Shop, remember: u64) -> Option<(Position, Memory)> {
    let [version] = *rest.split_off(..1)? else { return None };
    let [input, time, digest, last_seq] = record::numbers(rest)?;
    let position = Position { input, time, digest };
    let mut restored = Restored::default();
    for _ in 0..take_number(rest)? {
        restored.open.push(Open::take(rest)?);
    }
    for _ in 0..take_number(rest)? {
        let [units] = record::numbers(rest)?;
        restored.sold.push((take_name(rest)?.to_owned(), units));
    }
    // All checks that were due before the present ms have been made, or are due at once.
    restored.resume = Resume { now: position.millis().saturating_sub(1), last_seq, pending: 0 };
    let memory = Memory::new(restored, remember, shop.check_after);
    for _ in 0..take_number(rest)? {
        let [at, order_id, check_at, content] = record::numbers(rest)?;
        memory.restore_ended(at, order_id, Known { check_at, content });
    }
    for _ in 0..take_number(rest)? {
        let [at, content] = record::numbers(rest)?;
        memory.restore_payment(at, take_name(rest)?, content);
    }
    (version == VERSION && rest.is_empty()).then_some((position, memory))
}

/// A list, and how many entries it has.
#[derive(Default)]
struct List {
    entries: u64,
    bytes: Vec<u8>,
}

impl List {
    fn entry(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        self.entries += 1;
        put(&mut self.bytes);
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.entries.to_le_bytes());
        bytes.extend(&self.bytes);
    }
}

/// Receives pending orders and units sold.
struct Told<'a>(&'a mut List, &'a mut List);

impl Recovery for Told<'_> {
    fn open(&mut self, order: Open) {
        self.0.entry(|bytes| order.put(bytes));
    }

    fn sold(&mut self, item: String, units: u64) {
        self.1.entry(|bytes| {
            numbers(bytes, &[units]);
            name(bytes, &item);
        });
    }

    /// The books of a partition have all pending orders, which say what is reserved.
    fn reserved(&mut self, _: String, _: u64) {}
}

fn numbers(bytes: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
}

/// A name has at most 64 bytes.
fn name(bytes: &mut Vec<u8>, name: &str) {
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    record::numbers(rest).map(|[number]| number)
}

fn take_name<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::from(*rest.split_off_first()?);
    str::from_utf8(rest.split_off(..length)?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::names::{self, Kind};
    use super::super::partition::MAX_LINES;
    use super::super::reader::Input;
    use super::*;

    const SHOP: Shop = Shop { stock: 6, check_after: 50, max_pending: usize::MAX, in_memory: usize::MAX };
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

    fn input(sequence: u64, time: u64, kind: Option<Kind>, text: &str) -> Input {
        let subject = kind.map_or("shop.0.other".to_owned(), |kind| names::log_subject(0, kind));
        Input { sequence, time, subject, payload: text.to_owned().into() }
    }

    fn apply(partition: &mut Partition, log: &[(u64, Kind, String)], from: usize) -> String {
        let mut out = String::new();
        for (number, (time, kind, payload)) in log.iter().enumerate().skip(from) {
            partition.apply(&input(number as u64 + 1, *time, Some(*kind), payload), &mut out).unwrap();
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
            partition.apply(&input(1, time, Some(kind), text), &mut out).unwrap();
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
    fn others_items_great_answers_and_unknown_kinds_are_no_end() {
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
        let out = apply(Some(Kind::Orders), &[order(1, "nut"), order(2, "item-1")].concat());
        assert!(out.contains("\"order_id\":1,\"status\":\"placed\""), "{out}");
        assert!(out.contains("its item belongs to partition 0, not to 8"), "{out}");
        let paid = "{\"payment_id\":\"p\",\"order_id\":1,\"item\":\"item-1\",\"amount_cents\":1}";
        assert!(apply(Some(Kind::Payments), paid).contains("belongs to partition 0"));
        let controls = format!("{{\"order_id\":3,\"quantity\":\"{}\"}}\n", "\\u0001".repeat(160_000));
        assert!(apply(Some(Kind::Orders), &controls).len() < 1_000);
        let many = format!("{{\"order_id\":\"{0}\",\"item\":\"{0}\"}}\n", "é".repeat(100)).repeat(MAX_LINES);
        let out = apply(Some(Kind::Orders), &many);
        assert!(out.lines().count() == MAX_LINES && out.len() < 250 * MAX_LINES, "{}", out.len());
        assert_eq!(apply(None, "anything"), "");
    }

    #[test]
    fn a_damaged_snapshot_is_refused() {
        let log = log();
        let mut partition = Partition::new(SHOP, REMEMBER).unwrap();
        apply(&mut partition, &log[..60], 0);
        let bytes = encode(&partition);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length], SHOP, REMEMBER).is_err(), "cut at {length}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(decode(&damaged, SHOP, REMEMBER).is_err(), "bit {at}");
        }
    }
}

//! Runs the example's parser of orders and payments on arbitrary bytes, and on the output of the
//! example's writer for the records that the parser accepted.

#![no_main]

use std::fmt::Debug;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the target writes to memory, not to files")]
#[path = "../../examples/order_reconciliation/src/generate.rs"]
mod generate;
#[path = "../../examples/order_reconciliation/src/input.rs"]
mod input;

use generate::{DataSet, Shares};
use input::{LineCount, MadePayment, PlacedOrder, Record};

/// The error that `generate` returns if a file cannot be written.
#[allow(dead_code, reason = "the target writes to memory, not to files")]
struct Failure(String);

/// The limits that the parser guarantees.
const MAX_LINE: usize = 4096;
const MAX_NAME: usize = 64;
const MAX_CENTS: u64 = 1_000_000_000_000;
const MAX_MILLIS: u64 = 1_000_000_000_000_000;

fuzz_target!(|data: &[u8]| {
    let Some((kind, file)) = data.split_first() else { return };
    match kind % 8 {
        0 => check::<PlacedOrder>(file),
        1 => check::<MadePayment>(file),
        // A fuzzer rarely finds a header, and without one the reading ends at the first line.
        2..=4 => check::<PlacedOrder>(&[PlacedOrder::HEADER, file].concat()),
        5 | 6 => check::<MadePayment>(&[MadePayment::HEADER, file].concat()),
        _ => check_sample(file),
    }
});

/// A record that can be checked and written.
trait Sample: Record + Clone + PartialEq + Debug {
    const HEADER: &'static [u8];

    fn is_within_limits(&self) -> bool;
    fn write(records: &[Self]) -> Vec<u8>;
}

impl Sample for PlacedOrder {
    const HEADER: &'static [u8] = b"order_id,item,quantity,amount_cents,placed_at_ms\n";

    fn is_within_limits(&self) -> bool {
        (1..=MAX_NAME).contains(&self.item.len())
            && self.item.chars().all(input::is_visible)
            && self.quantity > 0
            && self.amount <= MAX_CENTS
            && self.placed_at <= MAX_MILLIS
    }

    /// The items stand in quotation marks, which the writer of the sample does not need.
    fn write(records: &[Self]) -> Vec<u8> {
        let mut file = Vec::new();
        let quoted = records.iter().map(|order| {
            let item = format!("\"{}\"", order.item.replace('"', "\"\""));
            Self { item, ..order.clone() }
        });
        let written = generate::write_orders(&mut file, quoted);
        assert_eq!(written.expect("memory can be written"), records.len() as u64);
        file
    }
}

impl Sample for MadePayment {
    const HEADER: &'static [u8] = b"order_id,amount_cents,paid_at_ms\n";

    fn is_within_limits(&self) -> bool {
        self.amount <= MAX_CENTS && self.paid_at <= MAX_MILLIS
    }

    fn write(records: &[Self]) -> Vec<u8> {
        let mut file = Vec::new();
        let written = generate::write_payments(&mut file, records.iter().copied());
        assert_eq!(written.expect("memory can be written"), records.len() as u64);
        file
    }
}

/// The records of a file; the numbers of its bad lines, and of all; or `None` if its header is refused.
fn read<T: Record>(file: &[u8]) -> Option<(Vec<T>, Vec<u64>, LineCount)> {
    let (mut records, mut bad) = (Vec::new(), Vec::new());
    let enter = |record| {
        records.push(record);
        Ok(())
    };
    let count = input::read(file, enter, |number, reason| {
        assert!(!reason.is_empty());
        bad.push(number);
    });
    Some((records, bad, count.ok()?))
}

/// Parses a file. Every line must be a record within the limits, or be reported. The records must
/// survive writing and reading.
fn check<T: Sample>(file: &[u8]) {
    let Some((records, bad, count)) = read::<T>(file) else { return };
    records.iter().for_each(|record: &T| assert!(record.is_within_limits(), "{record:?}"));
    check_numbers(file, &bad, count);
    assert_eq!(count, LineCount { read: (records.len() + bad.len()) as u64, bad: bad.len() as u64 });
    check_round_trip(&records);
}

/// The accepted and the reported lines together must be all lines that are not blank, except the
/// header; and the reported ones some of them, in their order.
fn check_numbers(file: &[u8], bad: &[u64], count: LineCount) {
    let lines = (1..).zip(file.split(|&byte| byte == b'\n'));
    let filled = |&(_, line): &(u64, &[u8])| line.len() > MAX_LINE || !line.trim_ascii().is_empty();
    let mut expected = lines.filter(filled).map(|(number, _)| number).skip(1);
    assert_eq!(expected.clone().count() as u64, count.read, "lines that were accepted or reported");
    assert!(bad.iter().all(|number| expected.any(|line| line == *number)), "{bad:?}");
}

fn check_round_trip<T: Sample>(records: &[T]) {
    let (read, bad, _) = read::<T>(&T::write(records)).expect("what was written can be read");
    assert_eq!((&read[..], bad), (records, Vec::new()));
}

/// Checks a part of the sample data that the example generates.
fn check_sample(bytes: &[u8]) {
    let Some(&[count, seed, shares, check_after]) = bytes.first_chunk() else { return };
    let part = |shift: u32| f64::from((shares >> shift) & 3) / 10.0;
    let data_set = DataSet {
        count: u32::from(count % 8),
        items: 1 + u32::from(count / 8),
        seed: u64::from(seed),
        shares: Shares { unpaid: part(0), mismatch: part(2), in_parts: part(4) },
        check_after: Duration::from_millis(1 << (check_after % 35)),
    };
    check_round_trip(&data_set.orders().collect::<Vec<_>>());
    check_round_trip(&data_set.payments().collect::<Vec<_>>());
}

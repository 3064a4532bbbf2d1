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

use generate::DataSet;
use input::{LineCount, MadePayment, PlacedOrder, Record};

/// The error that `generate` returns if a file cannot be written.
#[allow(dead_code, reason = "the target writes to memory, not to files")]
struct Failure(String);

/// The limits that the parser guarantees.
const MAX_NAME: usize = 64;
const MAX_CENTS: u64 = 1_000_000_000_000;
const MAX_MILLIS: u64 = 1_000_000_000_000_000;

fuzz_target!(|data: &[u8]| {
    let Some((kind, file)) = data.split_first() else { return };
    match kind % 8 {
        0 => check::<PlacedOrder>(file),
        1 => check::<MadePayment>(file),
        // A fuzzer rarely finds a header, and without one the reading ends at the first line.
        2..=4 => check::<PlacedOrder>(&with_header::<PlacedOrder>(file)),
        5 | 6 => check::<MadePayment>(&with_header::<MadePayment>(file)),
        _ => check_sample(file),
    }
});

fn with_header<T: Record>(file: &[u8]) -> Vec<u8> {
    [T::HEADER.as_bytes(), b"\n", file].concat()
}

/// A record that can be checked and written.
trait Sample: Record + Clone + PartialEq + Debug {
    fn is_within_limits(&self) -> bool;
}

impl Sample for PlacedOrder {
    fn is_within_limits(&self) -> bool {
        (1..=MAX_NAME).contains(&self.item.len())
            && self.item.chars().all(input::is_visible)
            && self.quantity > 0
            && self.amount <= MAX_CENTS
            && self.placed_at <= MAX_MILLIS
    }
}

impl Sample for MadePayment {
    fn is_within_limits(&self) -> bool {
        self.amount <= MAX_CENTS && self.paid_at <= MAX_MILLIS
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
    let filled = |&(_, line): &(u64, &[u8])| !line.trim_ascii().is_empty();
    let mut expected = lines.filter(filled).map(|(number, _)| number).skip(1);
    assert_eq!(expected.clone().count() as u64, count.read, "lines that were accepted or reported");
    assert!(bad.iter().all(|number| expected.any(|line| line == *number)), "{bad:?}");
}

fn check_round_trip<T: Sample>(records: &[T]) {
    let mut file = Vec::new();
    let written = generate::write(&mut file, records.iter().cloned());
    assert_eq!(written.expect("memory can be written"), records.len() as u64);
    let (read, bad, _) = read::<T>(&file).expect("what was written can be read");
    assert_eq!((&read[..], bad), (records, Vec::new()));
}

/// Checks a part of the sample data that the example generates.
fn check_sample(bytes: &[u8]) {
    let Some(&[count, seed, check_after]) = bytes.first_chunk() else { return };
    let data_set = DataSet {
        count: u32::from(count % 8),
        items: 1 + u32::from(count / 8),
        seed: u64::from(seed),
        check_after: Duration::from_millis(1 << (check_after % 35)),
    };
    check_round_trip(&data_set.orders().collect::<Vec<_>>());
    check_round_trip(&data_set.payments().collect::<Vec<_>>());
}

//! Runs the example's parser of orders and payments on arbitrary bytes, and on the output of the
//! example's writer for the records that the parser accepted.

#![no_main]

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the target writes to memory, not to files")]
#[path = "../../examples/order_reconciliation/src/generate.rs"]
mod generate;
#[allow(dead_code, reason = "some reasons for a bad line are the ledger's")]
#[path = "../../examples/order_reconciliation/src/input.rs"]
mod input;

use generate::{DataSet, Shares};
use input::{InputError, Line, Order, Payment, Record, Records};

/// The error that `generate` returns if a file cannot be written.
#[allow(dead_code, reason = "the target writes to memory, not to files")]
enum Failure {
    File { name: String, error: io::Error },
}

/// The limits that the parser guarantees.
const MAX_LINE: usize = 4096;
const MAX_NAME: usize = 64;
const MAX_CENTS: u64 = 1_000_000_000_000;
const MAX_MILLIS: u64 = 1_000_000_000_000_000;

fuzz_target!(|data: &[u8]| {
    let Some((kind, file)) = data.split_first() else { return };
    match kind % 8 {
        0 => check::<Order>(file),
        1 => check::<Payment>(file),
        // A fuzzer rarely finds a header, and without one the reading ends at the first line.
        2..=4 => check::<Order>(&[Order::HEADER, file].concat()),
        5 | 6 => check::<Payment>(&[Payment::HEADER, file].concat()),
        _ => check_sample(file),
    }
});

/// A record that can be checked and written.
trait Sample: Record + Clone + PartialEq + Debug {
    const HEADER: &'static [u8];

    fn names(&self) -> Vec<&str>;
    fn is_within_limits(&self) -> bool;
    fn write(records: &[Self]) -> Vec<u8>;
}

impl Sample for Order {
    const HEADER: &'static [u8] = b"order_id,item,quantity,amount_cents,placed_at_ms\n";

    fn names(&self) -> Vec<&str> {
        vec![&self.id, &self.item]
    }

    fn is_within_limits(&self) -> bool {
        self.quantity > 0 && self.amount <= MAX_CENTS && self.placed_at <= MAX_MILLIS
    }

    fn write(records: &[Self]) -> Vec<u8> {
        let mut file = Vec::new();
        let written = generate::write_orders(&mut file, records.iter().cloned());
        assert_eq!(written.expect("memory can be written"), records.len() as u64);
        file
    }
}

impl Sample for Payment {
    const HEADER: &'static [u8] = b"order_id,amount_cents,paid_at_ms\n";

    fn names(&self) -> Vec<&str> {
        vec![&self.order_id]
    }

    fn is_within_limits(&self) -> bool {
        self.amount <= MAX_CENTS && self.paid_at <= MAX_MILLIS
    }

    fn write(records: &[Self]) -> Vec<u8> {
        let mut file = Vec::new();
        let written = generate::write_payments(&mut file, records.iter().cloned());
        assert_eq!(written.expect("memory can be written"), records.len() as u64);
        file
    }
}

/// Parses a file. Every line must be a record within the limits, or be reported. The records must
/// survive writing and reading.
fn check<T: Sample>(file: &[u8]) {
    let mut records = Vec::new();
    let mut numbers = Vec::new();
    let mut refused = false;
    for found in Records::<_, T>::new(file) {
        match found {
            Ok(Line { number, record }) => {
                check_record(&record);
                numbers.push(number);
                records.push(record);
            }
            Err(InputError::Bad(bad)) => {
                assert!(bad.to_string().starts_with(&format!("line {}: ", bad.number)));
                numbers.push(bad.number);
            }
            Err(InputError::Header(error)) => {
                assert!(!error.to_string().is_empty());
                refused = true;
            }
            Err(InputError::Io(error)) => panic!("memory cannot be read: {error}"),
        }
    }
    check_numbers(file, &numbers, refused);
    check_round_trip(&records);
}

fn check_record<T: Sample>(record: &T) {
    assert!(record.is_within_limits(), "{record:?}");
    for name in record.names() {
        assert!((1..=MAX_NAME).contains(&name.len()), "{record:?}");
        assert!(name.chars().all(input::is_visible), "{record:?}");
    }
}

/// The accepted and the reported lines together must be all lines that are not blank, except the
/// header. There must be none if the header was refused.
fn check_numbers(file: &[u8], numbers: &[u64], refused: bool) {
    let lines = (1..).zip(file.split(|&byte| byte == b'\n'));
    let filled = |&(_, line): &(u64, &[u8])| line.len() > MAX_LINE || !line.trim_ascii().is_empty();
    let mut expected = lines.filter(filled).map(|(number, _)| number).collect::<Vec<_>>();
    if refused {
        assert!(numbers.is_empty(), "a header that was refused is the first line");
        return;
    }
    expected.remove(0);
    assert_eq!(numbers, expected, "lines that were accepted or reported");
}

fn check_round_trip<T: Sample>(records: &[T]) {
    let file = T::write(records);
    let read = Records::<_, T>::new(&file[..]).map(|line| line.map(|line| line.record));
    let read = read.collect::<Result<Vec<_>, _>>();
    assert_eq!(read.expect("what was written can be read"), records);
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

//! A seeded data set: the same seed makes the same orders and payments, in whatever order they are
//! generated.
//!
//! The orders are placed evenly within a thirtieth of the time until the check: one minute for half
//! an hour. Each order has its own random numbers, so payments can be generated without keeping the
//! orders. Late payments come in at least a tenth of that time after the check is due. All other
//! payments come in at most nine tenths of that time after their order. So in real time the outcome
//! does not depend on the load of the machine.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;

use crate::Failure;
use crate::input::{Order, Payment, Record};

/// The orders are placed within this part of the time until the check.
const PLACING_PART: u64 = 30;
/// Largest number of units in one order.
const MAX_QUANTITY: u32 = 5;
/// The price range of an item, in cents; the upper end is exclusive.
const PRICES: (u64, u64) = (99, 49_999);
/// Largest error of a wrong payment, in cents.
const MAX_DIFFERENCE: u64 = 50;
/// Separates the random numbers of neighbouring orders: the golden ratio in 64 bits.
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Shares of the orders. Each share, and their sum, is from 0 to 1; the remaining orders are paid
/// in full with one payment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    pub(crate) unpaid: f64,
    pub(crate) mismatch: f64,
    pub(crate) in_parts: f64,
}

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataSet {
    pub(crate) count: u32,
    pub(crate) items: u32,
    pub(crate) seed: u64,
    pub(crate) shares: Shares,
    /// The time until the check that the data set is made for.
    pub(crate) check_after: Duration,
}

/// How an order is paid.
enum Paid {
    Never,
    Late,
    WrongAmount,
    InParts,
    InFull,
}

impl DataSet {
    pub(crate) fn orders(self) -> impl Iterator<Item = Order> {
        (0..self.count).map(move |index| self.order(index).0)
    }

    /// In the sequence of the orders, not by time.
    pub(crate) fn payments(self) -> impl Iterator<Item = Payment> {
        (0..self.count).flat_map(move |index| self.payments_of(index))
    }

    /// An order, and the random numbers from which its payments follow.
    fn order(&self, index: u32) -> (Order, Rng) {
        let mut rng = Rng::with_seed(self.seed.wrapping_add(SEED_STEP.wrapping_mul(u64::from(index))));
        let item = rng.u32(0..self.items);
        let quantity = rng.u32(1..=MAX_QUANTITY);
        let amount = price(item) * u64::from(quantity);
        let placed_at = self.check_millis() / PLACING_PART * u64::from(index) / u64::from(self.count);
        let (id, item) = ((index + 1).to_string(), format!("item-{}", item + 1));
        (Order { id, item, quantity, amount, placed_at }, rng)
    }

    fn payments_of(&self, index: u32) -> Vec<Payment> {
        let (order, mut rng) = self.order(index);
        let amounts = match self.paid(&mut rng) {
            Paid::Never => return Vec::new(),
            Paid::Late => return vec![payment(&order, order.amount, self.late(&mut rng))],
            Paid::WrongAmount => vec![wrong_amount(order.amount, &mut rng)],
            Paid::InParts => in_parts(order.amount, &mut rng),
            Paid::InFull => vec![order.amount],
        };
        amounts.into_iter().map(|amount| payment(&order, amount, self.in_time(&mut rng))).collect()
    }

    fn paid(&self, rng: &mut Rng) -> Paid {
        let Shares { unpaid, mismatch, in_parts } = self.shares;
        let drawn = rng.f64();
        if drawn < unpaid {
            if rng.bool() { Paid::Late } else { Paid::Never }
        } else if drawn < unpaid + mismatch {
            Paid::WrongAmount
        } else if drawn < unpaid + mismatch + in_parts {
            Paid::InParts
        } else {
            Paid::InFull
        }
    }

    fn check_millis(&self) -> u64 {
        self.check_after.as_millis() as u64
    }

    /// A delay well before the check.
    fn in_time(&self, rng: &mut Rng) -> u64 {
        rng.u64(0..=self.check_millis() * 9 / 10)
    }

    /// A delay well after the check: up to four thirds of the time until it.
    fn late(&self, rng: &mut Rng) -> u64 {
        rng.u64((self.check_millis() * 11).div_ceil(10)..=(self.check_millis() * 4).div_ceil(3))
    }
}

fn price(item: u32) -> u64 {
    let (cheapest, dearest) = PRICES;
    cheapest + u64::from(item).wrapping_mul(SEED_STEP) % (dearest - cheapest)
}

fn payment(order: &Order, amount: u64, delay: u64) -> Payment {
    Payment { order_id: order.id.clone(), amount, paid_at: order.placed_at + delay }
}

fn wrong_amount(amount: u64, rng: &mut Rng) -> u64 {
    let difference = rng.u64(1..=MAX_DIFFERENCE);
    if rng.bool() { amount + difference } else { amount - difference }
}

/// Two or three parts that add up to the amount; no part is zero.
fn in_parts(amount: u64, rng: &mut Rng) -> Vec<u64> {
    let first = rng.u64(1..=amount / 2);
    let rest = amount - first;
    if rng.bool() {
        return vec![first, rest];
    }
    let second = rng.u64(1..rest);
    vec![first, second, rest - second]
}

/// Writes the data set as two files for `--orders` and `--payments`, and returns a message about
/// them.
pub(crate) fn write_sample(data_set: &DataSet, directory: &Path) -> Result<String, Failure> {
    fs::create_dir_all(directory).map_err(|error| failure(directory, error))?;
    let orders = directory.join("orders.csv");
    let payments = directory.join("payments.csv");
    let order_count = write_file(&orders, |file| write_orders(file, data_set.orders()))?;
    let payment_count = write_file(&payments, |file| write_payments(file, data_set.payments()))?;
    Ok(format!(
        "{order_count} orders: {}\n{payment_count} payments: {}",
        orders.display(),
        payments.display()
    ))
}

fn write_file(path: &Path, write: impl FnOnce(File) -> io::Result<u64>) -> Result<u64, Failure> {
    File::create(path).and_then(write).map_err(|error| failure(path, error))
}

/// Writes orders in the format of `--orders`, and returns their number.
pub(crate) fn write_orders(output: impl Write, orders: impl Iterator<Item = Order>) -> io::Result<u64> {
    write_rows::<Order, _>(output, orders.map(order_row))
}

/// Writes payments in the format of `--payments`, and returns their number.
pub(crate) fn write_payments(output: impl Write, payments: impl Iterator<Item = Payment>) -> io::Result<u64> {
    write_rows::<Payment, _>(output, payments.map(payment_row))
}

/// Writes the header of `T`, and the rows.
fn write_rows<T: Record, R: AsRef<[String]>>(
    output: impl Write,
    rows: impl Iterator<Item = R>,
) -> io::Result<u64> {
    let mut output = BufWriter::new(output);
    writeln!(output, "{}", T::COLUMNS.join(","))?;
    let mut count = 0;
    for row in rows {
        let fields = row.as_ref().iter().map(|field| quoted(field)).collect::<Vec<_>>();
        writeln!(output, "{}", fields.join(","))?;
        count += 1;
    }
    output.flush()?;
    Ok(count)
}

/// A field with a comma or a quotation mark stands in quotation marks, which are doubled within it.
fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"']) {
        format!("\"{}\"", field.replace('"', "\"\"")).into()
    } else {
        field.into()
    }
}

fn order_row(order: Order) -> [String; 5] {
    let Order { id, item, quantity, amount, placed_at } = order;
    [id, item, quantity.to_string(), amount.to_string(), placed_at.to_string()]
}

fn payment_row(payment: Payment) -> [String; 3] {
    let Payment { order_id, amount, paid_at } = payment;
    [order_id, amount.to_string(), paid_at.to_string()]
}

fn failure(path: &Path, error: io::Error) -> Failure {
    Failure::File { name: path.display().to_string(), error }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const DATA_SET: DataSet = DataSet {
        count: 5_000,
        items: 7,
        seed: 3,
        shares: Shares { unpaid: 0.2, mismatch: 0.1, in_parts: 0.3 },
        check_after: Duration::from_secs(1_800),
    };

    #[test]
    fn the_same_seed_makes_the_same_data_set() {
        assert!(DATA_SET.orders().eq(DATA_SET.orders()));
        assert!(DATA_SET.payments().eq(DATA_SET.payments()));
        assert!(!DATA_SET.orders().eq(DataSet { seed: 4, ..DATA_SET }.orders()));
    }

    #[test]
    fn orders_come_by_time_within_a_minute() {
        let times = DATA_SET.orders().map(|order| order.placed_at).collect::<Vec<_>>();
        assert!(times.is_sorted() && times[0] == 0 && (59_900..60_000).contains(&times[4_999]), "{times:?}");
    }

    /// Counts the orders of the data set by how they are paid: never, late, with a wrong amount, in
    /// parts.
    fn kinds() -> [u32; 4] {
        let mut payments = HashMap::<_, Vec<_>>::new();
        for Payment { order_id, amount, paid_at } in DATA_SET.payments() {
            payments.entry(order_id).or_default().push((amount, paid_at));
        }
        let mut kinds = [0; 4];
        for order in DATA_SET.orders() {
            let due = order.placed_at + 1_800_000;
            match payments.get(&order.id).map_or(&[][..], Vec::as_slice) {
                [] => kinds[0] += 1,
                [(_, paid_at)] if *paid_at > due => kinds[1] += 1,
                [(amount, _)] if *amount != order.amount => kinds[2] += 1,
                [_] => {}
                parts => {
                    assert_eq!(parts.iter().map(|(amount, _)| amount).sum::<u64>(), order.amount);
                    assert!(parts.iter().all(|(amount, paid_at)| *amount > 0 && *paid_at < due));
                    kinds[3] += 1;
                }
            }
        }
        kinds
    }

    #[test]
    fn payments_follow_the_shares() {
        let kinds = kinds();
        for (count, expected) in kinds.into_iter().zip([400..600, 400..600, 400..600, 1_300..1_700]) {
            assert!(expected.contains(&count), "{kinds:?}");
        }
    }
}

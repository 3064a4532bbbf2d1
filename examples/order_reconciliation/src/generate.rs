//! A seeded data set: the same seed makes the same orders and payments, in whatever order they are
//! generated.
//!
//! The orders are placed evenly within a thirtieth of the time until the check: one minute for half
//! an hour. Each order has its own random numbers, so payments can be generated without keeping the
//! orders. Late payments come in at least a tenth of that time after the check is due. All other
//! payments come in at most nine tenths of that time after their order. So the outcome
//! of the shop in real time, `orders`, does not depend on the load of the machine.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;

use crate::Failure;
use crate::input::{MadePayment, PlacedOrder, Record};

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
    pub(crate) fn orders(self) -> impl Iterator<Item = PlacedOrder> {
        (0..self.count).map(move |index| self.order(index).0)
    }

    /// In the sequence of the orders, not by time.
    pub(crate) fn payments(self) -> impl Iterator<Item = MadePayment> {
        (0..self.count).flat_map(move |index| self.payments_of(index))
    }

    /// An order, and the random numbers from which its payments follow.
    fn order(&self, index: u32) -> (PlacedOrder, Rng) {
        let mut rng = Rng::with_seed(self.seed.wrapping_add(SEED_STEP.wrapping_mul(u64::from(index))));
        let item = rng.u32(0..self.items);
        let quantity = rng.u32(1..=MAX_QUANTITY);
        let amount = price(item) * u64::from(quantity);
        let placed_at = self.check_millis() / PLACING_PART * u64::from(index) / u64::from(self.count);
        let (order_id, item) = (u64::from(index) + 1, format!("item-{}", item + 1));
        (PlacedOrder { order_id, item, quantity, amount, placed_at }, rng)
    }

    fn payments_of(&self, index: u32) -> Vec<MadePayment> {
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

fn payment(order: &PlacedOrder, amount: u64, delay: u64) -> MadePayment {
    MadePayment { order_id: order.order_id, amount, paid_at: order.placed_at + delay }
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
pub(crate) fn write_orders(output: impl Write, orders: impl Iterator<Item = PlacedOrder>) -> io::Result<u64> {
    let row = |PlacedOrder { order_id, item, quantity, amount, placed_at }| {
        format!("{order_id},{item},{quantity},{amount},{placed_at}")
    };
    write_rows::<PlacedOrder>(output, orders.map(row))
}

/// Writes payments in the format of `--payments`, and returns their number.
pub(crate) fn write_payments(
    output: impl Write,
    payments: impl Iterator<Item = MadePayment>,
) -> io::Result<u64> {
    let row = |MadePayment { order_id, amount, paid_at }| format!("{order_id},{amount},{paid_at}");
    write_rows::<MadePayment>(output, payments.map(row))
}

/// Writes the header of `T`, and the rows. The names of items need no quotation marks.
fn write_rows<T: Record>(output: impl Write, rows: impl Iterator<Item = String>) -> io::Result<u64> {
    let (mut output, mut count) = (BufWriter::new(output), 0);
    writeln!(output, "{}", T::COLUMNS.join(","))?;
    for row in rows {
        writeln!(output, "{row}")?;
        count += 1;
    }
    output.flush()?;
    Ok(count)
}

fn failure(path: &Path, error: io::Error) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
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
}

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

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataSet {
    pub(crate) count: u32,
    pub(crate) items: u32,
    pub(crate) seed: u64,
    /// The time until the check that the data set is made for.
    pub(crate) check_after: Duration,
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

    /// Of a hundred orders, five are never paid and five late; five with a wrong amount, ten in
    /// parts, and the others in full with one payment.
    fn payments_of(&self, index: u32) -> Vec<MadePayment> {
        let (order, mut rng) = self.order(index);
        let wait = self.check_millis();
        let (in_time, late) = (0..=wait * 9 / 10, (wait * 11).div_ceil(10)..=(wait * 4).div_ceil(3));
        let (amounts, delays) = match rng.u32(0..100) {
            0..5 => (Vec::new(), in_time),
            5..10 => (vec![order.amount], late),
            10..15 => (vec![wrong_amount(order.amount, &mut rng)], in_time),
            15..25 => (in_parts(order.amount, &mut rng), in_time),
            _ => (vec![order.amount], in_time),
        };
        let payment = |amount| {
            let paid_at = order.placed_at + rng.u64(delays.clone());
            MadePayment { order_id: order.order_id, amount, paid_at }
        };
        amounts.into_iter().map(payment).collect()
    }

    fn check_millis(&self) -> u64 {
        self.check_after.as_millis() as u64
    }
}

fn price(item: u32) -> u64 {
    let (cheapest, dearest) = PRICES;
    cheapest + u64::from(item).wrapping_mul(SEED_STEP) % (dearest - cheapest)
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
    let failure = |error| Failure(format!("{}: {error}", directory.display()));
    let file = |name| File::create(directory.join(name));
    fs::create_dir_all(directory).map_err(failure)?;
    let orders = file("orders.csv").and_then(|file| write(file, data_set.orders())).map_err(failure)?;
    let payments = file("payments.csv").and_then(|file| write(file, data_set.payments())).map_err(failure)?;
    Ok(format!(
        "{orders} orders and {payments} payments: orders.csv and payments.csv in {}",
        directory.display()
    ))
}

/// Writes the header of the records and their rows, and returns their number.
pub(crate) fn write<T: Record>(output: impl Write, records: impl Iterator<Item = T>) -> io::Result<u64> {
    let (mut output, mut count) = (BufWriter::new(output), 0);
    writeln!(output, "{}", T::HEADER)?;
    for record in records {
        writeln!(output, "{}", record.row())?;
        count += 1;
    }
    output.flush()?;
    Ok(count)
}

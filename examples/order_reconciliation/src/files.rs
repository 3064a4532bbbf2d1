//! The records of two CSV files, as the replay plays them, the feed of `orders` sends them and its
//! audit replays them. The generated data set is held in the same way.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::path::Path;

use crate::generate::DataSet;
use crate::input::{self, LineCount, MadePayment, PlacedOrder, Record};
use crate::{Failure, Streams};

/// What is in the files, in file order. Bad lines are reported and left out.
#[derive(Debug, Default)]
pub struct Files {
    /// The orders.
    pub orders: Vec<PlacedOrder>,
    /// Each is for one of the orders, and not dated before it.
    pub payments: Vec<MadePayment>,
    /// Where an order is in `orders`.
    pub slots: HashMap<u64, u32>,
    /// Lines that were left out.
    pub bad: u64,
    pub(crate) lines: Lines,
}

/// The numbers of lines, or of generated records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lines {
    pub(crate) orders: LineCount,
    pub(crate) payments: LineCount,
}

impl Files {
    /// Reads the files; bad lines are reported on standard error.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or does not have the expected header.
    pub fn read(orders: &Path, payments: Option<&Path>, streams: &mut Streams<'_>) -> Result<Self, Failure> {
        let mut files = Self::default();
        files.lines.orders = source(orders, streams, |order| files.order(order))?;
        if let Some(payments) = payments {
            files.lines.payments = source(payments, streams, |payment| files.payment(payment))?;
        }
        files.bad = files.lines.orders.bad + files.lines.payments.bad;
        Ok(files)
    }

    pub(crate) fn generated(data_set: &DataSet) -> Self {
        let (orders, payments) =
            (data_set.orders().collect::<Vec<_>>(), data_set.payments().collect::<Vec<_>>());
        let count = |records: usize| LineCount { read: records as u64, bad: 0 };
        let lines = Lines { orders: count(orders.len()), payments: count(payments.len()) };
        Self { orders, payments, lines, ..Self::default() }
    }

    fn order(&mut self, order: PlacedOrder) -> Result<(), String> {
        let slot = u32::try_from(self.orders.len()).map_err(|_| "at most 2^32 orders are read")?;
        match self.slots.entry(order.order_id) {
            Entry::Occupied(_) => {
                return Err(format!("order {} was placed on an earlier line", order.order_id));
            }
            Entry::Vacant(place) => place.insert(slot),
        };
        self.orders.push(order);
        Ok(())
    }

    /// A payment dated before its order comes in together with the order.
    fn payment(&mut self, mut payment: MadePayment) -> Result<(), String> {
        let slot = self.slots.get(&payment.order_id);
        let &slot = slot.ok_or_else(|| format!("there is no order {}", payment.order_id))?;
        payment.paid_at = payment.paid_at.max(self.orders[slot as usize].placed_at);
        self.payments.push(payment);
        Ok(())
    }
}

/// Reads a file, and reports bad lines.
fn source<T: Record>(
    path: &Path,
    streams: &mut Streams<'_>,
    enter: impl FnMut(T) -> Result<(), String>,
) -> Result<LineCount, Failure> {
    let name = path.display();
    // The totals count the line even if standard error is closed.
    let report = |number: u64, reason: &str| drop(writeln!(streams.err, "{name}: line {number}: {reason}"));
    let read = File::open(path).and_then(|file| input::read(file, enter, report));
    read.map_err(|error| Failure(format!("{name}: {error}")))
}

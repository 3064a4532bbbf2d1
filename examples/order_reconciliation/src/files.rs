//! The records of two CSV files, as the feed of `orders` sends them and its audit replays them.
//!
//! A server names orders by numbers. So a line whose order id is no number is bad here, although
//! the replay itself accepts it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use crate::input::{self, Reason};
use crate::load::Source;
use crate::outcomes::{MadePayment, PlacedOrder};
use crate::progress::Progress;
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
}

impl Files {
    /// Reads the files; bad lines are reported on standard error.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or does not have the expected header.
    pub fn read(orders: &Path, payments: Option<&Path>, streams: &mut Streams<'_>) -> Result<Self, Failure> {
        let (mut files, progress) = (Self::default(), Progress::reading());
        let mut source = Source { name: orders, err: streams.err, progress: &progress };
        files.bad += source.read(streams.input, |order| files.order(order))?.bad;
        if let Some(payments) = payments {
            source.name = payments;
            files.bad += source.read(streams.input, |payment| files.payment(payment))?.bad;
        }
        progress.finish();
        Ok(files)
    }

    fn order(&mut self, order: input::Order) -> Result<(), Reason> {
        let input::Order { id, item, quantity, amount, placed_at } = order;
        let order_id = number(&id)?;
        let slot = u32::try_from(self.orders.len()).map_err(|_| Reason::LedgerFull { limit: u32::MAX })?;
        match self.slots.entry(order_id) {
            Entry::Occupied(_) => return Err(Reason::DuplicateOrder { id }),
            Entry::Vacant(place) => place.insert(slot),
        };
        self.orders.push(PlacedOrder { order_id, item, quantity, amount, placed_at });
        Ok(())
    }

    /// As in the replay, a payment dated before its order comes in together with the order.
    fn payment(&mut self, payment: input::Payment) -> Result<(), Reason> {
        let input::Payment { order_id: id, amount, paid_at } = payment;
        let order_id = number(&id)?;
        let Some(&slot) = self.slots.get(&order_id) else { return Err(Reason::UnknownOrder { id }) };
        let paid_at = paid_at.max(self.orders[slot as usize].placed_at);
        self.payments.push(MadePayment { order_id, amount, paid_at });
        Ok(())
    }
}

fn number(id: &str) -> Result<u64, Reason> {
    let wrong = || Reason::Number { column: "order_id", value: id.to_owned(), min: 0, max: u64::MAX };
    // `007` and `7` would be two orders in the replay, and one on a server.
    let plain = id == "0" || (!id.starts_with('0') && id.bytes().all(|byte| byte.is_ascii_digit()));
    if plain { id.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

//! Reads all of a store, and finds out whether it is whole.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::path::Path;

use redb::{Builder, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata};

use crate::store::EndState;

use super::{
    Bytes, CACHE, CHECKS, ENDED, ENDED_ORDER, Ended, META, NOW, OPEN, OUTCOMES, Outcome, PAYMENTS, RESERVED,
    SOLD, StoreError, Stored, file, guard, is_sealed, number, open_order, value,
};

/// Faults that are written out.
const SHOWN: usize = 20;

/// What a store has.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Orders that are pending.
    pub pending: u64,
    /// Orders that have ended.
    pub ended: u64,
    /// Payments that were counted.
    pub payments: u64,
    /// Items with units sold.
    pub items: u64,
    /// What is wrong; none if the store is whole.
    pub faults: u64,
    /// The first of them, a sentence each.
    pub shown: Vec<String>,
}

/// Checks the file of a store that no server has open: each page, each record, and that they agree. The
/// file stays as it is: what is opened, and repaired if it was not closed, is a copy of it, removed at the end.
///
/// # Errors
///
/// The file cannot be read or copied, is no store, another process has it open, or it is damaged so that not all
/// of it can be read.
pub fn check(path: &Path) -> Result<Report, StoreError> {
    let scratch = file::Scratch::of_store(path)?;
    guard(|| {
        let opened = Builder::new().set_cache_size(CACHE).open(scratch.path());
        let mut database = opened.map_err(file::no_store)?;
        let mut report = Report::default();
        if !database.check_integrity()? {
            report.fault("its pages are not as the engine has left them".to_owned());
        }
        let transaction = database.begin_read()?;
        is_sealed(&transaction)?;
        report.read(&transaction)?;
        Ok(report)
    })
}

type Units = HashMap<String, u64>;
type Records = ReadOnlyTable<Bytes, Bytes>;

impl Report {
    fn fault(&mut self, fault: String) {
        self.faults += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(fault);
        }
    }

    fn expect(&mut self, holds: bool, fault: impl Display) {
        if !holds {
            self.fault(fault.to_string());
        }
    }

    fn read(&mut self, transaction: &ReadTransaction) -> Result<(), StoreError> {
        let [mut reserved, mut sold] = [Units::new(), Units::new()];
        self.read_open(transaction, &mut reserved)?;
        self.read_ended(transaction, &mut sold)?;
        self.payments = self.each(&transaction.open_table(PAYMENTS)?, |_, key, stored| {
            value(key, stored, "payment").map(drop)
        })?;
        self.each(&transaction.open_table(META)?, |_, key, stored| {
            number(key, stored, if key == NOW { "time" } else { "format" }).map(drop)
        })?;
        // Sums without the damaged records are others.
        let whole = self.faults == 0;
        self.items = self.sums(&transaction.open_table(SOLD)?, "sold", sold, whole)?;
        self.sums(&transaction.open_table(RESERVED)?, "reserved", reserved, whole)?;
        Ok(())
    }

    fn read_open(&mut self, transaction: &ReadTransaction, reserved: &mut Units) -> Result<(), StoreError> {
        let checks = transaction.open_table(CHECKS)?;
        self.pending = self.each(&transaction.open_table(OPEN)?, |report, key, stored| {
            let order = open_order(key, stored)?;
            let id = order.order_id.to_be_bytes();
            let found = checks.get(&id[..])?.map(|at| number(&id, &at, "time of a check")).transpose()?;
            let agrees = key == order.key().to_be_bytes() && found == Some(order.check_at);
            report.expect(agrees, Of("the time of the check", order.order_id));
            *reserved.entry(order.item).or_default() += u64::from(order.quantity);
            Ok(())
        })?;
        self.expect(checks.len()? == self.pending, "the numbers of pending orders differ");
        Ok(())
    }

    fn read_ended(&mut self, transaction: &ReadTransaction, sold: &mut Units) -> Result<(), StoreError> {
        let outcomes = transaction.open_table(OUTCOMES)?;
        self.ended = self.each(&transaction.open_table(ENDED)?, |report, key, stored| {
            let end = Ended::decode(value(key, stored, ENDED_ORDER)?)?;
            report.expect(key == end.order.order_id.to_be_bytes(), Of("the key", end.order.order_id));
            let seq = end.seq.to_be_bytes();
            let found = outcomes.get(&seq[..])?;
            let found =
                found.map(|stored| Outcome::decode(&seq, value(&seq, &stored, "outcome")?)).transpose()?;
            report.expect(found == Some(end.outcome()), Of("the outcome", end.order.order_id));
            if end.state != EndState::Released {
                *sold.entry(end.order.item).or_default() += u64::from(end.order.quantity);
            }
            Ok(())
        })?;
        self.expect(
            outcomes.len()? == self.ended,
            "the numbers of outcomes and of orders that have ended differ",
        );
        Ok(())
    }

    /// Compares the units of all items with what they must be.
    fn sums(
        &mut self,
        table: &Records,
        what: &'static str,
        mut expected: Units,
        whole: bool,
    ) -> Result<u64, StoreError> {
        let items = self.each(table, |report, key, stored| {
            let units = number(key, stored, "item")?;
            let item = String::from_utf8_lossy(key);
            let must = expected.remove(&*item).unwrap_or_default();
            report.expect(
                !whole || units == must,
                format_args!("{item}: {units} units are {what}, not {must}"),
            );
            Ok(())
        })?;
        self.expect(!whole || expected.is_empty(), format_args!("items are missing among those {what}"));
        Ok(items)
    }

    /// Passes on all entries of a table; what is wrong with one is a fault. Returns their number.
    fn each(
        &mut self,
        table: &Records,
        mut look: impl FnMut(&mut Self, &[u8], &Stored<'_>) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let mut entries = 0;
        for entry in table.iter()? {
            let (key, stored) = entry?;
            match look(self, key.value(), &stored) {
                Err(damaged @ StoreError::Damaged { .. }) => {
                    let place =
                        key.value().last_chunk().map(|id| u64::from_be_bytes(*id)).unwrap_or_default();
                    self.fault(format!("{damaged}: {place}"));
                }
                looked => looked?,
            }
            entries += 1;
        }
        self.expect(table.len()? == entries, "the length of a table is not the number of its entries");
        Ok(entries)
    }
}

/// A part of an order that does not agree with the rest.
struct Of(&'static str, u64);

impl Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {}: {} does not agree with the order", self.1, self.0)
    }
}

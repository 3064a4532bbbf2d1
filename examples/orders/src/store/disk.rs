//! The embedded store: a copy-on-write B-tree in one file. A commit writes the pages that it
//! changes beside the old ones, syncs, and then switches to them; a crash leaves the old tree or the
//! new one.
//!
//! | table | key | value |
//! |---|---|---|
//! | `open` | time of the check, order | the pending order |
//! | `checks` | order | time of the check, of a pending order |
//! | `reserved` | item | units, the sum over the pending orders |
//! | `ended` | order | the order and its end |
//! | `outcomes` | number | order, state, time |
//! | `payments` | payment | order, amount |
//! | `sold` | item | units |
//! | `meta` | `now` | time of the last commit |
//!
//! The engine panics where a damaged page holds what it cannot have written. If that is in a commit, the
//! program ends.

use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use redb::{
    Builder, Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, StorageBackend, TableDefinition, WriteTransaction,
};

use super::{
    Changes, EndState, Ended, Known, Open, Outcome, Part, Recovered, Store, StoreError, open_key, record,
};

/// Quantity, amount, paid, time of placing; the item. The key has the rest.
type OpenRow = ((u32, u64, u64, u64), &'static str);
/// State, time of the end, number of the outcome; time of the check; a pending order's record.
type EndedRow = ((EndCode, u64, u64), u64, OpenRow);
/// Order, state, time.
type OutcomeRow = (u64, EndCode, u64);
/// The state of an order that has ended, as a number.
type EndCode = u8;

const OPEN: TableDefinition<'static, u128, OpenRow> = TableDefinition::new("open");
const CHECKS: TableDefinition<'static, u64, u64> = TableDefinition::new("checks");
const RESERVED: Units = TableDefinition::new("reserved");
const ENDED: TableDefinition<'static, u64, EndedRow> = TableDefinition::new("ended");
const OUTCOMES: TableDefinition<'static, u64, OutcomeRow> = TableDefinition::new("outcomes");
const PAYMENTS: TableDefinition<'static, &'static str, (u64, u64)> = TableDefinition::new("payments");
const SOLD: Units = TableDefinition::new("sold");
const META: Units = TableDefinition::new("meta");
/// The key of `META`.
const NOW: &str = "now";

/// A number for each name.
type Units = TableDefinition<'static, &'static str, u64>;

/// Pages that are kept in memory, in bytes.
const CACHE: usize = 256 << 20;

/// The file within the directory, and its name until it is made.
const FILE: &str = "orders.redb";
const NEW: &str = "orders.redb.new";

/// An embedded store in a directory.
pub struct Disk {
    // Dropped before the database: a view holds a part of it.
    views: RwLock<Views>,
    database: Database,
}

/// The tables as the last commit left them. A reader of them sees nothing that is not durable.
struct Views {
    open: ReadOnlyTable<u128, OpenRow>,
    checks: ReadOnlyTable<u64, u64>,
    ended: ReadOnlyTable<u64, EndedRow>,
    payments: ReadOnlyTable<&'static str, (u64, u64)>,
    outcomes: ReadOnlyTable<u64, OutcomeRow>,
}

impl Disk {
    /// Opens the store in a directory, or makes it if there is none.
    ///
    /// # Errors
    ///
    /// The directory cannot be made, read or written; another process has it open; or its file is no store,
    /// or damaged. Then the file stays as it is.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::of(Builder::new().set_cache_size(CACHE).open(find_or_make(directory.as_ref())?)?)
    }

    /// Opens a store on storage of the caller's own, or makes it if there is nothing: for tests
    /// that break it.
    ///
    /// # Errors
    ///
    /// The storage cannot be read or written, or holds something else.
    pub fn on(storage: impl StorageBackend) -> Result<Self, StoreError> {
        let database = Builder::new().set_cache_size(CACHE).create_with_backend(storage)?;
        if database.begin_read()?.list_tables()?.next().is_none() {
            make(&database)?;
        }
        Self::of(database)
    }

    fn of(database: Database) -> Result<Self, StoreError> {
        Ok(Self { views: RwLock::new(Views::of(&database)?), database })
    }

    fn view<R>(&self, look: impl FnOnce(&Views) -> Result<R, StoreError>) -> Result<R, StoreError> {
        look(&self.views.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns an order that has ended.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn ended(&self, order_id: u64) -> Result<Option<Ended>, StoreError> {
        self.view(|views| {
            let found = views.ended.get(order_id)?;
            Ok(found.map(|row| {
                let ((code, decided_at, seq), check_at, row) = row.value();
                Ended { order: open_order(check_at, order_id, row), state: state(code), decided_at, seq }
            }))
        })
    }

    /// Returns up to `limit` outcomes that come after number `after`.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub fn outcomes(&self, after: u64, limit: usize) -> Result<Vec<Outcome>, StoreError> {
        let Some(first) = after.checked_add(1) else { return Ok(Vec::new()) };
        // The range holds on to its tree, so the writer need not wait for the walk.
        let range = self.view(|views| Ok(views.outcomes.range(first..)?))?;
        let outcomes = range.take(limit).map(|entry| {
            let (seq, row) = entry?;
            let (order_id, code, decided_at) = row.value();
            Ok(Outcome { seq: seq.value(), order_id, state: state(code), decided_at })
        });
        outcomes.collect()
    }
}

/// The store's file in a directory. If there is none, it is made under another name first: without room
/// there is a file that is no store. One that is there is never made anew, whatever it holds.
fn find_or_make(directory: &Path) -> Result<PathBuf, StoreError> {
    fs::create_dir_all(directory)?;
    let path = directory.join(FILE);
    if path.exists() {
        return Ok(path);
    }
    // Held until the store is there: another process may begin as well.
    let (lock, new) = (File::open(directory)?, directory.join(NEW));
    lock.lock()?;
    if !path.exists() {
        fs::write(&new, [])?;
        make(&Builder::new().create(&new)?)?;
        fs::rename(&new, &path)?;
        lock.sync_all()?;
        say!("{}: there was no store; the shop begins without orders", path.display());
    }
    Ok(path)
}

/// Makes the tables of a new store.
fn make(database: &Database) -> Result<(), StoreError> {
    let transaction = begin(database)?;
    put(&transaction, &Changes::default())?;
    Ok(transaction.commit()?)
}

/// Begins a commit. A crash after it costs no walk over the whole file at the next start.
fn begin(database: &Database) -> Result<WriteTransaction, StoreError> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    Ok(transaction)
}

impl Views {
    fn of(database: &Database) -> Result<Self, StoreError> {
        let transaction = database.begin_read()?;
        Ok(Self {
            open: transaction.open_table(OPEN)?,
            checks: transaction.open_table(CHECKS)?,
            ended: transaction.open_table(ENDED)?,
            payments: transaction.open_table(PAYMENTS)?,
            outcomes: transaction.open_table(OUTCOMES)?,
        })
    }
}

/// By how much the units reserved of items change.
#[derive(Default)]
struct Reserved(HashMap<String, i64>);

impl Reserved {
    fn add(&mut self, order: &Open, sign: i64) {
        let units = sign * i64::from(order.quantity);
        match self.0.get_mut(&order.item) {
            Some(sum) => *sum += units,
            None => drop(self.0.insert(order.item.clone(), units)),
        }
    }

    fn put(self, transaction: &WriteTransaction) -> Result<(), StoreError> {
        let mut reserved = transaction.open_table(RESERVED)?;
        for (item, change) in self.0.into_iter().filter(|&(_, change)| change != 0) {
            let before = reserved.get(item.as_str())?.map_or(0, |units| units.value());
            match before.saturating_add_signed(change) {
                0 => drop(reserved.remove(item.as_str())?),
                units => drop(reserved.insert(item.as_str(), units)?),
            }
        }
        Ok(())
    }
}

fn put(transaction: &WriteTransaction, changes: &Changes) -> Result<(), StoreError> {
    let (mut open, mut checks) = (transaction.open_table(OPEN)?, transaction.open_table(CHECKS)?);
    let mut reserved = Reserved::default();
    for order in &changes.open {
        let is_new = open.insert(order.key(), open_row(order))?.is_none();
        // One that is there was paid in part.
        if is_new {
            checks.insert(order.order_id, order.check_at)?;
            reserved.add(order, 1);
        }
    }
    let (mut ended, mut outcomes) = (transaction.open_table(ENDED)?, transaction.open_table(OUTCOMES)?);
    for Ended { order, state, decided_at, seq } in &changes.ended {
        let was_there = open.remove(order.key())?.is_some();
        // One that is not there was placed by the same commit.
        if was_there {
            checks.remove(order.order_id)?;
            reserved.add(order, -1);
        }
        let code = *state as EndCode;
        ended.insert(order.order_id, ((code, *decided_at, *seq), order.check_at, open_row(order)))?;
        outcomes.insert(seq, (order.order_id, code, *decided_at))?;
    }
    reserved.put(transaction)?;
    let mut payments = transaction.open_table(PAYMENTS)?;
    for payment in &changes.payments {
        payments.insert(payment.payment_id.as_str(), (payment.order_id, payment.amount))?;
    }
    let mut sold = transaction.open_table(SOLD)?;
    for (item, units) in &changes.sold {
        sold.insert(item.as_str(), units)?;
    }
    transaction.open_table(META)?.insert(NOW, changes.now)?;
    Ok(())
}

fn open_row(order: &Open) -> ((u32, u64, u64, u64), &str) {
    let &Open { ref item, quantity, amount, paid, placed_at, .. } = order;
    ((quantity, amount, paid, placed_at), item)
}

fn open_order(check_at: u64, order_id: u64, row: ((u32, u64, u64, u64), &str)) -> Open {
    let ((quantity, amount, paid, placed_at), item) = row;
    Open { order_id, item: item.to_owned(), quantity, amount, paid, placed_at, check_at }
}

fn state(code: EndCode) -> EndState {
    let states = [EndState::PaidEarly, EndState::Confirmed, EndState::Released];
    // As the engine does about what it cannot have written.
    states.into_iter().find(|state| *state as EndCode == code).expect("a state of an order that has ended")
}

impl Store for Disk {
    fn recover(&self) -> Result<Recovered, StoreError> {
        let transaction = self.database.begin_read()?;
        let now = transaction.open_table(META)?.get(NOW)?.map_or(0, |now| now.value());
        let last_seq = transaction.open_table(OUTCOMES)?.last()?.map_or(0, |(seq, _)| seq.value());
        let pending = transaction.open_table(OPEN)?.len()? as usize;
        let (sold, reserved) = (units(&transaction, SOLD)?, units(&transaction, RESERVED)?);
        Ok(Recovered { now, last_seq, pending, open: Vec::new(), sold, reserved })
    }

    fn commit(&self, changes: &Changes) -> Result<(), StoreError> {
        let transaction = begin(&self.database)?;
        put(&transaction, changes)?;
        transaction.commit()?;
        let new = Views::of(&self.database)?;
        *self.views.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    fn pending(&self, keys: Range<u128>, limit: usize) -> Result<Part, StoreError> {
        // The range holds on to its tree, as that of `outcomes`.
        let range = self.view(|views| Ok(views.open.range(keys)?))?;
        let mut orders = Vec::new();
        for entry in range.take(limit) {
            let (key, row) = entry?;
            let key = key.value();
            orders.push(open_order((key >> u64::BITS) as u64, key as u64, row.value()));
        }
        let last = orders.last().filter(|_| orders.len() == limit);
        Ok(Part { next: last.and_then(|last| last.key().checked_add(1)), orders })
    }

    fn open(&self, order_id: u64) -> Result<Option<Open>, StoreError> {
        self.view(|views| {
            let Some(check_at) = views.checks.get(order_id)? else { return Ok(None) };
            let check_at = check_at.value();
            // It is in both tables or in none.
            let found = views.open.get(open_key(check_at, order_id))?;
            Ok(found.map(|row| open_order(check_at, order_id, row.value())))
        })
    }

    fn known(&self, order_id: u64) -> Result<Option<Known>, StoreError> {
        // In this order: a commit in between moves an order from the first to the second.
        let order = match self.open(order_id)? {
            None => self.ended(order_id)?.map(|ended| ended.order),
            open => open,
        };
        Ok(order.map(|order| order.known()))
    }

    fn payment(&self, payment_id: &str) -> Result<Option<u64>, StoreError> {
        let content = |(order_id, amount)| record::paid(order_id, amount);
        self.view(|views| Ok(views.payments.get(payment_id)?.map(|paid| content(paid.value()))))
    }
}

/// All entries of a table.
fn units(transaction: &ReadTransaction, table: Units) -> Result<Vec<(String, u64)>, StoreError> {
    let table = transaction.open_table(table)?;
    let entries = table.iter()?.map(|entry| {
        let (name, units) = entry?;
        Ok((name.value().to_owned(), units.value()))
    });
    entries.collect()
}

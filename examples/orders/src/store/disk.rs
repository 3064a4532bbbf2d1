//! The embedded store: a copy-on-write B-tree in one file. A commit writes the pages that it
//! changes beside the old ones, syncs, and then switches to them; a crash leaves the old tree or the
//! new one. `benches/stores.rs` compares it with a log-structured store.
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

mod file;

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use redb::{
    Builder, CommitError, Database, DatabaseError, ReadOnlyTable, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, StorageBackend, StorageError, TableDefinition, TableError, TransactionError,
    WriteTransaction,
};

use super::{
    Changes, DIGEST, Ended, History, Known, Open, Outcome, Part, Recovery, Resume, Store, StoreError, digest,
    open_key,
};

type Bytes = &'static [u8];
type Table = TableDefinition<'static, Bytes, Bytes>;

const OPEN: Table = Table::new("open");
const CHECKS: Table = Table::new("checks");
const RESERVED: Table = Table::new("reserved");
const ENDED: Table = Table::new("ended");
const OUTCOMES: Table = Table::new("outcomes");
const PAYMENTS: Table = Table::new("payments");
const SOLD: Table = Table::new("sold");
const META: Table = Table::new("meta");
/// The key of the only entry of `META`.
const NOW: &[u8] = b"now";

/// Pages that are kept in memory, in bytes.
const CACHE: usize = 256 << 20;

/// An embedded store in a directory.
pub struct Disk {
    // Dropped before the database: a view holds a part of it.
    views: RwLock<Views>,
    database: Database,
}

/// The tables as the last commit left them. A reader of them sees nothing that is not durable.
struct Views {
    open: ReadOnlyTable<Bytes, Bytes>,
    checks: ReadOnlyTable<Bytes, Bytes>,
    ended: ReadOnlyTable<Bytes, Bytes>,
    payments: ReadOnlyTable<Bytes, Bytes>,
    outcomes: ReadOnlyTable<Bytes, Bytes>,
}

impl Disk {
    /// Opens the store in a directory, or makes it.
    ///
    /// # Errors
    ///
    /// The directory cannot be made, read or written, or another process has it open.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, StoreError> {
        let make = |new: &Path| Self::with(Builder::new().create(new)?).map(drop);
        let path = file::find_or_make(directory.as_ref(), make)?;
        Self::with(Builder::new().set_cache_size(CACHE).open(path).map_err(file::no_store)?)
    }

    /// Finds out whether the store in a directory can grow: writes a file of twice the store's length, which
    /// is how a store grows, and removes it. Only its last part takes room.
    ///
    /// # Errors
    ///
    /// It cannot: most likely [`StoreError::Full`].
    pub fn try_room(directory: impl AsRef<Path>) -> Result<(), StoreError> {
        file::try_room(directory.as_ref())
    }

    /// Opens a store on storage of the caller's own: for tests that break it.
    ///
    /// # Errors
    ///
    /// The storage cannot be read or written, or holds something else.
    pub fn on(storage: impl StorageBackend) -> Result<Self, StoreError> {
        Self::with(Builder::new().set_cache_size(CACHE).create_with_backend(storage)?)
    }

    fn with(database: Database) -> Result<Self, StoreError> {
        let missing = database.begin_read()?.open_table(CHECKS).is_err();
        if missing {
            let transaction = begin(&database)?;
            for table in [OPEN, CHECKS, RESERVED, ENDED, OUTCOMES, PAYMENTS, SOLD, META] {
                transaction.open_table(table)?;
            }
            index(&transaction)?;
            transaction.commit()?;
        }
        Ok(Self { views: RwLock::new(Views::of(&database)?), database })
    }

    fn view<R>(&self, look: impl FnOnce(&Views) -> Result<R, StoreError>) -> Result<R, StoreError> {
        look(&self.views.read().unwrap_or_else(PoisonError::into_inner))
    }
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

/// Fills the tables of an earlier version's store that follow from the pending orders.
fn index(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let (open, mut checks) = (transaction.open_table(OPEN)?, transaction.open_table(CHECKS)?);
    let mut reserved = Reserved::default();
    for entry in open.iter()? {
        let (key, value) = entry?;
        let parts = key.value().split_at_checked(size_of::<u64>());
        let (check_at, order_id) = parts.ok_or(StoreError::Damaged { what: "key" })?;
        checks.insert(order_id, check_at)?;
        // A damaged record is reported when its turn comes.
        if let Ok(order) = Open::decode(value.value()) {
            reserved.add(&order, 1);
        }
    }
    reserved.put(transaction)
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
            let before =
                reserved.get(item.as_bytes())?.map_or(Ok(0), |units| number(units.value(), "item"))?;
            match before.saturating_add_signed(change) {
                0 => drop(reserved.remove(item.as_bytes())?),
                units => drop(reserved.insert(item.as_bytes(), &units.to_be_bytes()[..])?),
            }
        }
        Ok(())
    }
}

fn put(transaction: &WriteTransaction, changes: &Changes) -> Result<(), StoreError> {
    let (mut open, mut checks) = (transaction.open_table(OPEN)?, transaction.open_table(CHECKS)?);
    let mut reserved = Reserved::default();
    for order in &changes.open {
        // One that is there was paid in part.
        if open.insert(&order.key().to_be_bytes()[..], &order.encode()[..])?.is_none() {
            checks.insert(&order.order_id.to_be_bytes()[..], &order.check_at.to_be_bytes()[..])?;
            reserved.add(order, 1);
        }
    }
    let (mut ended, mut outcomes) = (transaction.open_table(ENDED)?, transaction.open_table(OUTCOMES)?);
    for end in &changes.ended {
        let order_id = end.order.order_id.to_be_bytes();
        // One that is not there was placed by the same commit.
        if open.remove(&end.order.key().to_be_bytes()[..])?.is_some() {
            checks.remove(&order_id[..])?;
            reserved.add(&end.order, -1);
        }
        ended.insert(&order_id[..], &end.encode()[..])?;
        outcomes.insert(&end.seq.to_be_bytes()[..], &end.outcome().encode()[..])?;
    }
    reserved.put(transaction)?;
    let mut payments = transaction.open_table(PAYMENTS)?;
    for payment in &changes.payments {
        payments.insert(payment.payment_id.as_bytes(), &payment.encode()[..])?;
    }
    let mut sold = transaction.open_table(SOLD)?;
    for (item, units) in &changes.sold {
        sold.insert(item.as_bytes(), &units.to_be_bytes()[..])?;
    }
    transaction.open_table(META)?.insert(NOW, &changes.now.to_be_bytes()[..])?;
    Ok(())
}

impl Store for Disk {
    fn recover(&self, into: &mut dyn Recovery) -> Result<Resume, StoreError> {
        let transaction = self.database.begin_read()?;
        each_item(&transaction.open_table(SOLD)?, |item, units| into.sold(item, units))?;
        each_item(&transaction.open_table(RESERVED)?, |item, units| into.reserved(item, units))?;
        let now = transaction.open_table(META)?.get(NOW)?.map_or(Ok(0), |now| number(now.value(), "time"))?;
        let outcomes = transaction.open_table(OUTCOMES)?;
        let last = outcomes.last()?;
        let last_seq = last.map_or(Ok(0), |(seq, _)| number(seq.value(), "outcome"))?;
        let pending = transaction.open_table(OPEN)?.len()? as usize;
        Ok(Resume { now, last_seq, pending })
    }

    fn commit(&self, changes: &Changes) -> Result<(), StoreError> {
        let transaction = begin(&self.database)?;
        put(&transaction, changes)?;
        transaction.commit()?;
        let views = Views::of(&self.database)?;
        *self.views.write().unwrap_or_else(PoisonError::into_inner) = views;
        Ok(())
    }

    fn pending(&self, keys: Range<u128>, limit: usize) -> Result<Part, StoreError> {
        let bounds = [keys.start, keys.end].map(u128::to_be_bytes);
        // The range holds on to its tree, as below.
        let range = self.view(|views| Ok(views.open.range(&bounds[0][..]..&bounds[1][..])?))?;
        let (mut part, mut read) = (Part::default(), 0);
        for entry in range.take(limit) {
            let (key, value) = entry?;
            let key = key.value().try_into().map_err(|_| StoreError::Damaged { what: "key" })?;
            let key = u128::from_be_bytes(key);
            match Open::decode(value.value()) {
                Ok(order) => part.orders.push(order),
                Err(_) => part.damaged.push(key),
            }
            read += 1;
            part.next = if read == limit { key.checked_add(1) } else { None };
        }
        Ok(part)
    }

    fn open(&self, order_id: u64) -> Result<Option<Open>, StoreError> {
        self.view(|views| {
            let Some(check_at) = views.checks.get(&order_id.to_be_bytes()[..])? else { return Ok(None) };
            let key = open_key(number(check_at.value(), "pending order")?, order_id);
            let found = views.open.get(&key.to_be_bytes()[..])?;
            found.map(|bytes| Open::decode(bytes.value())).transpose()
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
        self.view(|views| {
            let found = views.payments.get(payment_id.as_bytes())?;
            Ok(found.map(|bytes| digest(DIGEST, bytes.value())))
        })
    }
}

impl History for Disk {
    fn ended(&self, order_id: u64) -> Result<Option<Ended>, StoreError> {
        self.view(|views| {
            let found = views.ended.get(&order_id.to_be_bytes()[..])?;
            found.map(|bytes| Ended::decode(bytes.value())).transpose()
        })
    }

    fn outcomes(&self, after: u64, limit: usize) -> Result<Vec<Outcome>, StoreError> {
        let Some(first) = after.checked_add(1) else { return Ok(Vec::new()) };
        // The range holds on to its tree, so the writer need not wait for the walk.
        let range = self.view(|views| Ok(views.outcomes.range(&first.to_be_bytes()[..]..)?))?;
        let outcome = |entry: Result<(redb::AccessGuard<'_, Bytes>, redb::AccessGuard<'_, Bytes>), _>| {
            let (key, value) = entry?;
            Outcome::decode(key.value(), value.value())
        };
        range.take(limit).map(outcome).collect()
    }
}

fn each_item(
    table: &ReadOnlyTable<Bytes, Bytes>,
    mut tell: impl FnMut(String, u64),
) -> Result<(), StoreError> {
    const DAMAGED: StoreError = StoreError::Damaged { what: "item" };
    for entry in table.iter()? {
        let (item, units) = entry?;
        tell(String::from_utf8(item.value().to_vec()).map_err(|_| DAMAGED)?, number(units.value(), "item")?);
    }
    Ok(())
}

fn number(bytes: &[u8], what: &'static str) -> Result<u64, StoreError> {
    bytes.try_into().map(u64::from_be_bytes).map_err(|_| StoreError::Damaged { what })
}

impl From<StorageError> for StoreError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Io(error) => error.into(),
            error => Self::Engine(Box::new(error)),
        }
    }
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Storage(error) => error.into(),
            DatabaseError::DatabaseAlreadyOpen => {
                Self::Io(io::Error::new(ErrorKind::ResourceBusy, "another process has it open"))
            }
            error => Self::Engine(Box::new(error)),
        }
    }
}

impl From<TransactionError> for StoreError {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Storage(error) => error.into(),
            error => Self::Engine(Box::new(error)),
        }
    }
}

impl From<TableError> for StoreError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Storage(error) => error.into(),
            error => Self::Engine(Box::new(error)),
        }
    }
}

impl From<CommitError> for StoreError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Storage(error) => error.into(),
            error => Self::Engine(Box::new(error)),
        }
    }
}

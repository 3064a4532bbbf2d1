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
//! | `meta` | `now`, `format` | time of the last commit; [`FORMAT`] |
//!
//! Each value is followed by a checksum (`disk/seal.rs`). The engine's panics are errors here
//! (`disk/guard.rs`). `disk/copy.rs` copies a store, also one that is written; `disk/check.rs` reads all of it.

mod check;
mod copy;
mod errors;
mod file;
mod guard;
mod seal;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use redb::{
    AccessGuard, Builder, Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, StorageBackend, StorageError, TableDefinition, TableError, WriteTransaction,
};

use super::{
    Changes, DIGEST, Ended, History, Known, Open, Outcome, Part, Recovery, Resume, Store, StoreError, digest,
    open_key,
};

use guard::guard;
use seal::{seal, unseal};

pub use check::{Report, check};
pub use copy::{Copied, Snapshot};

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
const TABLES: [Table; 8] = [OPEN, CHECKS, RESERVED, ENDED, OUTCOMES, PAYMENTS, SOLD, META];
/// Keys of `META`.
const NOW: &[u8] = b"now";
const FORMAT: &[u8] = b"format";
/// The value of `FORMAT`: entries have checksums. A store without it has none, and is not read.
const SEALED: u64 = 2;

/// Pages that are kept in memory, in bytes.
const CACHE: usize = 256 << 20;

/// An embedded store in a directory.
pub struct Disk {
    /// `None` while it is dropped.
    opened: Option<Opened>,
}

struct Opened {
    // Dropped before the database: a view holds a part of it.
    views: RwLock<Views>,
    database: Database,
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The engine may find the damage only now. What is committed is on the disk.
        let opened = self.opened.take();
        let _ = guard(|| {
            drop(opened);
            Ok(())
        });
    }
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
    /// Opens the store in a directory, or makes it if there is none.
    ///
    /// # Errors
    ///
    /// The directory cannot be made, read or written; another process has it open; or its file is no store,
    /// one of another version, or damaged. Then the file stays as it is.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, StoreError> {
        guard(|| {
            let path = file::find_or_make(directory.as_ref(), |new| make(&Builder::new().create(new)?))?;
            Self::of(Builder::new().set_cache_size(CACHE).open(path).map_err(file::no_store)?)
        })
    }

    /// The store's file in a directory.
    #[must_use]
    pub fn file(directory: &Path) -> PathBuf {
        directory.join(file::FILE)
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

    /// Opens a store on storage of the caller's own, or makes it if there is nothing: for tests that break it.
    ///
    /// # Errors
    ///
    /// The storage cannot be read or written, or holds something else.
    pub fn on(storage: impl StorageBackend) -> Result<Self, StoreError> {
        guard(|| {
            let database = Builder::new().set_cache_size(CACHE).create_with_backend(storage)?;
            if database.begin_read()?.list_tables()?.next().is_none() {
                make(&database)?;
            }
            Self::of(database)
        })
    }

    fn of(database: Database) -> Result<Self, StoreError> {
        is_sealed(&database.begin_read()?)?;
        Ok(Self { opened: Some(Opened { views: RwLock::new(Views::of(&database)?), database }) })
    }

    fn opened(&self) -> &Opened {
        self.opened.as_ref().expect("a store is open until it is dropped")
    }

    fn view<R>(&self, look: impl FnOnce(&Views) -> Result<R, StoreError>) -> Result<R, StoreError> {
        guard(|| look(&self.opened().views.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Makes the tables of a new store.
fn make(database: &Database) -> Result<(), StoreError> {
    let transaction = begin(database)?;
    for table in TABLES {
        transaction.open_table(table)?;
    }
    transaction.open_table(META)?.insert(FORMAT, &seal(FORMAT, &SEALED.to_be_bytes())[..])?;
    Ok(transaction.commit()?)
}

/// Refuses what another version has written, or another program.
fn is_sealed(transaction: &ReadTransaction) -> Result<(), StoreError> {
    let meta = match transaction.open_table(META) {
        Err(TableError::TableDoesNotExist(_)) => return Err(file::other_version()),
        meta => meta?,
    };
    match meta.get(FORMAT)?.map(|format| number(FORMAT, &format, "format")) {
        Some(Ok(SEALED)) => Ok(()),
        Some(Err(damaged)) => Err(broken(damaged)),
        Some(Ok(_)) | None => Err(file::other_version()),
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
            let key = item.as_bytes();
            let before = reserved.get(key)?.map_or(Ok(0), |units| number(key, &units, "item"))?;
            match before.saturating_add_signed(change) {
                0 => drop(reserved.remove(key)?),
                units => drop(insert(&mut reserved, key, &units.to_be_bytes())?),
            }
        }
        Ok(())
    }
}

type Writable<'a> = redb::Table<'a, Bytes, Bytes>;

/// Enters a value with its checksum. Returns whether the key was there.
fn insert(table: &mut Writable<'_>, key: &[u8], value: &[u8]) -> Result<bool, StorageError> {
    Ok(table.insert(key, &seal(key, value)[..])?.is_some())
}

fn put(transaction: &WriteTransaction, changes: &Changes) -> Result<(), StoreError> {
    let (mut open, mut checks) = (transaction.open_table(OPEN)?, transaction.open_table(CHECKS)?);
    let mut reserved = Reserved::default();
    for order in &changes.open {
        // One that is there was paid in part.
        if !insert(&mut open, &order.key().to_be_bytes(), &order.encode())? {
            insert(&mut checks, &order.order_id.to_be_bytes(), &order.check_at.to_be_bytes())?;
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
        insert(&mut ended, &order_id, &end.encode())?;
        insert(&mut outcomes, &end.seq.to_be_bytes(), &end.outcome().encode())?;
    }
    reserved.put(transaction)?;
    let mut payments = transaction.open_table(PAYMENTS)?;
    for payment in &changes.payments {
        insert(&mut payments, payment.payment_id.as_bytes(), &payment.encode())?;
    }
    let mut sold = transaction.open_table(SOLD)?;
    for (item, units) in &changes.sold {
        insert(&mut sold, item.as_bytes(), &units.to_be_bytes())?;
    }
    insert(&mut transaction.open_table(META)?, NOW, &changes.now.to_be_bytes())?;
    Ok(())
}

impl Store for Disk {
    fn recover(&self, into: &mut dyn Recovery) -> Result<Resume, StoreError> {
        guard(|| recover(&self.opened().database.begin_read()?, into)).map_err(broken)
    }

    fn commit(&self, changes: &Changes) -> Result<(), StoreError> {
        let Opened { views, database } = self.opened();
        let commit = || {
            let transaction = begin(database)?;
            put(&transaction, changes)?;
            transaction.commit()?;
            let new = Views::of(database)?;
            *views.write().unwrap_or_else(PoisonError::into_inner) = new;
            Ok(())
        };
        guard(commit).map_err(broken)
    }

    fn pending(&self, keys: Range<u128>, limit: usize) -> Result<Part, StoreError> {
        let bounds = [keys.start, keys.end].map(u128::to_be_bytes);
        // The range holds on to its tree, as below.
        let range = self.view(|views| Ok(views.open.range(&bounds[0][..]..&bounds[1][..])?))?;
        guard(|| {
            let (mut part, mut read) = (Part::default(), 0);
            for entry in range.take(limit) {
                let (key, value) = entry?;
                match open_order(key.value(), &value) {
                    Ok(order) => part.orders.push(order),
                    Err(_) => part.damaged.push(open_place(key.value())?),
                }
                read += 1;
                part.next = if read == limit { open_place(key.value())?.checked_add(1) } else { None };
            }
            Ok(part)
        })
    }

    fn open(&self, order_id: u64) -> Result<Option<Open>, StoreError> {
        self.view(|views| {
            let id = order_id.to_be_bytes();
            let Some(check_at) = views.checks.get(&id[..])? else { return Ok(None) };
            let key = open_key(number(&id, &check_at, PENDING)?, order_id).to_be_bytes();
            // It is in both tables or in none.
            let found = views.open.get(&key[..])?.ok_or(StoreError::Damaged { what: PENDING })?;
            open_order(&key, &found).map(Some)
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
            let content = |bytes: Stored<'_>| value(payment_id.as_bytes(), &bytes, "payment").map(digest_of);
            found.map(content).transpose()
        })
    }
}

impl History for Disk {
    fn ended(&self, order_id: u64) -> Result<Option<Ended>, StoreError> {
        self.view(|views| {
            let id = order_id.to_be_bytes();
            let found = views.ended.get(&id[..])?;
            found.map(|bytes| Ended::decode(value(&id, &bytes, ENDED_ORDER)?)).transpose()
        })
    }

    fn outcomes(&self, after: u64, limit: usize) -> Result<Vec<Result<Outcome, u64>>, StoreError> {
        let Some(first) = after.checked_add(1) else { return Ok(Vec::new()) };
        // The range holds on to its tree, so the writer need not wait for the walk.
        let range = self.view(|views| Ok(views.outcomes.range(&first.to_be_bytes()[..]..)?))?;
        let outcome = |entry: Result<(Stored<'_>, Stored<'_>), _>| {
            let (key, bytes) = entry?;
            let key = key.value();
            let decoded = value(key, &bytes, "outcome").and_then(|bytes| Outcome::decode(key, bytes));
            match decoded {
                Ok(outcome) => Ok(Ok(outcome)),
                Err(_) => Ok(Err(plain_number(key, "outcome")?)),
            }
        };
        guard(|| range.take(limit).map(outcome).collect())
    }

    fn snapshot(&self) -> Result<Snapshot, StoreError> {
        guard(|| Ok(Snapshot::of(self.opened().database.begin_read()?)))
    }
}

fn recover(transaction: &ReadTransaction, into: &mut dyn Recovery) -> Result<Resume, StoreError> {
    each_item(&transaction.open_table(SOLD)?, |item, units| into.sold(item, units))?;
    each_item(&transaction.open_table(RESERVED)?, |item, units| into.reserved(item, units))?;
    let now = transaction.open_table(META)?.get(NOW)?;
    let now = now.map_or(Ok(0), |now| number(NOW, &now, "time"))?;
    let outcomes = transaction.open_table(OUTCOMES)?;
    let last_seq = outcomes.last()?.map_or(Ok(0), |(seq, _)| plain_number(seq.value(), "outcome"))?;
    let pending = transaction.open_table(OPEN)?.len()? as usize;
    Ok(Resume { now, last_seq, pending })
}

const PENDING: &str = "pending order";
const ENDED_ORDER: &str = "order that has ended";

type Stored<'a> = AccessGuard<'a, Bytes>;

/// A stored value without its checksum.
fn value<'a>(key: &[u8], stored: &'a Stored<'_>, what: &'static str) -> Result<&'a [u8], StoreError> {
    unseal(key, stored.value()).ok_or(StoreError::Damaged { what })
}

fn open_order(key: &[u8], stored: &Stored<'_>) -> Result<Open, StoreError> {
    Open::decode(value(key, stored, PENDING)?)
}

/// The key of a pending order as a number.
fn open_place(key: &[u8]) -> Result<u128, StoreError> {
    key.try_into().map(u128::from_be_bytes).map_err(|_| StoreError::Damaged { what: PENDING })
}

fn digest_of(bytes: &[u8]) -> u64 {
    digest(DIGEST, bytes)
}

fn each_item(
    table: &ReadOnlyTable<Bytes, Bytes>,
    mut tell: impl FnMut(String, u64),
) -> Result<(), StoreError> {
    const DAMAGED: StoreError = StoreError::Damaged { what: "item" };
    for entry in table.iter()? {
        let (item, units) = entry?;
        let item = item.value();
        let units = number(item, &units, "item")?;
        tell(String::from_utf8(item.to_vec()).map_err(|_| DAMAGED)?, units);
    }
    Ok(())
}

/// A stored number.
fn number(key: &[u8], stored: &Stored<'_>, what: &'static str) -> Result<u64, StoreError> {
    plain_number(value(key, stored, what)?, what)
}

fn plain_number(bytes: &[u8], what: &'static str) -> Result<u64, StoreError> {
    bytes.try_into().map(u64::from_be_bytes).map_err(|_| StoreError::Damaged { what })
}

/// Without this record the store cannot go on.
fn broken(error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged { .. } => StoreError::Broken { reason: error.to_string() },
        error => error,
    }
}

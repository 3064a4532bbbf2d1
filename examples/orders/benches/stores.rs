//! Compares two embedded stores behind the same trait: the B-tree that `serve` uses, and a
//! log-structured store.
//!
//! ```text
//! cargo bench -p orders --bench stores -- [ORDERS] [GROUP]
//! ```
//!
//! For each store, with ids that count up and with ids all over: places ORDERS orders in commits of
//! GROUP, each synced; ends two thirds of them, as checks and payments do; copies the files while
//! the store is open, as a crash leaves them; opens the copy, and reads what is pending. Prints
//! orders per second, the time from opening to the last pending order, and the directory's size. It
//! also prints how long the disk takes to sync 4 KiB by itself.

#[path = "../tests/support/mod.rs"]
mod support;

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use orders::store::{
    Changes, Disk, EndState, Ended, Known, Open, Part, Payment, Recovery, Resume, Store, StoreError,
};

fn main() {
    // `cargo bench` adds its own argument.
    let mut numbers = std::env::args().skip(1).filter_map(|arg| arg.parse::<u64>().ok());
    let (orders, group) = (numbers.next().unwrap_or(1_000_000), numbers.next().unwrap_or(800));
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stores");
    if let Err(error) = compare(&root, orders, group) {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn compare(root: &Path, orders: u64, group: u64) -> Result<(), Box<dyn Error>> {
    let _ = fs::remove_dir_all(root);
    fs::create_dir_all(root)?;
    println!("sync of 4 KiB: {:.2} ms (median of 101)", support::median_sync(root).as_secs_f64() * 1e3);
    println!("{orders} orders in groups of {group}");
    println!(
        "| store | placed a second | decided a second | opened and read, s | MiB, placed | MiB, decided |"
    );
    println!("|---|---|---|---|---|---|");
    for (ids, spread) in [("counted up", 1), ("all over", SPREAD)] {
        for (name, open) in STORES {
            let directory = root.join(name);
            let job = Job { orders, group, spread };
            println!("| {name}, ids {ids} | {} |", measure(&directory, *open, &job)?);
            fs::remove_dir_all(directory)?;
        }
    }
    Ok(())
}

type Opener = fn(&Path) -> Result<Box<dyn Store>, Box<dyn Error>>;

const STORES: &[(&str, Opener)] = &[
    ("fjall", |directory| Ok(Box::new(Log::open(directory)?))),
    ("redb", |directory| Ok(Box::new(Disk::open(directory)?))),
];

/// Odd, so that every number has an id of its own: the golden ratio in 64 bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

struct Job {
    orders: u64,
    group: u64,
    /// An order's number is multiplied by this to give its id.
    spread: u64,
}

fn measure(directory: &Path, open: Opener, job: &Job) -> Result<String, Box<dyn Error>> {
    let &Job { orders, group, .. } = job;
    let live = directory.join("live");
    let store = open(&live)?;
    let placed = per_second(orders, || (0..orders / group).try_for_each(|n| place(&*store, n, job)))?;
    let placed_size = size(&live)?;
    let (to_end, mut seq) = (orders * 2 / 3, 0);
    let decided =
        per_second(to_end, || (0..to_end / group).try_for_each(|n| end(&*store, n, job, &mut seq)))?;
    let (crashed, decided_size) = (directory.join("crashed"), size(&live)?);
    copy(&live, &crashed)?;
    drop(store);
    let begin = Instant::now();
    let pending = pending(&*open(&crashed)?)?;
    let took = begin.elapsed().as_secs_f64();
    let expected = orders / group * group - to_end / group * group;
    assert_eq!(pending, expected, "what is pending after the restart");
    Ok(format!("{placed:.0} | {decided:.0} | {took:.2} | {placed_size} | {decided_size}"))
}

fn per_second(operations: u64, work: impl FnOnce() -> Result<(), StoreError>) -> Result<f64, StoreError> {
    let begin = Instant::now();
    work()?;
    Ok(operations as f64 / begin.elapsed().as_secs_f64())
}

impl Job {
    fn group(&self, number: u64) -> impl Iterator<Item = (u64, Open)> {
        (number * self.group..(number + 1) * self.group).map(|at| (at, self.order(at)))
    }

    fn order(&self, at: u64) -> Open {
        let (order_id, item) = (at.wrapping_mul(self.spread), format!("item-{}", at % 1_000));
        let check_at = at / 100 + 1_800_000;
        Open { order_id, item, quantity: 2, amount: 1_999, paid: 0, placed_at: at / 100, check_at }
    }
}

/// What the server looks up and commits for a group of new orders.
fn place(store: &dyn Store, number: u64, job: &Job) -> Result<(), StoreError> {
    let open = job.group(number).map(|(_, order)| order).collect::<Vec<_>>();
    for order in &open {
        assert!(store.known(order.order_id)?.is_none(), "every order is new");
    }
    store.commit(&Changes { now: number, open, ..Changes::default() })
}

/// What the server looks up and commits for a group of payments in full.
fn end(store: &dyn Store, number: u64, job: &Job, seq: &mut u64) -> Result<(), StoreError> {
    let mut changes = Changes { now: number, ..Changes::default() };
    for (at, order) in job.group(number) {
        let order_id = order.order_id;
        let payment_id = format!("p-{order_id}");
        assert!(store.payment(&payment_id)?.is_none(), "every payment is new");
        *seq += 1;
        changes.sold.push((order.item.clone(), at));
        changes.ended.push(Ended { order, state: EndState::PaidEarly, decided_at: at, seq: *seq });
        changes.payments.push(Payment { payment_id, order_id, amount: 1_999 });
    }
    store.commit(&changes)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() { copy(&path, &target)? } else { fs::copy(&path, &target).map(drop)? }
    }
    Ok(())
}

/// Reads all that is pending, as a server that has room in memory.
fn pending(store: &dyn Store) -> Result<u64, StoreError> {
    let (mut read, mut next) = (0, Some(0));
    while let Some(first) = next {
        let part = store.pending(first..u128::MAX, 1_000)?;
        (read, next) = (read + part.orders.len() as u64, part.next);
    }
    Ok(read)
}

/// The bytes on disk of all files below a directory, in MiB. Holes in files do not count.
fn size(directory: &Path) -> std::io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let (mut blocks, mut folders) = (0, vec![directory.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let (path, about) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
            if about.is_dir() {
                folders.push(path);
            } else {
                blocks += about.blocks();
            }
        }
    }
    Ok((blocks * 512) >> 20)
}

/// The same tables in a log-structured tree, but for the units reserved: these need the old record, which is
/// not asked for here.
struct Log {
    database: Database,
    open: Keyspace,
    checks: Keyspace,
    ended: Keyspace,
    outcomes: Keyspace,
    payments: Keyspace,
    sold: Keyspace,
}

impl Log {
    fn open(directory: &Path) -> Result<Self, Box<dyn Error>> {
        let database = Database::builder(directory).open()?;
        let tree = |name| database.keyspace(name, KeyspaceCreateOptions::default);
        Ok(Self {
            open: tree("open")?,
            checks: tree("checks")?,
            ended: tree("ended")?,
            outcomes: tree("outcomes")?,
            payments: tree("payments")?,
            sold: tree("sold")?,
            database,
        })
    }
}

fn engine(error: fjall::Error) -> StoreError {
    StoreError::Engine(Box::new(error))
}

impl Store for Log {
    fn recover(&self, _: &mut dyn Recovery) -> Result<Resume, StoreError> {
        Ok(Resume::default())
    }

    fn pending(&self, keys: Range<u128>, limit: usize) -> Result<Part, StoreError> {
        let range = self.open.range(keys.start.to_be_bytes()..keys.end.to_be_bytes());
        let order = |entry: fjall::Guard| Open::decode(&entry.value().map_err(engine)?);
        let orders = range.take(limit).map(order).collect::<Result<Vec<_>, _>>()?;
        let next = orders.last().filter(|_| orders.len() == limit).map(|order| order.key() + 1);
        Ok(Part { orders, damaged: Vec::new(), next })
    }

    fn commit(&self, changes: &Changes) -> Result<(), StoreError> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for order in &changes.open {
            batch.insert(&self.open, order.key().to_be_bytes(), order.encode());
            batch.insert(&self.checks, order.order_id.to_be_bytes(), order.check_at.to_be_bytes());
        }
        for ended in &changes.ended {
            batch.remove(&self.open, ended.order.key().to_be_bytes());
            batch.remove(&self.checks, ended.order.order_id.to_be_bytes());
            batch.insert(&self.ended, ended.order.order_id.to_be_bytes(), ended.encode());
            batch.insert(&self.outcomes, ended.seq.to_be_bytes(), ended.outcome().encode());
        }
        for payment in &changes.payments {
            batch.insert(&self.payments, payment.payment_id.as_bytes(), payment.encode());
        }
        for (item, units) in &changes.sold {
            batch.insert(&self.sold, item.as_bytes(), units.to_be_bytes());
        }
        batch.commit().map_err(engine)
    }

    fn payment(&self, payment_id: &str) -> Result<Option<u64>, StoreError> {
        let known = self.payments.contains_key(payment_id).map_err(engine)?;
        // No payment comes again here, so its content is not asked for.
        Ok(known.then_some(0))
    }

    fn open(&self, order_id: u64) -> Result<Option<Open>, StoreError> {
        let Some(check_at) = self.checks.get(order_id.to_be_bytes()).map_err(engine)? else {
            return Ok(None);
        };
        let key = [&check_at[..], &order_id.to_be_bytes()].concat();
        let bytes = self.open.get(key).map_err(engine)?;
        bytes.map(|bytes| Open::decode(&bytes)).transpose()
    }

    fn known(&self, order_id: u64) -> Result<Option<Known>, StoreError> {
        if let Some(order) = self.open(order_id)? {
            return Ok(Some(order.known()));
        }
        let bytes = self.ended.get(order_id.to_be_bytes()).map_err(engine)?;
        bytes.map(|bytes| Ended::decode(&bytes).map(|ended| ended.order.known())).transpose()
    }
}

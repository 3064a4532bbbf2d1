//! A last commit that a crash tears: the storage under the store records every write, and a crash
//! keeps what was synced, and of the later writes any part.

use std::collections::{HashMap, HashSet};
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use orders::store::{Changes, Disk, EndState, Ended, Open, Payment, Store};
use redb::StorageBackend;

/// Storage in memory, and what was done to it since `remember`.
#[derive(Clone, Debug, Default)]
struct Tape(Arc<Mutex<Reel>>);

#[derive(Debug, Default)]
struct Reel {
    bytes: Vec<u8>,
    /// The bytes when recording began; `None` before.
    start: Option<Vec<u8>>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

impl Step {
    /// Does this step, or the first `part` bytes of a write.
    fn redo(&self, bytes: &mut Vec<u8>, part: usize) {
        match self {
            Self::Write(offset, data) => {
                let (at, data) = (*offset as usize, &data[..part.min(data.len())]);
                bytes[at..at + data.len()].copy_from_slice(data);
            }
            Self::SetLen(length) => bytes.resize(*length as usize, 0),
            Self::Sync => {}
        }
    }

    fn length(&self) -> usize {
        if let Self::Write(_, data) = self { data.len() } else { 0 }
    }
}

impl Tape {
    fn holding(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Reel { bytes, ..Reel::default() })))
    }

    fn reel(&self) -> MutexGuard<'_, Reel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to record.
    fn remember(&self) {
        let mut reel = self.reel();
        reel.start = Some(reel.bytes.clone());
    }

    fn step(&self, step: Step) {
        let mut reel = self.reel();
        step.redo(&mut reel.bytes, usize::MAX);
        if reel.start.is_some() {
            reel.steps.push(step);
        }
    }
}

impl StorageBackend for Tape {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.reel().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let (reel, at) = (self.reel(), offset as usize);
        let part = reel.bytes.get(at..at + out.len());
        out.copy_from_slice(part.ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<(), Error> {
        self.step(Step::SetLen(length));
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.step(Step::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.step(Step::Write(offset, data.to_vec()));
        Ok(())
    }
}

fn order(order_id: u64) -> Open {
    let item = format!("item-{}", order_id % 3);
    Open { order_id, item, quantity: 2, amount: 1_999, paid: 0, placed_at: 5, check_at: 100 + order_id }
}

/// Orders that are paid in full, and new ones.
fn changes(ended: std::ops::Range<u64>, placed: std::ops::Range<u64>) -> Changes {
    let mut changes = Changes { now: placed.start, open: placed.map(order).collect(), ..Changes::default() };
    for order_id in ended {
        let order = order(order_id);
        changes.sold.push((order.item.clone(), order_id));
        changes.payments.push(Payment { payment_id: format!("p-{order_id}"), order_id, amount: 1_999 });
        changes.ended.push(Ended { order, state: EndState::PaidEarly, decided_at: 9, seq: order_id });
    }
    changes
}

/// Reads the orders that are pending, in parts.
fn pending_orders(store: &Disk) -> HashSet<u64> {
    let (mut seen, mut next) = (HashSet::new(), Some(0));
    while let Some(first) = next {
        let part = store.pending(first..u128::MAX, 7).expect("what is left can be read");
        assert!(part.orders.is_sorted_by_key(Open::key));
        next = part.next;
        seen.extend(part.orders.iter().map(|order| order.order_id));
    }
    seen
}

/// A store with forty orders, one of them ended, and the steps of a commit that ends thirty more and
/// places thirty.
fn recorded() -> (Vec<u8>, Vec<Step>) {
    let tape = Tape::default();
    let store = Disk::on(tape.clone()).expect("a new store");
    store.commit(&changes(0..0, 1..41)).expect("a commit");
    store.commit(&changes(1..2, 41..41)).expect("a commit");
    tape.remember();
    store.commit(&changes(2..32, 41..71)).expect("a commit");
    let mut reel = tape.reel();
    let start = reel.start.take().expect("it was remembered");
    (start, std::mem::take(&mut reel.steps))
}

/// Opens what a crash left. Returns whether the last commit is there; it is there whole or not at
/// all, and the store goes on.
fn reopen(bytes: Vec<u8>, what: &dyn Fn() -> String) -> bool {
    let tape = Tape::holding(bytes);
    let store = Disk::on(tape.clone()).unwrap_or_else(|error| panic!("{error}: {}", what()));
    let resume = store.recover().expect("what is left can be read");
    let seen = pending_orders(&store);
    let there = resume.last_seq == 31;
    let (pending, seq, now) = if there { (32..71, 31, 41) } else { (2..41, 1, 41) };
    assert_eq!((resume.last_seq, resume.now), (seq, now), "{}", what());
    assert_eq!(seen, pending.clone().collect(), "{}", what());
    let mut reserved = HashMap::<String, u64>::new();
    for id in 1..100 {
        let found = store.open(id).expect("a look-up");
        assert_eq!(found, pending.contains(&id).then(|| order(id)), "order {id}: {}", what());
        let units = found.map(|order| (order.item, u64::from(order.quantity)));
        units.into_iter().for_each(|(item, units)| *reserved.entry(item).or_default() += units);
    }
    let found = resume.reserved.into_iter().collect::<HashMap<_, _>>();
    assert_eq!((resume.pending, found), (seen.len(), reserved), "{}", what());
    for id in 1..32 {
        let ended = store.ended(id).expect("a look-up").is_some();
        let paid = store.payment(&format!("p-{id}")).expect("a look-up").is_some();
        assert_eq!((ended, paid), (there || id == 1, there || id == 1), "order {id}: {}", what());
    }
    let outcomes = store.outcomes(0, 100).expect("a walk");
    assert_eq!(outcomes.len() as u64, seq, "{}", what());
    store.commit(&changes(40..41, 90..91)).expect("the store goes on");
    drop(store);
    let again = Disk::on(tape).expect("a store that was closed");
    assert!(again.payment("p-40").expect("a look-up").is_some());
    there
}

/// The image after the steps before `end`, and `part` bytes of the step at `end`.
fn image(start: &[u8], steps: &[Step], end: usize, part: usize) -> Vec<u8> {
    let mut bytes = start.to_vec();
    steps[..end].iter().for_each(|step| step.redo(&mut bytes, usize::MAX));
    if let Some(step) = steps.get(end) {
        step.redo(&mut bytes, part);
    }
    bytes
}

/// Large writes are cut at the bounds of sectors and beside them, small ones at every byte.
#[test]
fn a_commit_that_is_cut_at_any_byte_is_there_whole_or_not_at_all() {
    cut_at_bytes(|at, length| length <= 512 || matches!(at % 512, 0 | 1 | 511));
}

#[test]
#[ignore = "takes a minute with --release, and many without"]
fn a_commit_that_is_cut_at_every_byte_is_there_whole_or_not_at_all() {
    cut_at_bytes(|_, _| true);
}

/// Cuts before each step, and within writes. `chosen` gets the place within a write, and its length.
fn cut_at_bytes(chosen: impl Fn(usize, usize) -> bool) {
    let (start, steps) = recorded();
    let mut there = Vec::new();
    for end in 0..=steps.len() {
        there.push(reopen(image(&start, &steps, end, 0), &|| format!("cut before step {end}")));
        let length = steps.get(end).map_or(0, Step::length);
        for part in (1..length).filter(|&at| chosen(at, length)) {
            reopen(image(&start, &steps, end, part), &|| format!("cut at byte {part} of step {end}"));
        }
    }
    assert!(!there[0] && there[steps.len()], "from not there to there");
    assert!(there.is_sorted(), "once it is there, it stays: {there:?}");
    let last_sync = steps.iter().rposition(|step| matches!(step, Step::Sync)).expect("a commit syncs");
    assert!(there[last_sync + 1], "it is there when the last sync has returned");
}

/// Of the writes since the last sync, a disk may have done any, in any order.
#[test]
fn a_commit_of_which_any_writes_are_lost_is_there_whole_or_not_at_all() {
    let (start, steps) = recorded();
    let mut rng = fastrand::Rng::with_seed(7);
    for round in 0..400 {
        let end = rng.usize(0..=steps.len());
        let synced = steps[..end].iter().rposition(|step| matches!(step, Step::Sync)).map_or(0, |at| at + 1);
        let mut bytes = image(&start, &steps[..synced], synced, 0);
        // Lengths first: a write that is done is within the file.
        let late = &steps[synced..end];
        late.iter().filter(|step| matches!(step, Step::SetLen(_))).for_each(|step| step.redo(&mut bytes, 0));
        for step in late.iter().filter(|step| step.length() > 0) {
            if rng.bool() {
                let part = if rng.bool() { usize::MAX } else { rng.usize(0..=step.length()) };
                step.redo(&mut bytes, part);
            }
        }
        reopen(bytes, &|| format!("round {round}: synced {synced}, ended at {end} of {}", steps.len()));
    }
}

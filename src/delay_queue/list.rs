//! The list of a queue's values, for the calls that are about all of them.
//!
//! A value that waits lies in its timer's node, and the queue's timer has other nodes as well. So
//! the queue keeps a record of each value: its number, and the key of its first timer. The call
//! asks the shard about the timers (see [`keys`](super::keys)).
//!
//! # The way of a record
//!
//! The records lie in blocks of [`SLOTS`] slots. The blocks are linked, the newest one first.
//!
//! | who | when | what it does to a slot |
//! |---|---|---|
//! | the producer | before it schedules the value | claims it: a compare-and-swap of `newest` |
//! | the producer | when it has the timer's key | writes the key, then sets `is_written`: Release |
//! | the thread that takes the value out | any time after the claim | sets `has_left`: Release |
//! | a sweep, under the lock | both flags of all slots are set | frees the block |
//! | a call about all values, under the lock | `is_written` is set, `has_left` is not | reads the key |
//!
//! *Invariant*: a block that was published stays until both flags of all its slots are set, and it
//! is not the newest. The producer and the value each hold the slot by one of the flags, and set it
//! as the last thing that they do there; neither waits for the other. So the value may expire and
//! leave before the producer has written its key: the key is then written to a slot that nothing
//! reads. Only a sweep frees blocks and writes the links of published ones, and only under the
//! lock, so what a call about all values walks over stays.
//!
//! Of two producers that claim, the one whose compare-and-swap fails tries again. The address in
//! `newest` may be that of a block that was freed meanwhile and made anew. The claim is right then
//! as well: nothing is read from the block before the claim, and the claim is for the new block.
//! A producer that makes a block has linked it to the full one before the block is published. The
//! full one is the newest until then, so no sweep frees it.
//!
//! No user code runs under the lock. A producer never takes it. A thread that takes a value out
//! sweeps only if no other thread has the lock: nothing waits for a call about all values.
//!
//! A value whose insert unwinds, because a driver's waker panics, has no record. It expires as the
//! others. Its block stays until the queue is dropped.
//!
//! # The cost
//!
//! A record in a box of its own, a lock or a table by number each cost an insert or a receive more
//! than a quarter. Here an insert pays one compare-and-swap, a receive one store. A list of the
//! values' own boxes would keep large values until the next sweep, and each sweep would read memory
//! that no cache has. A record takes 20 bytes; at worst, if one value of each block stays, 304.

use std::panic::RefUnwindSafe;
use std::ptr::null_mut;
use std::{array, iter};

use crossbeam_utils::CachePadded;

use super::keys::Record;
use crate::clock::unpoisoned;
use crate::sync::{AtomicBool, AtomicPtr, Mutex, Ordering, UnsafeCell, plain};
use crate::timer::TimerKey;

/// How many slots a block has. The low bits of a block's address count those that are claimed.
const SLOTS: usize = if cfg!(shardwheel_loom) { 2 } else { 15 };

/// Of so many values, one sweeps when it leaves.
const SHARE: u64 = 64;

/// How many blocks a sweep visits: as many as three times the values of one share need. So about a
/// third of the blocks are ones that a sweep would free.
const SWEPT: usize = 3 * SHARE as usize / SLOTS;

/// A list of records.
pub(super) struct List {
    /// The address of the newest block plus the number of its slots that have been claimed.
    /// Written by producers.
    newest: CachePadded<AtomicPtr<Block>>,
    /// How many numbers the blocks have got. Written by producers.
    numbers: plain::AtomicU64,
    /// The block before the one that the next sweep visits first. The lock is that of the links.
    swept: Mutex<plain::AtomicPtr<Block>>,
}

#[repr(align(16))]
struct Block {
    /// The block that was the newest one before.
    next: plain::AtomicPtr<Block>,
    /// The number of the first slot's value.
    first: u64,
    keys: [UnsafeCell<Option<TimerKey>>; SLOTS],
    is_written: [AtomicBool; SLOTS],
    has_left: [AtomicBool; SLOTS],
}

// No user code runs while a block is half changed.
impl RefUnwindSafe for Block {}

/// A value's slot: the address of the block plus the number of the slot.
pub(super) struct Place(plain::AtomicPtr<Block>);

impl Block {
    fn before(next: *mut Self, first: u64) -> *mut Self {
        let next = plain::AtomicPtr::new(next);
        let keys = array::from_fn(|_| UnsafeCell::new(None));
        let [is_written, has_left] = [(); 2].map(|()| array::from_fn(|_| AtomicBool::new(false)));
        Box::into_raw(Box::new(Self { next, first, keys, is_written, has_left }))
    }

    fn next(&self) -> *mut Self {
        // Ordering: Relaxed, written before the block was published, or under the lock.
        self.next.load(Ordering::Relaxed)
    }

    /// The record in a slot, if the value has not left.
    fn record(&self, slot: usize) -> Option<Record> {
        // Ordering: Acquire, pairs with the Release in `write`.
        let is_written = self.is_written[slot].load(Ordering::Acquire);
        // Ordering: Relaxed, the value may leave after this as well.
        let is_read = is_written && !self.has_left[slot].load(Ordering::Relaxed);
        // SAFETY: nothing is written after `is_written` is set.
        let key = is_read.then(|| self.keys[slot].with_mut(|key| unsafe { *key })).flatten();
        Some((self.first + slot as u64, key?))
    }

    /// Whether no thread touches the slots any more.
    fn is_done(&self) -> bool {
        // Ordering: Acquire, pairs with the Releases in `leave` and `write`.
        self.has_left.iter().chain(&self.is_written).all(|flag| flag.load(Ordering::Acquire))
    }
}

impl List {
    pub(super) fn new() -> Self {
        let block = Block::before(null_mut(), 0);
        let (newest, swept) = (CachePadded::new(AtomicPtr::new(block)), plain::AtomicPtr::new(block));
        Self { newest, numbers: plain::AtomicU64::new(SLOTS as u64), swept: Mutex::new(swept) }
    }

    /// Claims a slot for a value. Returns the value's number, and the slot: for the producer, and
    /// for the value.
    pub(super) fn claim(&self) -> (u64, [Place; 2]) {
        let mut seen = self.newest();
        loop {
            let (block, claimed) = parts(seen);
            let is_full = claimed == SLOTS;
            let next = if is_full { self.block_before(block) } else { seen.wrapping_byte_add(1) };
            // Ordering: AcqRel, pairs with itself and with `newest`: a block that is seen is
            // complete, and so are those behind it.
            match self.newest.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if is_full => seen = next,
                Ok(_) => {
                    // SAFETY: a block stays while a slot that was claimed is not done.
                    let id = unsafe { &*block }.first + claimed as u64;
                    return (id, [seen; 2].map(|place| Place(plain::AtomicPtr::new(place))));
                }
                Err(now) => {
                    // SAFETY: the block was not published.
                    is_full.then(|| drop(unsafe { Box::from_raw(next) }));
                    seen = now;
                }
            }
        }
    }

    #[cold]
    fn block_before(&self, next: *mut Block) -> *mut Block {
        // Ordering: Relaxed, the number alone matters.
        Block::before(next, self.numbers.fetch_add(SLOTS as u64, Ordering::Relaxed))
    }

    /// Notes the key of the value's timer; `None` if it was refused.
    ///
    /// # Safety
    ///
    /// The slot is the producer's, and of this list.
    pub(super) unsafe fn write(&self, slot: Place, key: Option<TimerKey>) {
        let (block, slot) = parts(slot.0.into_inner());
        // SAFETY: a block stays while a slot that was claimed is not done.
        let block = unsafe { &*block };
        // SAFETY: the flag is not set, so no other thread touches the key.
        block.keys[slot].with_mut(|place| unsafe { *place = key });
        // Ordering: Release, pairs with the Acquire in `record` and in `is_done`.
        block.is_written[slot].store(true, Ordering::Release);
    }

    /// Notes that the value leaves the queue. Returns its number.
    ///
    /// # Safety
    ///
    /// The slot is the value's, of this list, and this is its first call.
    #[inline]
    pub(super) unsafe fn leave(&self, slot: &mut Place) -> u64 {
        let (block, slot) = parts(*slot.0.get_mut());
        // SAFETY: a block stays while a slot that was claimed is not done.
        let block = unsafe { &*block };
        let id = block.first + slot as u64;
        // Ordering: Release, pairs with the Acquire in `is_done`.
        block.has_left[slot].store(true, Ordering::Release);
        if id.is_multiple_of(SHARE) {
            self.sweep();
        }
        id
    }

    /// The records of all values that have not left.
    pub(super) fn records(&self) -> Vec<Record> {
        let _links = unpoisoned(self.swept.lock());
        self.blocks().flat_map(|block| (0..SLOTS).filter_map(|slot| block.record(slot))).collect()
    }

    /// Frees blocks. Not inlined, so that `leave` stays small.
    #[inline(never)]
    pub(super) fn sweep(&self) {
        let Ok(mut swept) = self.swept.try_lock() else { return };
        for _ in 0..SWEPT {
            // SAFETY: a block that is linked stays, but for the sweeps, which free only those behind
            // this one.
            let before = unsafe { &**swept.get_mut() };
            let next = before.next();
            // SAFETY: as above.
            let Some(block) = (unsafe { next.as_ref() }) else {
                *swept.get_mut() = parts(self.newest()).0;
                continue;
            };
            if !block.is_done() {
                *swept.get_mut() = next;
                continue;
            }
            // Ordering: Relaxed, see `Block::next`.
            before.next.store(block.next(), Ordering::Relaxed);
            // SAFETY: it is linked no more, and no producer and no value has a slot of it.
            drop(unsafe { Box::from_raw(next) });
        }
    }

    fn newest(&self) -> *mut Block {
        // Ordering: Acquire, pairs with the Release in `claim`.
        self.newest.load(Ordering::Acquire)
    }

    /// All blocks. The caller has the lock.
    fn blocks(&self) -> impl Iterator<Item = &Block> {
        // SAFETY: a block that is linked stays, while no sweep has the lock.
        let get = |block: *mut Block| unsafe { block.as_ref() };
        iter::successors(get(parts(self.newest()).0), move |block| get(block.next()))
    }

    /// For how many values the list has room.
    #[cfg(any(test, shardwheel_loom, shardwheel_model))]
    pub(super) fn room(&self) -> usize {
        let _links = unpoisoned(self.swept.lock());
        self.blocks().count() * SLOTS
    }
}

/// The block, and the number of a slot, or of the claimed slots.
fn parts(place: *mut Block) -> (*mut Block, usize) {
    let slot = place.addr() % align_of::<Block>();
    (place.wrapping_byte_sub(slot), slot)
}

impl Drop for List {
    fn drop(&mut self) {
        let mut next = parts(self.newest()).0;
        while !next.is_null() {
            // SAFETY: a block that is linked, and the list gives it up.
            next = unsafe { Box::from_raw(next) }.next();
        }
    }
}

//! A table of pointers to memory that producers read, and that the advancer may take away meanwhile.
//!
//! A reader shows why the memory stays while it reads: it has a [`Keep`]. There is a [`Keep`] for a
//! pinned participant, for the shard's one [`Reclaimer`], and for a thread that owns a part of the
//! memory, which then is not taken away.
//!
//! Memory goes in two steps. [`Table::replace`] takes it out of its place, so that no later reader
//! finds it. When the readers that found it before have unpinned, it is on the list of the
//! [`Retired`], from which the advancer takes it.
//!
//! A shard makes its tables, its epochs and its reclaimer together. A [`Keep`] from another shard
//! would keep nothing, but no part of a shard is ever handed to another.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use crate::fallible::{self, Stack, Stacked};
use crate::shard::memory::epochs::{Guard, Reclaimer};
use crate::sync::{AtomicPtr, AtomicU32, Ordering};

/// Shows that what a place holds is not taken away during `'g`.
#[derive(Clone, Copy)]
pub(crate) struct Keep<'g>(PhantomData<&'g ()>);

impl<'g> Keep<'g> {
    /// A pinned participant keeps everything that it can reach.
    #[inline(always)]
    pub(crate) fn pinned(_: &'g Guard<'_>) -> Self {
        Self(PhantomData)
    }

    /// Only the reclaimer takes memory away, and it is borrowed.
    #[inline(always)]
    pub(crate) fn by(_: &'g Reclaimer) -> Self {
        Self(PhantomData)
    }

    /// For an owner of a part of the memory.
    ///
    /// # Safety
    ///
    /// What is read with it is not retired during `'g`.
    #[inline(always)]
    pub(crate) unsafe fn owned() -> Self {
        Self(PhantomData)
    }
}

/// `N` places, numbered from 0.
pub(crate) struct Table<M, const N: usize> {
    /// Null, or a pointer from `Box::into_raw`, which the place owns.
    places: Box<[AtomicPtr<M>; N]>,
    /// One past the highest place that was ever filled, or is about to be.
    height: AtomicU32,
    /// Taken out of its place, and out of reach. It is freed with the table at the latest.
    free: Arc<Stack<Unreachable<M>>>,
    /// A table lends `M` to several threads, and drops it.
    owns: PhantomData<Arc<M>>,
}

impl<M, const N: usize> Table<M, N> {
    /// An empty table; `None` if there is no memory.
    pub(crate) fn new() -> Option<Self> {
        let (places, free) = (fallible::zeroed_array()?, Arc::new(Stack::new()));
        Some(Self { places, height: AtomicU32::new(0), free, owns: PhantomData })
    }

    /// What a place holds.
    #[inline]
    pub(crate) fn get<'g>(&'g self, index: usize, _: Keep<'g>) -> Option<&'g M> {
        // Ordering: Acquire, pairs with the Release of `fill` and `replace`.
        let held = self.places.get(index)?.load(Ordering::Acquire);
        // SAFETY: null, or a box's pointer. By the `Keep` it is not reclaimed during `'g`.
        unsafe { held.as_ref() }
    }

    /// Fills an empty place; returns the box if another thread has filled it.
    pub(crate) fn fill(&self, index: usize, held: Box<M>) -> Result<(), Box<M>> {
        // First, so a thread that finds the place filled finds it below the height.
        self.note_height(index);
        let held = Box::into_raw(held);
        // Ordering: Release, pairs with `get`; on failure nothing is read.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        if self.places[index].compare_exchange(null_mut(), held, success, failure).is_err() {
            // SAFETY: it came from `into_raw` just now, and was not published.
            return Err(unsafe { Box::from_raw(held) });
        }
        Ok(())
    }

    fn note_height(&self, index: usize) {
        // Ordering: Relaxed, see `height`.
        self.height.fetch_max(index as u32 + 1, Ordering::Relaxed);
    }

    /// Whether a place is empty now.
    pub(crate) fn is_empty(&self, index: usize) -> bool {
        // Ordering: Relaxed, a hint.
        self.places[index].load(Ordering::Relaxed).is_null()
    }

    /// No place from this one on was ever filled.
    pub(crate) fn height(&self) -> usize {
        // Ordering: Relaxed, it says only how far to look; each place is acquired separately. The
        // walk at the shard's end looks far enough: the fences in `close` and `insert` refuse a
        // timer or let the walk find it, and a timer that is moved is found by its old node.
        self.height.load(Ordering::Relaxed) as usize
    }

    /// Replaces what a place holds. The [`Retired`] of this table has it once its readers have
    /// unpinned.
    pub(crate) fn replace(
        &self,
        index: usize,
        held: Option<Box<M>>,
        retired: &mut Retired<M>,
        reclaimer: &mut Reclaimer,
    ) {
        if held.is_some() {
            self.note_height(index);
        }
        // Ordering: Release, pairs with `get`. The deferred call comes after the readers.
        let former = self.places[index].swap(held.map_or(null_mut(), Box::into_raw), Ordering::Release);
        if let Some(former) = NonNull::new(former) {
            retired.add(Unreachable(former), reclaimer);
        }
    }
}

impl<M, const N: usize> Drop for Table<M, N> {
    fn drop(&mut self) {
        let height = self.height();
        // Ordering: Relaxed, the last owner is here.
        let held = self.places[..height].iter().map(|place| place.load(Ordering::Relaxed));
        for held in held.filter(|held| !held.is_null()) {
            // SAFETY: it came from `into_raw`. Each reader borrows the table, so no reader is left.
            drop(unsafe { Box::from_raw(held) });
        }
    }
}

/// Memory that no new reader can reach. Earlier readers may still be reading it, so it stays behind
/// a pointer until they have unpinned.
struct Unreachable<M>(NonNull<M>);

// SAFETY: it owns the memory, and other threads may read it meanwhile.
unsafe impl<M: Send + Sync> Send for Unreachable<M> {}

impl<M> Drop for Unreachable<M> {
    fn drop(&mut self) {
        // SAFETY: it came from `into_raw`, and was taken out of its place once. It is dropped after
        // its readers have unpinned: by a deferred call, or on a list that only deferred calls
        // fill.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// What has been taken out of a table and not yet given up; for the advancer.
pub(crate) struct Retired<M> {
    /// The list of the table.
    free: Arc<Stack<Unreachable<M>>>,
    /// From that list.
    taken: Stack<Unreachable<M>>,
    count: usize,
}

impl<M> Retired<M> {
    pub(crate) fn of<const N: usize>(table: &Table<M, N>) -> Self {
        Self { free: Arc::clone(&table.free), taken: Stack::new(), count: 0 }
    }

    /// How many there are, with those that readers may still reach.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn add(&mut self, memory: Unreachable<M>, reclaimer: &Reclaimer) {
        self.count += 1;
        let (free, memory) = (Arc::clone(&self.free), Stacked::boxed(memory));
        // Protects: each reader that has found the memory in its place, and is pinned.
        // SAFETY: a participant's owner borrows the shard. The call pushes to a list of which it
        // owns a part.
        unsafe { reclaimer.participant().defer(move || free.push(memory)) };
    }

    /// Takes one that no reader can reach, if there is one by now.
    pub(crate) fn take(&mut self, reclaimer: &Reclaimer) -> Option<Box<M>> {
        if self.count == 0 {
            return None;
        }
        let memory = self.taken.pop().or_else(|| {
            reclaimer.participant().help();
            self.taken = self.free.take_all();
            self.taken.pop()
        })?;
        self.count -= 1;
        // SAFETY: it came from `into_raw`, and its readers have unpinned.
        Some(unsafe { Box::from_raw(ManuallyDrop::new(memory.value).0.as_ptr()) })
    }
}

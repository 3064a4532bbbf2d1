//! Slots: pointers to memory that producers read, and that the advancer may take away meanwhile.
//!
//! A reader shows why the memory stays while it reads: it has a [`Keep`]. There is a [`Keep`] for a
//! pinned participant, for the shard's one [`Reclaimer`], and for a thread that owns a part of the
//! memory, which then is not taken away.
//!
//! Memory goes in three steps. [`Slots::replace`] takes it out of its slot, so that no later reader
//! finds it. A [`Grace`] period outlasts the readers that found it before. [`Unlinked::reclaim`]
//! then makes it a box again. What is unlinked and not reclaimed when the shard ends is
//! [buried](Slots::bury), and goes with the slots.
//!
//! A shard makes its slots, its epochs and its reclaimer together. A [`Keep`] from another shard
//! would keep nothing, but no part of a shard is ever handed to another.

use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

use crate::fallible;
use crate::shard::memory::epochs::{Grace, GraceNumber, Guard, Reclaimer};
use crate::sync::{AtomicPtr, AtomicU32, Ordering};

/// Shows that what a slot holds is not taken away during `'g`.
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
    /// What is read with it is not unlinked during `'g`.
    #[inline(always)]
    pub(crate) unsafe fn owned() -> Self {
        Self(PhantomData)
    }
}

/// `N` slots, numbered from 0. The first `P` are *permanent*: what they hold stays as long as the
/// slots.
pub(crate) struct Slots<M, const N: usize, const P: usize = 0> {
    /// Null, or a pointer from `Box::into_raw`, which the slot owns.
    places: Box<[AtomicPtr<M>; N]>,
    /// One past the highest slot that was ever filled, or is about to be.
    height: AtomicU32,
    graveyard: Mutex<Vec<Unlinked<M>>>,
    /// Slots lend `M` to several threads, and drop it.
    owns: PhantomData<Arc<M>>,
}

impl<M, const N: usize, const P: usize> Slots<M, N, P> {
    /// Makes empty slots; `None` if there is no memory.
    pub(crate) fn new() -> Option<Self> {
        let places = fallible::zeroed(N)?.try_into().ok()?;
        Some(Self { places, height: AtomicU32::new(0), graveyard: Mutex::default(), owns: PhantomData })
    }

    /// What a slot holds.
    #[inline]
    pub(crate) fn get<'g>(&'g self, index: usize, _: Keep<'g>) -> Option<&'g M> {
        // Ordering: Acquire, pairs with the Release of `fill` and `replace`.
        let held = self.places.get(index)?.load(Ordering::Acquire);
        // SAFETY: null, or a box's pointer. By the `Keep` it is not reclaimed during `'g`.
        unsafe { held.as_ref() }
    }

    /// As [`get`](Self::get). Without a `Keep`, only a permanent slot is looked at.
    ///
    /// # Panics
    ///
    /// If there is no `Keep`, and the slot is not permanent.
    #[inline(always)]
    pub(crate) fn get_or_permanent<'g>(&'g self, index: usize, keep: Option<Keep<'g>>) -> Option<&'g M> {
        assert!(keep.is_some() || index < P, "what slot {index} holds may be taken away");
        // SAFETY: there is a `Keep`, or the slot is permanent: `replace` leaves it as it is.
        self.get(index, unsafe { Keep::owned() })
    }

    /// Fills an empty slot; returns the box if another thread has filled it.
    pub(crate) fn fill(&self, index: usize, held: Box<M>) -> Result<(), Box<M>> {
        // First, so a thread that finds the slot filled finds it below the height.
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

    /// Whether a slot is empty now.
    pub(crate) fn is_empty(&self, index: usize) -> bool {
        // Ordering: Relaxed, a hint.
        self.places[index].load(Ordering::Relaxed).is_null()
    }

    /// No slot from this one on was ever filled.
    pub(crate) fn height(&self) -> usize {
        // Ordering: Relaxed, it says only how far to look; each slot is acquired separately. The
        // walk at the shard's end looks far enough: the fences in `close` and `insert` refuse a
        // timer or let the walk find it, and a timer that is moved is found by its old node.
        self.height.load(Ordering::Relaxed) as usize
    }

    /// Puts `held` into a slot that is not permanent, in the place of what it held. Nothing happens
    /// if the reclaimer no longer unlinks.
    pub(crate) fn replace(
        &self,
        index: usize,
        held: Option<Box<M>>,
        reclaimer: &mut Reclaimer,
    ) -> Option<Unlinked<M>> {
        if !reclaimer.may_unlink() {
            return None;
        }
        assert!(index >= P, "what slot {index} holds stays");
        if held.is_some() {
            self.note_height(index);
        }
        // Ordering: Release, pairs with `get`. The grace period orders the readers of what was
        // there.
        let former = self.places[index].swap(held.map_or(null_mut(), Box::into_raw), Ordering::Release);
        // After the swap: a period that begins later begins after it.
        let number = reclaimer.participant().last_grace();
        Some(Unlinked { held: NonNull::new(former)?, of: self.identity(), number })
    }

    /// Takes what was unlinked from these slots and could not be reclaimed, until they are dropped.
    /// Without memory to remember it by, it is never freed.
    pub(crate) fn bury(&self, unlinked: Vec<Unlinked<M>>) {
        let mut graveyard = self.graveyard.lock().unwrap_or_else(PoisonError::into_inner);
        if graveyard.try_reserve(unlinked.len()).is_ok() {
            graveyard.extend(unlinked.into_iter().filter(|unlinked| unlinked.of == self.identity()));
        }
    }

    /// Everything that the slots hold, for the last owner.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &M> {
        // SAFETY: the slots are borrowed exclusively: nothing is unlinked.
        (0..self.height()).filter_map(|index| self.get(index, unsafe { Keep::owned() }))
    }

    fn identity(&self) -> usize {
        self.places.as_ptr().addr()
    }
}

impl<M, const N: usize, const P: usize> Drop for Slots<M, N, P> {
    fn drop(&mut self) {
        let height = self.height();
        // Ordering: Relaxed, the last owner is here.
        let held = self.places[..height].iter().map(|place| place.load(Ordering::Relaxed));
        let buried = std::mem::take(self.graveyard.get_mut().unwrap_or_else(PoisonError::into_inner));
        let buried = buried.into_iter().map(|unlinked| unlinked.held.as_ptr());
        for held in held.chain(buried).filter(|held| !held.is_null()) {
            // SAFETY: it came from `into_raw`. Each reader borrows the slots, so no reader is left.
            drop(unsafe { Box::from_raw(held) });
        }
    }
}

/// Memory that no new reader can reach, but that readers pinned before may still be reading; so it
/// stays behind a pointer. If it is neither reclaimed nor buried, it is never freed.
#[derive(Debug)]
#[must_use = "it is never freed, unless it is reclaimed or buried"]
pub(crate) struct Unlinked<M> {
    held: NonNull<M>,
    /// The slots from which it was unlinked.
    of: usize,
    /// The last grace period that had begun by then.
    number: GraceNumber,
}

// SAFETY: it owns the memory. Other threads may read it meanwhile, so `M` must be `Sync` as well.
unsafe impl<M: Send + Sync> Send for Unlinked<M> {}

impl<M> Unlinked<M> {
    pub(crate) fn get(&self) -> &M {
        // SAFETY: the memory lives until `self` is reclaimed or buried, and a buried one is not
        // lent.
        unsafe { self.held.as_ref() }
    }

    /// Takes back the memory, if `grace` began after it was unlinked and has passed.
    pub(crate) fn reclaim(self, grace: &Grace) -> Result<Box<M>, Self> {
        if !grace.has_passed() || !grace.is_after(self.number) {
            return Err(self);
        }
        // SAFETY: it came from `into_raw`, and was unlinked once. Every reader that had found it
        // has unpinned since.
        Ok(unsafe { Box::from_raw(self.held.as_ptr()) })
    }
}

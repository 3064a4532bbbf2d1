//! The node itself: who may use its payload, and the transitions that decide that.
//!
//! The thread that wins a transition out of `Pending` has the node to itself until it stores the
//! word again: it gets a [`Filled`], takes the payload out of that, and then has a [`Vacant`]. A
//! thread that takes a free node gets a [`Vacant`] as well. Only a `Vacant` is filled. Neither can
//! be copied, so the payload has one user at a time, and a word says `Pending` only while a payload
//! is in. A right that is dropped leaves the node as it is: the node is lost to the shard, and its
//! payload, if there is one, is leaked.
//!
//! The fields are private to this file, so no other code can break this.

use std::mem::MaybeUninit;

use super::state::{Status, Word};
use crate::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crate::tick::Tick;

/// What a `Timer` notes of a timer for the feature `introspect`: a number that means nothing to the
/// shard. Without the feature it takes no memory and no instruction.
pub(crate) type Tag = [u64; TAGS];

const TAGS: usize = cfg!(feature = "introspect") as usize;

/// A node: 20 bytes and the payload, and 8 bytes for the tag if there is one. All zeroes is a
/// valid, free node.
#[repr(C)]
pub(crate) struct Node<T> {
    word: AtomicU64,
    /// The tick that the node was first linked for, or that its recurring timer was armed anew for.
    /// Constant while the timer is pending. Written by the owner of a free node and, where it arms
    /// a timer anew, by the advancer.
    pub(super) base: AtomicU64,
    /// Constant while the timer is pending. Written by the owner of the node.
    tag: [AtomicU64; TAGS],
    next: AtomicU32,
    payload: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: threads share the payload by the rights above: one thread at a time has it, and hands it
// to the next by a Release of the word that pairs with an Acquire. The payload itself is not
// shared, so it need not be `Sync`.
unsafe impl<T: Send> Sync for Node<T> {}

/// The right to a node with its payload, for the thread that has won the node's timer.
#[must_use = "the payload is leaked"]
pub(crate) struct Filled<'n, T> {
    node: &'n Node<T>,
    word: Word,
}

/// The right to a node without a payload.
#[must_use = "the node is lost"]
pub(crate) struct Vacant<'n, T> {
    node: &'n Node<T>,
    /// The word, unless the node's status is `Stopped` by now.
    word: Word,
}

/// A [`Vacant`] without a borrow of the node: of a timer that is run, or of a dead node that is
/// being reused.
#[derive(Debug)]
#[must_use = "the node is lost"]
pub(crate) struct Unborrowed {
    /// The node's address.
    node: usize,
    word: Word,
}

impl<T> Node<T> {
    #[cfg(any(all(test, not(fuzzing)), shardwheel_loom, shardwheel_model))]
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            base: AtomicU64::new(0),
            tag: Default::default(),
            next: AtomicU32::new(super::NIL),
            payload: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Makes the node look as if it had held as many timers as it can; returns its word.
    #[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
    pub(super) fn wear_out(&self, status: Status) -> Word {
        let last = Word::from_raw(0).with_version(u32::MAX).with_status(status);
        // Ordering: Relaxed, there is one thread.
        self.word.store(last.raw(), Ordering::Relaxed);
        last
    }

    /// The link to the next node of the list.
    pub(crate) fn next(&self) -> &AtomicU32 {
        &self.next
    }

    /// Notes the tag of the timer that the caller is about to put into the node, which it owns.
    pub(crate) fn set_tag(&self, tag: Tag) {
        // Ordering: Release, pairs with the Acquire in `tag`: a thread that reads this tag finds
        // the word of the node's former timer replaced.
        self.tag.iter().zip(tag).for_each(|(cell, tag)| cell.store(tag, Ordering::Release));
    }

    /// The tag of the timer that is pending, or about to be.
    pub(crate) fn tag(&self) -> Tag {
        // Ordering: Acquire, pairs with `set_tag`.
        self.tag.each_ref().map(|cell| cell.load(Ordering::Acquire))
    }

    /// The word. What the thread that stored it had done before is visible.
    #[inline]
    pub(crate) fn word(&self) -> Word {
        // Ordering: Acquire, pairs with the Release in `fill`, `fill_again` and `cancelled`:
        // payload and `base` are visible, or the payload is out.
        Word::from_raw(self.word.load(Ordering::Acquire))
    }

    /// The word, as a hint, or for the owner of the node.
    #[inline]
    pub(super) fn peek(&self) -> Word {
        // Ordering: Relaxed, a hint; or the caller is ordered after the last store of the word.
        Word::from_raw(self.word.load(Ordering::Relaxed))
    }

    /// Takes a free node for a timer due at `deadline`. `None` if the node is worn out.
    ///
    /// # Safety
    ///
    /// The node is free, and the caller owns it: it is in no free bits, and there is no other right
    /// to it.
    #[inline]
    pub(crate) unsafe fn prepare(&self, deadline: Tick) -> Option<Vacant<'_, T>> {
        // The first access is a store. If the first access to fresh memory were a load, the system
        // would map a page of zeroes, replace it at the next store, and notify every processor of
        // the change.
        // Ordering: Relaxed, published by the Release of the word in `fill`.
        self.base.store(deadline, Ordering::Relaxed);
        // The caller took the node from the free bits: the Acquire in `FreeBits::take` pairs with
        // the Release in `set`, which comes after the last store of this word.
        let word = self.peek();
        debug_assert!(word.is(Status::Free));
        (!word.is_last_version()).then_some(Vacant { node: self, word })
    }

    /// The right that [`Vacant::without_borrow`] has given up.
    ///
    /// # Panics
    ///
    /// If it is of another node.
    #[inline]
    pub(crate) fn resume(&self, running: Unborrowed) -> Vacant<'_, T> {
        assert_eq!(running.node, std::ptr::from_ref(self).addr(), "a right belongs to its node");
        Vacant { node: self, word: running.word }
    }

    /// Moves a timer that is pending or kept to another status. The caller is the winner, or the
    /// word has changed.
    #[inline]
    pub(super) fn win(&self, word: Word, status: Status) -> Option<Filled<'_, T>> {
        let won = word.with_status(status);
        let holds = (word.is(Status::Pending) || word.is(Status::Kept)) && word != won;
        let is_won = holds && status != Status::Pending && self.replace(word, won);
        is_won.then_some(Filled { node: self, word: won })
    }

    /// Frees a dead node; `None` if the word has changed.
    pub(crate) fn free_cancelled(&self, word: Word) -> Option<Vacant<'_, T>> {
        let free = word.with_status(Status::Free);
        (word.is(Status::Cancelled) && self.replace(word, free)).then_some(Vacant { node: self, word: free })
    }

    /// Takes a dead node for another timer where it is linked; `None` if the word has changed.
    #[inline]
    pub(super) fn take_cancelled(&self, word: Word) -> Option<Vacant<'_, T>> {
        let busy = word.with_status(Status::Busy);
        (word.is(Status::Cancelled) && self.replace(word, busy)).then_some(Vacant { node: self, word: busy })
    }

    /// Changes what the word says of a pending timer besides its status; false if the word has
    /// changed.
    pub(super) fn replace_pending(&self, word: Word, to: Word) -> bool {
        word.is(Status::Pending) && to.is(Status::Pending) && self.replace(word, to)
    }

    /// Ends a timer whose payload is out; false if the word has changed. If it is to be `Free`, for
    /// the shard's end, the node is not used again.
    pub(crate) fn end_running(&self, word: Word, status: Status) -> bool {
        word.is(Status::Running) && self.replace(word, word.with_status(status))
    }

    #[inline]
    fn replace(&self, from: Word, to: Word) -> bool {
        // Ordering: Acquire on success, pairs with `fill_again`: the payload may have been taken out
        // and put back since the caller loaded `from`, and the word is then the same. Relaxed on
        // failure. No Release: the words stored here publish nothing, and as read-modify-writes
        // they continue the release sequence of `fill`.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        self.word.compare_exchange(from.raw(), to.raw(), success, failure).is_ok()
    }
}

impl<'n, T> Filled<'n, T> {
    /// Takes the payload out.
    #[inline(always)]
    pub(crate) fn read(self) -> (Vacant<'n, T>, T) {
        self.harvest(|slot| slot.read())
    }

    /// Takes out of the payload what `harvest` wants of it.
    #[inline(always)]
    pub(super) fn harvest<R>(self, harvest: impl FnOnce(PayloadSlot<'_, T>) -> R) -> (Vacant<'n, T>, R) {
        let harvested = self.node.payload.with_mut(|cell| {
            // SAFETY: nothing else uses the payload.
            let cell = unsafe { &mut *cell };
            // SAFETY: a pending node holds a payload, and this is its last use.
            harvest(unsafe { PayloadSlot::new(cell) })
        });
        (Vacant { node: self.node, word: self.word }, harvested)
    }

    /// Takes the payload out and frees the node.
    pub(crate) fn take(self) -> T {
        let (vacant, payload) = self.read();
        let _ = vacant.free();
        payload
    }

    /// Calls `look` with the payload.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.node.payload.with_mut(|cell| {
            // SAFETY: nothing else uses the payload.
            let cell = unsafe { &*cell };
            // SAFETY: a pending node holds a payload.
            look(unsafe { cell.assume_init_ref() })
        })
    }
}

impl<'n, T> Vacant<'n, T> {
    /// The node's word, unless it has been stopped meanwhile.
    pub(crate) fn word(&self) -> Word {
        self.word
    }

    pub(crate) fn node(&self) -> &Node<T> {
        self.node
    }

    /// Writes the payload, then a word that says that it is pending. From the store of the word on,
    /// the timer is reachable where the node is linked: the advancer may fire it and give the
    /// node's segment back. If the node is in no list, the caller links it, and the segment stays
    /// until then.
    #[inline]
    pub(super) fn fill(self, word: Word, payload: T) -> &'n Node<T> {
        self.put(payload);
        // Ordering: Release, pairs with the Acquire of every thread that finds the timer pending.
        self.node.word.store(word.with_status(Status::Pending).raw(), Ordering::Release);
        self.node
    }

    /// Puts the payload back: the timer is pending as before.
    pub(crate) fn restore(self, payload: T) {
        let word = self.word;
        self.fill(word, payload);
    }

    /// Writes the payload, then swaps the word for one that says that it is pending, at its `base`.
    ///
    /// # Errors
    ///
    /// The payload, if another thread has changed the word meanwhile.
    pub(super) fn fill_again(self, payload: T) -> Result<(), (Self, T)> {
        self.put(payload);
        // Ordering: Release, pairs with the Acquire of every thread that finds the timer pending.
        // Relaxed on failure: the payload is ours, and the thread that stopped the timer published
        // nothing.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        let (from, to) = (self.word.raw(), self.word.rearmed().raw());
        match self.node.word.compare_exchange(from, to, success, failure) {
            Ok(_) => Ok(()),
            Err(_) => Err(Filled { node: self.node, word: self.word }.read()),
        }
    }

    #[inline]
    fn put(&self, payload: T) {
        self.node.payload.with_mut(|cell| {
            // SAFETY: nothing else uses the payload.
            unsafe { (*cell).write(payload) };
        });
    }

    /// Leaves the node dead where it is linked, and returns its word.
    #[inline]
    pub(crate) fn cancelled(self) -> Word {
        let word = self.word.with_status(Status::Cancelled);
        // Ordering: Release, pairs with the Acquire in `word`: the payload is out
        // before another thread may write a new one.
        self.node.word.store(word.raw(), Ordering::Release);
        word
    }

    /// Frees the node by a swap of the word; false if its timer has been stopped meanwhile. The
    /// node is free in both cases.
    pub(super) fn end(self) -> (Self, bool) {
        let ended = self.node.replace(self.word, self.word.with_status(Status::Free));
        (if ended { self } else { self.free() }, ended)
    }

    /// Frees the node.
    pub(crate) fn free(self) -> Self {
        // Ordering: Relaxed, no other thread writes the word. The node's next owner acquires this
        // store with the free bits (`FreeBits::give` and `take`).
        self.node.word.store(self.word.with_status(Status::Free).raw(), Ordering::Relaxed);
        self
    }

    /// The same right, for longer than what kept the node's segment until now.
    ///
    /// # Safety
    ///
    /// The node's segment stays during `'s`.
    #[inline(always)]
    pub(crate) unsafe fn outlive_stay<'s>(self) -> Vacant<'s, T> {
        // SAFETY: by the caller's promise.
        Vacant { node: unsafe { &*std::ptr::from_ref(self.node) }, word: self.word }
    }

    /// The right without a borrow, for [`Node::resume`].
    #[inline]
    pub(crate) fn without_borrow(self) -> Unborrowed {
        Unborrowed { node: std::ptr::from_ref(self.node).addr(), word: self.word }
    }
}

/// A payload still in its node, whose timer has ended or gets another payload. The slot's owner has
/// exclusive access. A payload that is not read is leaked.
pub(crate) struct PayloadSlot<'n, T>(&'n mut MaybeUninit<T>);

impl<'n, T> PayloadSlot<'n, T> {
    /// Makes a slot of a payload cell.
    ///
    /// # Safety
    ///
    /// The cell holds a payload, and nothing reads that payload after this slot.
    #[inline(always)]
    unsafe fn new(place: &'n mut MaybeUninit<T>) -> Self {
        Self(place)
    }

    /// Takes out the whole payload.
    #[inline(always)]
    pub(crate) fn read(self) -> T {
        // SAFETY: the cell holds a payload, by the promise of `new`, and this is its last read.
        unsafe { self.0.assume_init_read() }
    }

    /// Takes out a part of the payload and drops the rest. This loads only the part from memory;
    /// [`read`](Self::read) would copy the whole payload first.
    #[inline(always)]
    pub(crate) fn read_part<R>(self, part: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the cell holds a payload, by the promise of `new`.
        let payload = unsafe { self.0.assume_init_mut() };
        let part = part(payload);
        // SAFETY: as above, and nothing reads the payload after this.
        unsafe { self.0.assume_init_drop() };
        part
    }
}

//! A node: the memory of one timer.
//!
//! A node has an atomic [`Word`] (status, version, extension), a `base` tick, a link and a payload
//! cell. Every operation on a timer is a transition of the word; [`state`] has the table. The list
//! that a node is linked in does not decide its fate.
//!
//! # Invariants
//!
//! - The thread that wins a transition of the word has exclusive access to the payload.
//! - `base` does not change while the timer is pending.
//! - `next` is written by the thread that links the node: its owner before the push, the advancer
//!   after it has detached the list.

mod kept;
pub(crate) mod payload;
mod recurring;
mod reuse;
pub(crate) mod state;

use std::mem::MaybeUninit;

pub(crate) use recurring::{Ended, Run};

use crate::shard::node::payload::{IntoPayload, PayloadSlot};
use crate::shard::node::state::{MAX_EXTENSION, Status, Word};
use crate::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crate::tick::Tick;

/// Names a node: its segment in the slab and its place in that segment. 0 names no node.
pub(crate) type NodeId = u32;

/// Ends a list.
pub(crate) const NIL: NodeId = 0;

/// A node: 20 bytes and the payload. All zeroes is a valid, free node.
#[repr(C)]
pub(crate) struct Node<T> {
    word: AtomicU64,
    /// The tick that the node was first linked for, or that its recurring timer was armed anew for.
    /// Constant while the timer is pending. Written by the owner of a free node and, where it arms
    /// a timer anew, by the advancer.
    base: AtomicU64,
    next: AtomicU32,
    payload: UnsafeCell<MaybeUninit<T>>,
}

/// The result of [`Node::extend`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    /// The timer has the requested deadline, and the node stays in its list.
    Done,
    /// The requested deadline is earlier, or too far in the future: the timer needs another node.
    NeedsMove,
    /// The timer is not pending any more.
    Gone,
}

/// A pending timer that its canceller has taken out of the node.
pub(crate) struct Taken<T> {
    /// The word before the transition.
    pub(crate) word: Word,
    /// The node is linked for this tick or for an earlier one.
    pub(crate) linked_for: Tick,
    pub(crate) payload: T,
}

/// The state of a node as the advancer finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    /// Pending: the timer's deadline, and the word.
    Pending(Tick, Word),
    /// Dead: its timer was cancelled.
    Cancelled(Word),
    /// A producer is at work in the node.
    Busy,
    /// The payload of its timer is out. Such a node is in no list.
    Running(Word),
    /// As `Running`, and the timer was stopped.
    Stopped,
    /// Dead, and kept: by a producer for its next timer, or with its payload by the shard's end.
    Held(Word),
    /// Free. A free node is in no list.
    Free,
}

impl<T> Node<T> {
    #[cfg(any(all(test, not(fuzzing)), shardwheel_loom, feature = "model"))]
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            base: AtomicU64::new(0),
            next: AtomicU32::new(NIL),
            payload: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The link to the next node of the list.
    pub(crate) fn next(&self) -> &AtomicU32 {
        &self.next
    }

    /// Prepares a free node, which the caller owns, for a timer due at `deadline`. `None` if the
    /// node is worn out.
    #[inline]
    pub(crate) fn prepare(&self, deadline: Tick) -> Option<Word> {
        // The first access is a store. If the first access to fresh memory were a load, the system
        // would map a page of zeroes, replace it at the next store, and notify every processor of
        // the change.
        // Ordering: Relaxed, published by the Release of the word in `fill`.
        self.base.store(deadline, Ordering::Relaxed);
        // Ordering: Relaxed, the caller took the node from the free bits: the Acquire in
        // `FreeBits::take` pairs with the Release in `give`, which comes after the last write of
        // this word.
        let word = Word::from_raw(self.word.load(Ordering::Relaxed));
        debug_assert!(word.is(Status::Free));
        (!word.is_last_version()).then_some(word)
    }

    /// Returns whether the unused node is worn out, or would be found worn out by
    /// [`prepare`](Self::prepare).
    pub(crate) fn is_worn_out(&self) -> bool {
        // Ordering: Relaxed, for checks while no other thread is at work.
        Word::from_raw(self.word.load(Ordering::Relaxed)).is_last_version()
    }

    /// Puts a timer into a node that [`prepare`](Self::prepare) has prepared; returns the timer's
    /// version.
    pub(crate) fn arm_free(&self, free: Word, seed: impl IntoPayload<T>) -> u32 {
        let next = free.next_version(Status::Pending);
        self.fill(next, seed);
        next.version()
    }

    /// Writes the payload, then the word. From the store of the word on, the timer is reachable
    /// where the node is linked: the advancer may fire it and give the node's segment back. So a
    /// caller that is not pinned does not access the node again.
    fn fill(&self, word: Word, seed: impl IntoPayload<T>) {
        self.put_payload(seed);
        // Ordering: Release, pairs with the Acquire of every thread that finds the timer pending.
        self.word.store(word.raw(), Ordering::Release);
    }

    fn put_payload(&self, seed: impl IntoPayload<T>) {
        self.payload.with_mut(|cell| {
            // SAFETY: the caller owns the node (it is free, claimed or held, or the timer's payload
            // is out), so no other thread accesses the payload.
            unsafe { (*cell).write(seed.into_payload()) };
        });
    }

    /// Cancels the timer of that generation (`era` is the segment's). The winner gets the payload,
    /// and the tick from which on the node can be reused in place. A thread that comes second finds
    /// another status or version and gets `None`.
    pub(crate) fn cancel(&self, era: u32, generation: u64) -> Option<(Tick, T)> {
        let mut place = None;
        let linked_for = self.cancel_into(era, generation, &mut place, |slot| Some(slot.read()))?;
        place.map(|payload| (linked_for, payload))
    }

    /// As [`cancel`](Self::cancel), and writes the result of `harvest` directly to `place`, without
    /// an intermediate copy.
    #[inline(always)]
    pub(crate) fn cancel_into<R>(
        &self,
        era: u32,
        generation: u64,
        place: &mut Option<R>,
        harvest: impl FnOnce(PayloadSlot<'_, T>) -> Option<R>,
    ) -> Option<Tick> {
        let word = self.win(era, generation, Status::Cancelling)?;
        *place = self.with_payload(harvest);
        let linked_for = self.linked_for(word);
        self.finish_cancel(word);
        Some(linked_for)
    }

    /// Does the first half of a cancel: the payload is out, and the node is
    /// [`Cancelling`](Status::Cancelling) until the caller calls
    /// [`finish_cancel`](Self::finish_cancel) or [`restore`](Self::restore).
    pub(crate) fn take(&self, era: u32, generation: u64) -> Option<Taken<T>> {
        let word = self.win(era, generation, Status::Cancelling)?;
        Some(Taken { word, linked_for: self.linked_for(word), payload: self.take_payload() })
    }

    /// Moves the pending timer of that generation to `status`; returns the word before that. The
    /// node is the caller's from then on.
    #[inline]
    fn win(&self, era: u32, generation: u64, status: Status) -> Option<Word> {
        let mut word = self.find(era, generation)?;
        while !self.replace(word, word.with_status(status)) {
            // The timer was extended or displaced in between, or has ended.
            word = self.find(era, generation)?;
        }
        Some(word)
    }

    /// Marks the node as reusable, after [`take`](Self::take) or [`hold`](Self::hold).
    pub(crate) fn finish_cancel(&self, word: Word) {
        // Ordering: Release, pairs with the Acquire in `claim` and `observe`: the payload is out
        // before another thread may write a new one.
        self.word.store(word.with_status(Status::Cancelled).raw(), Ordering::Release);
    }

    /// Puts back what [`take`](Self::take) took out: the timer is pending as before.
    pub(crate) fn restore(&self, taken: Taken<T>) {
        self.fill(taken.word, taken.payload);
    }

    /// Replaces the payload of the pending timer of that generation with the one in `payload`,
    /// which is then `None`. Returns the timer's deadline and the result of `harvest` on the former
    /// payload. The node is [`Cancelling`](Status::Cancelling) meanwhile. If the timer is not
    /// pending, returns `None` and leaves `payload` as it is.
    pub(crate) fn exchange<R>(
        &self,
        era: u32,
        generation: u64,
        payload: &mut Option<impl IntoPayload<T>>,
        harvest: impl FnOnce(PayloadSlot<'_, T>) -> R,
    ) -> Option<(Tick, R)> {
        if payload.is_none() {
            return None;
        }
        let word = self.win(era, generation, Status::Cancelling)?;
        let former = self.with_payload(harvest);
        // Read before `fill`: once the timer is reachable, the node may at any moment belong to
        // another thread.
        let deadline = self.deadline(word);
        self.fill(word, payload.take()?);
        Some((deadline, former))
    }

    /// Extends the timer of that generation to `deadline`, if that is no earlier than its deadline
    /// and at most [`MAX_EXTENSION`] ticks after `base`. Not for a recurring timer: `base` may
    /// belong to another occurrence (see [`state`]).
    pub(crate) fn extend(&self, era: u32, generation: u64, deadline: Tick) -> Extended {
        loop {
            let Some(word) = self.find(era, generation) else { return Extended::Gone };
            // Ordering: Relaxed, `find` acquired the word that published this version's `base`. If
            // the version changes in between, the compare-and-swap fails.
            let base = self.base.load(Ordering::Relaxed);
            if deadline < base.saturating_add(word.extension()) || deadline - base > MAX_EXTENSION {
                return Extended::NeedsMove;
            }
            // The swap is made even if the word stays the same: its success proves that `base`
            // belonged to this timer.
            if self.replace(word, word.with_extension(deadline - base)) {
                return Extended::Done;
            }
        }
    }

    /// Returns whether the timer of that generation is pending.
    #[inline]
    pub(crate) fn is_pending(&self, era: u32, generation: u64) -> bool {
        self.find(era, generation).is_some()
    }

    /// Returns the word if the timer of that generation is pending.
    fn find(&self, era: u32, generation: u64) -> Option<Word> {
        // Ordering: Acquire, pairs with the Release in `fill` and `rearm`: payload and `base` are
        // visible.
        let word = Word::from_raw(self.word.load(Ordering::Acquire));
        (word.is(Status::Pending) && generation == join(era, word.version())).then_some(word)
    }

    /// Returns what the node holds. For the advancer, which has the node in a list that no other
    /// thread can take apart.
    pub(crate) fn observe(&self) -> Observed {
        // Ordering: Acquire, pairs with the Release in `fill` (a node reused in place is not pushed
        // again) and in `finish_cancel`.
        let word = Word::from_raw(self.word.load(Ordering::Acquire));
        if word.is(Status::Pending) {
            Observed::Pending(self.deadline(word), word)
        } else if word.is(Status::Cancelled) {
            Observed::Cancelled(word)
        } else if word.is(Status::Free) {
            Observed::Free
        } else if word.is(Status::Running) {
            Observed::Running(word)
        } else if word.is(Status::Stopped) {
            Observed::Stopped
        } else if word.is(Status::Held) {
            Observed::Held(word)
        } else {
            Observed::Busy
        }
    }

    /// Fires the timer that [`observe`](Self::observe) found; `None` if it has changed since.
    pub(crate) fn fire(&self, word: Word) -> Option<T> {
        self.replace(word, word.with_status(Status::Free)).then(|| self.take_payload())
    }

    /// Marks the timer that [`observe`](Self::observe) found as displaced, because the advancer is
    /// about to link its node for its deadline and no longer for `base`. A timer due at `base`
    /// needs no mark. False if the timer has changed since.
    pub(crate) fn displace(&self, word: Word) -> bool {
        word.extension() == 0 || word.is_displaced() || self.replace(word, word.displaced())
    }

    /// Frees the dead node that [`observe`](Self::observe) found. False if a producer has claimed
    /// it since.
    pub(crate) fn free_cancelled(&self, word: Word) -> bool {
        self.replace(word, word.with_status(Status::Free))
    }

    fn deadline(&self, word: Word) -> Tick {
        // Ordering: Relaxed, published by the word, which the caller acquired.
        self.base.load(Ordering::Relaxed).saturating_add(word.extension())
    }

    /// Returns the earliest deadline for which the node can be reused in place: the tick that the
    /// node is linked for, or a later one.
    pub(crate) fn linked_for(&self, word: Word) -> Tick {
        self.deadline(if word.is_displaced() { word } else { word.with_extension(0) })
    }

    #[inline]
    fn replace(&self, from: Word, to: Word) -> bool {
        // Ordering: Acquire on success, Relaxed on failure. Relaxed would be enough on success too:
        // the caller acquired `from` when it loaded it, and success proves that the word has not
        // changed. Acquire costs nothing where a read-modify-write is a barrier anyway, and spares
        // the proof that no store came between. No Release: the words stored here publish nothing,
        // and as read-modify-writes they continue the release sequence of `fill`.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        self.word.compare_exchange(from.raw(), to.raw(), success, failure).is_ok()
    }

    fn take_payload(&self) -> T {
        self.with_payload(|slot| slot.read())
    }

    #[inline(always)]
    fn with_payload<R>(&self, harvest: impl FnOnce(PayloadSlot<'_, T>) -> R) -> R {
        self.payload.with_mut(|cell| {
            // SAFETY: the caller won the transition out of `Pending`, or has the timer's payload
            // out and has just put it in: no other thread accesses it.
            let cell = unsafe { &mut *cell };
            // SAFETY: the payload was written before that transition, and is not read after this.
            harvest(unsafe { PayloadSlot::new(cell) })
        })
    }

    /// Takes the payload of a timer that is still pending. For the last owner of the slab.
    pub(crate) fn take_pending(&self) -> Option<T> {
        if let Observed::Pending(_, word) = self.observe() { self.fire(word) } else { None }
    }
}

/// Joins the two parts of a generation. No two segments have the same era, and no node of a segment
/// has the same version twice.
pub(crate) fn join(era: u32, version: u32) -> u64 {
    (u64::from(era) << 32) | u64::from(version)
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;

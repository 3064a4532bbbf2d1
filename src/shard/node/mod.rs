//! A node: one timer, or the room for one.
//!
//! Its [`Word`] decides everything (see [`state`]); the list it is linked in decides
//! nothing. Whoever wins a transition of the word has the payload to itself; `next` belongs to whoever
//! links the node (its owner before the push, the advancer once it has detached the list).

mod kept;
pub(crate) mod payload;
mod recurring;
pub(crate) mod state;

use std::mem::MaybeUninit;

pub(crate) use recurring::{Ended, Run};

use crate::shard::node::payload::{IntoPayload, PayloadSlot};
use crate::shard::node::state::{MAX_EXTENSION, Status, Word};
use crate::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crate::tick::Tick;

/// Names a node: which segment of the slab, and which place there. 0 names none.
pub(crate) type NodeId = u32;

/// The end of a list.
pub(crate) const NIL: NodeId = 0;

/// 20 bytes and the payload. All zeroes is a valid, free node.
#[repr(C)]
pub(crate) struct Node<T> {
    word: AtomicU64,
    /// The tick that the node was first linked for, or that its timer was armed anew for; constant while the timer is
    /// pending.
    base: AtomicU64,
    next: AtomicU32,
    payload: UnsafeCell<MaybeUninit<T>>,
}

/// What a reschedule found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    /// The deadline is the one asked for, and the node stays where it is.
    Done,
    /// The deadline asked for is earlier, or too far off: the timer needs another place.
    NeedsMove,
    /// There is no such timer any more.
    Gone,
}

/// A timer that its canceller has in its hands.
pub(crate) struct Taken<T> {
    /// The word as it was.
    pub(crate) word: Word,
    /// The node is linked for this tick, or for an earlier one.
    pub(crate) linked_for: Tick,
    pub(crate) payload: T,
}

/// What the advancer found in a node it meets in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    /// A timer, and its deadline.
    Pending(Tick, Word),
    /// A dead node.
    Cancelled(Word),
    /// A producer is at work in it.
    Busy,
    /// A timer whose payload is out; not met in a list.
    Running(Word),
    /// Likewise, and it was stopped.
    Stopped,
    /// A dead node that a producer keeps for its next timer.
    Held(Word),
    /// Nothing; in a list this would be a mistake.
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

    /// Makes a free node that the caller owns ready for a timer due at `deadline`; none if it is worn out.
    #[inline]
    pub(crate) fn prepare(&self, deadline: Tick) -> Option<Word> {
        // First of all a store: where a node's memory has never been touched, a load would have the system map a
        // page of zeroes that it has to replace at the store, and tell every processor so.
        // Ordering: Relaxed, published by the word's Release in `fill`.
        self.base.store(deadline, Ordering::Relaxed);
        // Ordering: Relaxed, the owner reads what it or the reclaimer's grace period brought.
        let word = Word::from_raw(self.word.load(Ordering::Relaxed));
        debug_assert!(word.is(Status::Free));
        (!word.is_last_version()).then_some(word)
    }

    /// Whether the node, which is not in use, is worn out, or will be found to be.
    pub(crate) fn is_worn_out(&self) -> bool {
        // Ordering: Relaxed, for checks while nobody else is at work.
        Word::from_raw(self.word.load(Ordering::Relaxed)).is_last_version()
    }

    /// Puts a timer into a node that [`prepare`](Self::prepare) has made ready for its deadline; returns its version.
    pub(crate) fn arm_free(&self, free: Word, seed: impl IntoPayload<T>) -> u32 {
        let next = free.next_version(Status::Pending);
        self.fill(next, seed);
        next.version()
    }

    /// Takes over a cancelled node for a timer due at `deadline`, if it is one still and is linked for no
    /// later tick: the list it is linked in is then flushed in time. The caller arms it next.
    ///
    /// Against a flush or a sweep that frees the node, and against another claim: one of the two
    /// compare-and-swaps fails, and that caller leaves the node alone.
    pub(crate) fn claim(&self, deadline: Tick) -> Option<Word> {
        // Ordering: Acquire, pairs with the canceller's Release in `finish_cancel`: its reads of the
        // payload come before our writes, and `base` is the one of this version.
        let word = Word::from_raw(self.word.load(Ordering::Acquire));
        if !word.is(Status::Cancelled) || word.is_last_version() {
            return None;
        }
        // Ordering: Relaxed, published by the word. It may be a later timer's by now, and is looked at once, for it
        // may change again; then the compare-and-swap fails.
        let base = self.base.load(Ordering::Relaxed);
        let extension = deadline.checked_sub(base)?;
        let is_linked_later = word.is_displaced() && word.extension() > extension;
        let claimed = word.next_version_in_place(Status::Claimed);
        (!is_linked_later && extension <= MAX_EXTENSION && self.replace(word, claimed)).then_some(claimed)
    }

    /// Gives back what [`claim`](Self::claim) took, unused.
    pub(crate) fn unclaim(&self, claimed: Word) {
        // Ordering: Release, pairs with the Acquire of the next claim or of the advancer.
        self.word.store(claimed.with_status(Status::Cancelled).raw(), Ordering::Release);
    }

    /// Puts a timer into a node that [`claim`](Self::claim) took over; returns its version.
    pub(crate) fn arm_claimed(&self, claimed: Word, deadline: Tick, seed: impl IntoPayload<T>) -> u32 {
        // Ordering: Relaxed, the claim acquired the word that published it.
        let extension = deadline - self.base.load(Ordering::Relaxed);
        self.fill(claimed.with_status(Status::Pending).with_extension(extension), seed);
        claimed.version()
    }

    /// Puts a timer into a node that [`hold`](Self::hold) has left to the caller, at whose former word it was, due no
    /// earlier than the node is linked for; returns its version.
    #[inline]
    pub(crate) fn arm_held(&self, held: Word, deadline: Tick, seed: impl IntoPayload<T>) -> u32 {
        let next = held.next_version_in_place(Status::Claimed);
        self.arm_claimed(next, deadline, seed)
    }

    /// The last store makes the timer reachable where the node is linked: the advancer may fire it and give
    /// the node's segment back, so a caller that is not pinned does not look at the node again.
    fn fill(&self, word: Word, seed: impl IntoPayload<T>) {
        self.put_payload(seed);
        // Ordering: Release, pairs with the Acquire of whoever finds the timer pending.
        self.word.store(word.raw(), Ordering::Release);
    }

    fn put_payload(&self, seed: impl IntoPayload<T>) {
        self.payload.with_mut(|cell| {
            // SAFETY: the caller owns the node (free, claimed, or its timer's payload is out), so nobody else
            // touches the payload.
            unsafe { (*cell).write(seed.into_payload()) };
        });
    }

    /// Cancels the timer of that generation (`era` is the segment's). The winner gets the payload, and the
    /// tick from which on the node can be reused where it stands; whoever comes second finds another status
    /// or version and gets nothing.
    pub(crate) fn cancel(&self, era: u32, generation: u64) -> Option<(Tick, T)> {
        let mut place = None;
        let linked_for = self.cancel_into(era, generation, &mut place, |slot| Some(slot.read()))?;
        place.map(|payload| (linked_for, payload))
    }

    /// As [`cancel`](Self::cancel); what `harvest` makes of the payload goes to where it is wanted in one step.
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

    /// As [`cancel_into`](Self::cancel_into), and the node stays the winner's, until it calls
    /// [`arm_held`](Self::arm_held) or [`finish_cancel`](Self::finish_cancel) with the word that this returns.
    #[inline(always)]
    pub(crate) fn hold<R>(
        &self,
        era: u32,
        generation: u64,
        place: &mut Option<R>,
        harvest: impl FnOnce(PayloadSlot<'_, T>) -> Option<R>,
    ) -> Option<(Word, Tick)> {
        let word = self.win(era, generation, Status::Held)?;
        *place = self.with_payload(harvest);
        Some((word, self.linked_for(word)))
    }

    /// Whether a timer for `deadline` can go into a node that was at `word` and is held.
    #[inline]
    pub(crate) fn can_be_armed(&self, held: Word, deadline: Tick) -> bool {
        // Ordering: Relaxed, the caller acquired the word that published it.
        let base = self.base.load(Ordering::Relaxed);
        !held.is_last_version() && deadline - base <= MAX_EXTENSION
    }

    /// The first half of a cancel: the payload is out, and the node says that the caller is at work in it
    /// until [`finish_cancel`](Self::finish_cancel) or [`restore`](Self::restore).
    pub(crate) fn take(&self, era: u32, generation: u64) -> Option<Taken<T>> {
        let word = self.win(era, generation, Status::Cancelling)?;
        Some(Taken { word, linked_for: self.linked_for(word), payload: self.take_payload() })
    }

    /// Has the node say that its timer is cancelled and it the caller's; returns the word as it was.
    #[inline]
    fn win(&self, era: u32, generation: u64, status: Status) -> Option<Word> {
        let mut word = self.find(era, generation)?;
        while !self.replace(word, word.with_status(status)) {
            // An extension came between, or the timer has ended.
            word = self.find(era, generation)?;
        }
        Some(word)
    }

    /// Declares the node free for the taking, after [`take`](Self::take) or [`hold`](Self::hold).
    pub(crate) fn finish_cancel(&self, word: Word) {
        // Ordering: Release, pairs with the Acquire in `claim` and `observe`: the payload is out before
        // anybody may put another in.
        self.word.store(word.with_status(Status::Cancelled).raw(), Ordering::Release);
    }

    /// Puts back what [`take`](Self::take) took out: the timer is pending as before.
    pub(crate) fn restore(&self, taken: Taken<T>) {
        self.fill(taken.word, taken.payload);
    }

    /// Puts another payload in the place of that of the timer of that generation, and takes it out of `payload` for that;
    /// returns when the timer is due, and what
    /// `harvest` makes of the former payload. Meanwhile the node says that the caller is at work in it.
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
        // Before the timer can be reached again: then the node may be another's at any moment.
        let deadline = self.deadline(word);
        self.fill(word, payload.take()?);
        Some((deadline, former))
    }

    /// Puts the timer of that generation off to `deadline`, if that is no earlier and not too far. Not for one
    /// that recurs: `base` may be another occurrence's (see [`state`]).
    pub(crate) fn extend(&self, era: u32, generation: u64, deadline: Tick) -> Extended {
        loop {
            let Some(word) = self.find(era, generation) else { return Extended::Gone };
            // Ordering: Relaxed, `find` acquired the word that published this version's `base`; should the
            // version change in between, the compare-and-swap fails.
            let base = self.base.load(Ordering::Relaxed);
            if deadline < base.saturating_add(word.extension()) || deadline - base > MAX_EXTENSION {
                return Extended::NeedsMove;
            }
            // Also where the word stays as it is: success proves that `base` was this timer's.
            if self.replace(word, word.with_extension(deadline - base)) {
                return Extended::Done;
            }
        }
    }

    /// Whether the timer of that generation is pending.
    #[inline]
    pub(crate) fn is_pending(&self, era: u32, generation: u64) -> bool {
        self.find(era, generation).is_some()
    }

    /// The word, if it says that the timer of that generation is pending.
    fn find(&self, era: u32, generation: u64) -> Option<Word> {
        // Ordering: Acquire, pairs with the Release in `fill` and `rearm`: payload and `base` are visible.
        let word = Word::from_raw(self.word.load(Ordering::Acquire));
        (word.is(Status::Pending) && generation == join(era, word.version())).then_some(word)
    }

    /// What the node holds; for the advancer, which has it in a list that nobody else can take apart.
    pub(crate) fn observe(&self) -> Observed {
        // Ordering: Acquire, pairs with the Release in `fill` (a node reused where it stands is not
        // pushed anew) and in `finish_cancel`.
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

    /// Fires the timer that [`observe`](Self::observe) found, unless it has changed since.
    pub(crate) fn fire(&self, word: Word) -> Option<T> {
        self.replace(word, word.with_status(Status::Free)).then(|| self.take_payload())
    }

    /// Says of the timer that [`observe`](Self::observe) found, and whose node the advancer is about to link for its
    /// deadline, that it is no longer linked for `base`. False if the timer has changed since.
    pub(crate) fn displace(&self, word: Word) -> bool {
        word.extension() == 0 || word.is_displaced() || self.replace(word, word.displaced())
    }

    /// Frees the dead node that [`observe`](Self::observe) found, unless a producer has taken it over since.
    pub(crate) fn free_cancelled(&self, word: Word) -> bool {
        self.replace(word, word.with_status(Status::Free))
    }

    fn deadline(&self, word: Word) -> Tick {
        // Ordering: Relaxed, published by the word, which the caller acquired.
        self.base.load(Ordering::Relaxed).saturating_add(word.extension())
    }

    /// The tick that the node is linked for, or a later one: the earliest for which it can be reused where it
    /// stands.
    pub(crate) fn linked_for(&self, word: Word) -> Tick {
        self.deadline(if word.is_displaced() { word } else { word.with_extension(0) })
    }

    #[inline]
    fn replace(&self, from: Word, to: Word) -> bool {
        // Ordering: the caller acquired `from`'s publisher when it loaded it, and success proves that the
        // word is still that one, so Relaxed would do for what is read next; Acquire costs nothing where a
        // read-modify-write is a barrier and spares the proof that no store came between. No Release: the
        // words stored here publish nothing, but they continue the release sequence of `fill`.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        self.word.compare_exchange(from.raw(), to.raw(), success, failure).is_ok()
    }

    fn take_payload(&self) -> T {
        self.with_payload(|slot| slot.read())
    }

    #[inline(always)]
    fn with_payload<R>(&self, harvest: impl FnOnce(PayloadSlot<'_, T>) -> R) -> R {
        self.payload.with_mut(|cell| {
            // SAFETY: the caller won the transition out of `Pending`, or has the timer out and put the payload in:
            // nobody else touches it.
            let cell = unsafe { &mut *cell };
            // SAFETY: it was written before that, and nobody reads it after.
            harvest(unsafe { PayloadSlot::new(cell) })
        })
    }

    /// The payload of a timer that is still pending; for the last owner of the slab.
    pub(crate) fn take_pending(&self) -> Option<T> {
        if let Observed::Pending(_, word) = self.observe() { self.fire(word) } else { None }
    }
}

/// A generation out of its parts: no two segments have the same era, and no node of a segment the same version twice.
pub(crate) fn join(era: u32, version: u32) -> u64 {
    (u64::from(era) << 32) | u64::from(version)
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;

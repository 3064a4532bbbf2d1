//! The atomic word that decides a node's fate.
//!
//! ```text
//!  63                              32 31                      4 3 2      0
//! +----------------------------------+-------------------------+---+--------+
//! |             version              |        extension        | d | status |
//! +----------------------------------+-------------------------+---+--------+
//! ```
//!
//! *version*: the low half of the timer's generation; the high half is the segment's era. Each
//! timer that a node of the segment holds has a version of its own. So a compare-and-swap that
//! means an earlier timer fails, however soon the node is reused and however late the swap comes.
//! After its last version, the 4,294,967,295th timer, a node is worn out. It is not used again, and
//! its segment stays for it until the shard ends.
//!
//! *extension*: the number of ticks between the node's `base` and the timer's deadline. `base` is
//! the tick that the node was first linked for. It is written by the owner of a free node, and by
//! the advancer when it arms a recurring timer anew, so it is constant while a timer is pending.
//! One load of the word and one of `base` give the deadline, and a compare-and-swap of the word
//! proves both (but see *Recurring timers*). The extension is 0 unless the timer's deadline was
//! extended or the timer reuses the node in place.
//!
//! *d*, displaced: the node is linked for its deadline, or for an earlier deadline that it had, and
//! no longer for `base`. The advancer has found it early, in a flush, an early cascade or the
//! inbox, and has placed it anew. The advancer sets the bit before it links the node again. The bit
//! stays until the node has been freed, or is armed anew. So a node is linked for `base` while d is
//! clear. Once d is set, the best bound known is its last deadline: the node is linked for that
//! tick or an earlier one. That bound is the earliest deadline for which a cancelled node can be
//! reused in place.
//!
//! *status*, and which thread may change it:
//!
//! | from | to | by | when |
//! |---|---|---|---|
//! | `Free` v | `Pending` v + 1 | the owner of the free node | schedule (a store: no other thread writes a free node) |
//! | `Pending` v | `Pending` v, longer | any thread with the key | extend |
//! | `Pending` v | `Busy` v | any thread with the key | cancel, stop, move or exchange; the winner takes the payload out |
//! | `Busy` v | `Cancelled` v | that winner | the payload is out (a store: no other thread writes it) |
//! | `Busy` v | `Pending` v | that winner | a move met the shard's end and puts the payload back, or an exchange has put in another payload (a store) |
//! | `Pending` v | `Pending` v, displaced | the advancer | it found the timer early and is about to place it anew |
//! | `Cancelled` v | `Busy` v | the canceller, or a later thread in its lane | reuse in place, for the next timer of the lane |
//! | `Busy` v | `Pending` v + 1 | that thread | reuse in place; the new payload is in (a store, likewise) |
//! | `Pending` v | `Kept` v | the shard's end | it leaves the timer in its node for its caller |
//! | `Kept` v | `Free` v | the shard's end | it takes the payload out |
//! | `Pending` v | `Free` v | the advancer, or the shard's end | fire; it takes the payload out and then owns the node |
//! | `Cancelled` v | `Free` v | the advancer | a flush or a sweep met a dead node, unlinked it and owns it |
//! | `Pending` v | `Running` v | the advancer | fire, where timers may recur; it takes the payload out to find out |
//! | `Running` v | `Pending` v, at `base` | the advancer | the timer recurs: payload and `base` are written anew |
//! | `Running` v | `Free` v | the advancer, or the shard's end | the timer does not recur, or has ended |
//! | `Running` v | `Stopped` v | any thread with the key | stop; the payload stays with the thread that runs it |
//! | `Stopped` v | `Free` v | the advancer | it was about to arm the timer anew, or to end it (a store, likewise) |
//!
//! All transitions but the stores are compare-and-swaps, so each timer leaves `Pending` for its
//! outcome once: promise 2 on the `proof` page.
//!
//! The advancer waits for no producer. `Busy` lasts for a part of one producer's call. An
//! advancer that meets such a node defers the node to its next advance. A `Running` or `Stopped`
//! node is in no list, and the thread that runs the payload may take any time.
//!
//! # Reuse in place
//!
//! A `Cancelled` node belongs to no thread: the advancer that meets it makes it `Free`, or a
//! producer that wants it for its next timer makes it `Busy`. One of the two
//! compare-and-swaps succeeds. The advancer meets every linked node, and frees each dead node that
//! it meets. So if the producer succeeds, the advancer has not met the node since the cancel and
//! has yet to meet it, no later than at the tick that it is linked for.
//!
//! # Recurring timers
//!
//! A recurring timer keeps its node and its version from one occurrence to the next, so its key
//! stays valid. Each race has two outcomes:
//!
//! - *stop against fire*: if the timer goes from `Pending` to `Busy`, the fire finds a dead
//!   node. If it goes to `Running`, the stop looks again and makes it `Stopped`.
//! - *stop against arming anew*: if the timer becomes `Stopped` first, the advancer's
//!   compare-and-swap fails; the advancer takes the payload out again and frees the node. If it
//!   becomes `Pending` first, the stop looks again and cancels it like any other timer.
//! - *stop against the end of a timer*: if the timer becomes `Stopped` first, it counts as
//!   cancelled. If it becomes `Free` first, the stop finds nothing. A timer that does not recur is
//!   `Running` for a moment and may be stopped in that moment: it is yielded once, as without the
//!   stop, and counts as cancelled.
//! - *stop against the begin of a job* that waits at an executor: the job loads the word before it
//!   calls the callback. If it finds `Stopped`, the callback is not called. A stop that happens
//!   before the load is found, by coherence. A later one meets a timer whose payload is being run.
//!   The shard's end leaves a `Stopped` node as it is, so a job finds it there, too.
//! - *two stops, or a stop and a move*: one compare-and-swap out of `Pending` or `Running`
//!   succeeds.
//!
//! The price: one value of the word may stand for two occurrences, with different values of `base`.
//! A thread that loads the word, loads `base` and then swaps the word may find the same word of a
//! later occurrence. Every reader of `base` is safe from that:
//!
//! - `exchange` and `arm_in_place` read it after they have won the word: no other thread writes it
//!   then. `reuse` swaps a word whose timer is over, and which does not come again once the
//!   advancer has freed the node.
//! - The advancer reads it (`pending`, `deadline`), which alone arms timers anew, and not between
//!   its look and its swap.
//! - `deadline_of` swaps the word after it has read `base`. Of a timer that recurs, its answer is
//!   the deadline of an occurrence that was pending during the call.
//! - `extend` reads it before its swap and relies on it. So **a recurring timer is never extended
//!   in place**: it is moved to another node (`Scheduler::relocate`).

use crate::size::size;
use crate::tick::Tick;

/// Timers that a node can hold, one after the other. Fuzzers and Miri reach worn-out nodes.
pub(crate) const VERSIONS: u32 = size(u32::MAX, 7, u32::MAX);

const STATUS_BITS: u32 = 3;
const VERSION_SHIFT: u32 = 32;
const STATUS_MASK: u64 = (1 << STATUS_BITS) - 1;
const DISPLACED: u64 = 1 << STATUS_BITS;
const EXTENSION_SHIFT: u32 = STATUS_BITS + 1;

/// The largest extension, in ticks: three days at 1 ms a tick. A later deadline needs a new node.
pub(crate) const MAX_EXTENSION: Tick = (1 << (VERSION_SHIFT - EXTENSION_SHIFT)) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Holds nothing. Zero, so a zeroed word is free.
    Free,
    /// Holds a timer that has neither fired nor been cancelled.
    Pending,
    /// A producer has access to the payload: it cancels, moves or changes the timer, or puts the
    /// next timer into the node.
    Busy,
    /// Holds nothing, and is still linked.
    Cancelled,
    /// Kept with its timer by the shard's end.
    Kept,
    /// In no list: the timer has fired, its payload is out, and it may be armed anew.
    Running,
    /// As `Running`, and stopped by a producer: it will not be armed anew.
    Stopped,
}

/// A value of the word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn status(self) -> Status {
        match self.0 & STATUS_MASK {
            0 => Status::Free,
            1 => Status::Pending,
            2 => Status::Busy,
            3 => Status::Cancelled,
            4 => Status::Kept,
            5 => Status::Running,
            _ => Status::Stopped,
        }
    }

    #[inline]
    pub(crate) fn is(self, status: Status) -> bool {
        self.0 & STATUS_MASK == status as u64
    }

    pub(crate) fn version(self) -> u32 {
        (self.0 >> VERSION_SHIFT) as u32
    }

    /// The same word with the version given.
    #[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
    pub(crate) fn with_version(self, version: u32) -> Self {
        Self((u64::from(version) << VERSION_SHIFT) | self.0 & u64::from(u32::MAX))
    }

    pub(crate) fn extension(self) -> Tick {
        (self.0 & u64::from(u32::MAX)) >> EXTENSION_SHIFT
    }

    /// The same timer in another status.
    pub(crate) fn with_status(self, status: Status) -> Self {
        Self((self.0 & !STATUS_MASK) | status as u64)
    }

    /// Returns whether the node is linked for another tick than its `base`.
    pub(crate) fn is_displaced(self) -> bool {
        self.0 & DISPLACED != 0
    }

    /// The same timer, its node displaced.
    pub(crate) fn displaced(self) -> Self {
        Self(self.0 | DISPLACED)
    }

    /// The same timer, due `extension` ticks after the node's `base`.
    pub(crate) fn with_extension(self, extension: Tick) -> Self {
        debug_assert!(extension <= MAX_EXTENSION);
        let rest = self.0 & !(MAX_EXTENSION << EXTENSION_SHIFT);
        Self(rest | (extension << EXTENSION_SHIFT))
    }

    /// The next timer in a free node: due at `base`, and linked for `base`. Not to be called on the
    /// [last version](Word::is_last_version).
    pub(crate) fn next_version(self, status: Status) -> Self {
        debug_assert!(!self.is_last_version());
        let version = self.version() + 1;
        Self((u64::from(version) << VERSION_SHIFT) | status as u64)
    }

    /// The next timer in a node that is reused in place, due `extension` ticks after `base`.
    pub(crate) fn next_version_in_place(self, extension: Tick) -> Self {
        let next = self.next_version(Status::Pending).with_extension(extension);
        Self(next.0 | (self.0 & DISPLACED))
    }

    /// The same timer once more, due at `base`, and linked for `base`.
    pub(crate) fn rearmed(self) -> Self {
        Self((u64::from(self.version()) << VERSION_SHIFT) | Status::Pending as u64)
    }

    /// Returns whether the node is worn out: there is no next version. A worn-out node is not used
    /// again, neither in place nor as a free node. So each version occurs once in a segment's life,
    /// and a thread may pause for any length of time between its load of the word and its
    /// compare-and-swap.
    pub(crate) fn is_last_version(self) -> bool {
        self.version() == VERSIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Status; 7] = [
        Status::Free,
        Status::Pending,
        Status::Busy,
        Status::Cancelled,
        Status::Kept,
        Status::Running,
        Status::Stopped,
    ];

    #[test]
    fn a_zeroed_word_is_free() {
        let word = Word::from_raw(0);
        assert_eq!((word.status(), word.version(), word.extension()), (Status::Free, 0, 0));
    }

    #[test]
    fn fields_do_not_touch_each_other() {
        for version in [0, 1, VERSIONS - 1, VERSIONS] {
            for extension in [0, 1, MAX_EXTENSION] {
                for status in ALL {
                    let word = Word(u64::from(version) << VERSION_SHIFT);
                    let word = word.with_status(status).with_extension(extension);
                    assert_eq!(word.status(), status);
                    assert!(ALL.into_iter().all(|other| word.is(other) == (other == status)));
                    assert_eq!((word.version(), word.extension()), (version, extension));
                    assert!(!word.is_displaced());
                    let displaced = word.displaced();
                    assert!(displaced.is_displaced() && displaced.with_extension(0).is_displaced());
                    assert_eq!(displaced.status(), status);
                    assert_eq!((displaced.version(), displaced.extension()), (version, extension));
                }
            }
        }
    }

    #[test]
    fn the_next_version_starts_anew_unless_the_node_stays_in_place() {
        let word = Word(5 << VERSION_SHIFT).with_extension(7).displaced();
        let next = word.next_version(Status::Pending);
        assert_eq!((next.version(), next.extension(), next.status()), (6, 0, Status::Pending));
        assert!(!next.is_displaced());
        let next = word.next_version_in_place(9);
        assert_eq!((next.version(), next.extension(), next.status()), (6, 9, Status::Pending));
        assert!(next.is_displaced());
    }

    #[test]
    fn there_is_no_version_after_the_last() {
        let word = |version: u32| Word(u64::from(version) << VERSION_SHIFT);
        assert!(!word(VERSIONS - 1).is_last_version());
        assert!(word(VERSIONS - 1).next_version(Status::Pending).is_last_version());
    }

    #[test]
    fn a_timer_that_is_armed_anew_keeps_its_version_alone() {
        for version in [0, 1, VERSIONS] {
            let word = Word(u64::from(version) << VERSION_SHIFT).with_extension(7).displaced();
            let again = word.with_status(Status::Running).rearmed();
            assert_eq!((again.version(), again.extension(), again.status()), (version, 0, Status::Pending));
            assert!(!again.is_displaced());
        }
    }
}

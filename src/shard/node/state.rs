//! The one word that decides a node's fate.
//!
//! ```text
//!  63                              32 31                      4 3 2      0
//! +----------------------------------+-------------------------+---+--------+
//! |             version              |        extension        | d | status |
//! +----------------------------------+-------------------------+---+--------+
//! ```
//!
//! *version*: the low half of the generation of the timer that the node holds; the high half is the segment's era.
//! Every timer of a segment's node has its own, so a compare-and-swap by somebody who means an earlier timer fails,
//! however soon the node is used again, and however late that somebody comes. After the last version the node is worn
//! out, and is left unused until its segment is given back.
//!
//! *extension*: by how many ticks the timer is due after the node's `base`, the tick that the node was first
//! linked for. `base` is written by the owner of a free node, and by the advancer where it arms a recurring timer
//! anew, so it does not change while a timer is pending: one load of the word and one of `base` tell the deadline,
//! and a compare-and-swap of the word proves both (but see *Recurring timers*). A timer that is put off has a
//! longer extension; so has one that reuses the node where it stands.
//!
//! *d*, displaced: the node is linked for its deadline, or for an earlier one that it had, and no longer for
//! `base`: the advancer has found it early, in a flush or ahead of one, and has placed it anew. Set before it is linked again, and
//! kept until the node is free. What the node is linked for, and so the earliest tick for which a cancelled
//! node can be reused where it stands, is therefore `base` while d is clear, and not known better than by
//! the last deadline once d is set.
//!
//! *status* and who may change it:
//!
//! | from | to | by | when |
//! |---|---|---|---|
//! | `Free` v | `Pending` v + 1 | the owner of a free node | schedule (a store: nobody else writes a free node) |
//! | `Pending` v | `Pending` v, longer | anyone with the key | extend |
//! | `Pending` v | `Cancelling` v | anyone with the key | cancel; the winner takes the payload out |
//! | `Cancelling` v | `Cancelled` v | that winner | the payload is out (a store: nobody else writes it) |
//! | `Cancelling` v | `Pending` v | that winner | a move that met the shard's end puts the payload back, or another payload takes the place of the former (a store) |
//! | `Pending` v | `Pending` v, displaced | the advancer | it found the timer early and is about to place it anew |
//! | `Pending` v | `Held` v | anyone with the key | cancel, by a producer that keeps the node for its next timer |
//! | `Held` v | `Pending` v + 1 | that producer | reuse where it stands; the new payload is in (a store, likewise) |
//! | `Held` v | `Cancelled` v | that producer | it has no use for the node (a store, likewise) |
//! | `Pending` v | `Held` | the shard's end | it keeps the timer in its node; the version gives way to the next node's name |
//! | `Held` | `Free` | the shard's end | the payload is out (a store, likewise); the node is not used again |
//! | `Cancelled` v | `Claimed` v + 1 | any producer | reuse where it stands |
//! | `Claimed` v | `Pending` v | that producer | the new payload is in (a store, likewise) |
//! | `Pending` v | `Free` v | the advancer | fire; it takes the payload out and then owns the node |
//! | `Cancelled` v | `Free` v | the advancer | a flush or a sweep met a dead node, unlinked it and owns it |
//! | `Pending` v | `Running` v | the advancer | fire, where timers may recur; it takes the payload out to see |
//! | `Running` v | `Pending` v, at `base` | the advancer | the timer recurs: payload and `base` are written anew |
//! | `Running` v | `Free` v | the advancer | the timer does not recur, or has ended |
//! | `Running` v | `Stopped` v | anyone with the key | stop; the payload stays with who runs it |
//! | `Stopped` v | `Free` v | the advancer | it meant to arm the timer anew, or to end it (a store, likewise) |
//!
//! All but the stores are compare-and-swaps, so each timer leaves `Pending` once: that is promise 2.
//! `Cancelling` and `Claimed` are short and belong to one producer, for which nobody waits: an advancer
//! that meets them sets the node aside until its next advance. So it does with a node that is `Held`, which may
//! last: but a producer holds one node at most, and few producers hold any (see [`lane`](crate::shard::shared::lanes)). A node that
//! is `Running` or `Stopped` is linked nowhere, and whoever runs the payload may take its time.
//!
//! # Recurring timers
//!
//! A recurring timer keeps its node and its version from one occurrence to the next, so that its key stays good.
//! Each race has two outcomes:
//!
//! - *stop against fire*: either the timer goes from `Pending` to `Cancelling`, and the fire finds a dead node; or
//!   to `Running`, and the stop, which looks again, makes it `Stopped`.
//! - *stop against arming anew*: either the timer is `Stopped` first, and the advancer, whose compare-and-swap
//!   fails, takes the payload out again and frees the node; or `Pending` first, and the stop, which looks again,
//!   cancels it like any other.
//! - *stop against the end of a timer*: either `Stopped` first, and the timer counts as cancelled; or `Free`, and the
//!   stop finds nothing. A timer that does not recur is `Running` for a moment and may be stopped in it: it is
//!   yielded once, as it would have been, and counts as cancelled.
//! - *two stops, or a stop and a move*: one compare-and-swap out of `Pending` or `Running` succeeds.
//!
//! The price is that one word may stand for two occurrences, with different values of `base`: who loads the word,
//! then `base`, then swaps the word, may find the word of a later occurrence unchanged. Who looks at `base`:
//!
//! - `take` and `hold` (cancel, stop, move) read it after they have won, when nobody writes it.
//! - `claim` goes from `Cancelled`. A timer does not come back from there: the node's next one, if the swap is not
//!   to fail, has another version.
//! - `observe`, `displace`, `fire` and `free_cancelled` are the advancer's, which alone arms timers anew, and not in between.
//! - `extend` reads it before its swap and relies on it: **a recurring timer is never extended in place**, it is
//!   moved to another node (`Scheduler::relocate_recurring`).

use crate::tick::Tick;

const STATUS_BITS: u32 = 3;
const VERSION_SHIFT: u32 = 32;
const STATUS_MASK: u64 = (1 << STATUS_BITS) - 1;
const DISPLACED: u64 = 1 << STATUS_BITS;
const EXTENSION_SHIFT: u32 = STATUS_BITS + 1;

/// The longest time by which a timer can be put off without a new node: three days at ticks of 1 ms.
pub(crate) const MAX_EXTENSION: Tick = (1 << (VERSION_SHIFT - EXTENSION_SHIFT)) - 1;

/// A node lasts for so many timers; a fuzzer's are worn out soon, so that it sees what comes then.
const LAST_VERSION: u32 = if crate::config::SMALL { 7 } else { u32::MAX };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Holds nothing. A zeroed word says so.
    Free,
    /// Holds a timer that is neither fired nor cancelled.
    Pending,
    /// Cancelled by a producer that is taking the payload out.
    Cancelling,
    /// Holds nothing, and is still linked.
    Cancelled,
    /// Still linked, and taken over by a producer that is putting a new timer in.
    Claimed,
    /// Linked nowhere: the timer has fired, its payload is out, and it may be armed anew.
    Running,
    /// As `Running`, and stopped by a producer: it will not be armed anew.
    Stopped,
    /// Cancelled, still linked, and kept by its canceller for the next timer that it schedules.
    Held,
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

    /// Whether that is the status.
    #[inline]
    pub(crate) fn is(self, status: Status) -> bool {
        self.0 & STATUS_MASK == status as u64
    }

    pub(crate) fn version(self) -> u32 {
        (self.0 >> VERSION_SHIFT) as u32
    }

    pub(crate) fn extension(self) -> Tick {
        (self.0 & u64::from(u32::MAX)) >> EXTENSION_SHIFT
    }

    /// The same timer in another status.
    pub(crate) fn with_status(self, status: Status) -> Self {
        Self((self.0 & !STATUS_MASK) | status as u64)
    }

    /// Whether the node is linked for another tick than its `base`.
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

    /// The next timer in a node that is free: due at `base`, and linked for it. Not after the
    /// [last version](Word::is_last_version).
    pub(crate) fn next_version(self, status: Status) -> Self {
        debug_assert!(!self.is_last_version());
        let version = self.version() + 1;
        Self((u64::from(version) << VERSION_SHIFT) | status as u64)
    }

    /// The next timer in a node that stays where it is; its extension follows.
    pub(crate) fn next_version_in_place(self, status: Status) -> Self {
        let next = self.next_version(status).with_extension(self.extension());
        Self(next.0 | (self.0 & DISPLACED))
    }

    /// The same timer once more, due at `base`, and linked for it.
    pub(crate) fn rearmed(self) -> Self {
        Self((u64::from(self.version()) << VERSION_SHIFT) | Status::Pending as u64)
    }

    /// Whether the node is worn out: there is no next version. Such a node is not used again, neither where it stands
    /// nor when it is free, so a version comes once in a segment's life, and who has stopped between a look at the
    /// word and its compare-and-swap may have done so for any length of time.
    pub(crate) fn is_last_version(self) -> bool {
        self.version() == LAST_VERSION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Word {
        fn status(self) -> Status {
            ALL.into_iter().find(|&status| self.is(status)).expect("a word has a status")
        }
    }

    const ALL: [Status; 8] = [
        Status::Free,
        Status::Pending,
        Status::Cancelling,
        Status::Cancelled,
        Status::Claimed,
        Status::Running,
        Status::Stopped,
        Status::Held,
    ];

    #[test]
    fn an_extension_reaches_three_days_of_milliseconds() {
        let word = Word(0).with_extension(3 * 24 * 60 * 60 * 1_000);
        assert_eq!((word.extension(), word.version()), (3 * 24 * 60 * 60 * 1_000, 0));
    }

    #[test]
    fn a_zeroed_word_is_free() {
        let word = Word::from_raw(0);
        assert_eq!((word.status(), word.version(), word.extension()), (Status::Free, 0, 0));
    }

    #[test]
    fn fields_do_not_touch_each_other() {
        for version in [0, 1, LAST_VERSION - 1, LAST_VERSION] {
            for extension in [0, 1, MAX_EXTENSION] {
                for status in ALL {
                    let word = Word(u64::from(version) << VERSION_SHIFT);
                    let word = word.with_status(status).with_extension(extension);
                    assert_eq!(word.status(), status);
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
        let next = word.next_version_in_place(Status::Claimed);
        assert_eq!((next.version(), next.extension(), next.status()), (6, 7, Status::Claimed));
        assert!(next.is_displaced());
    }

    #[test]
    fn there_is_no_version_after_the_last() {
        let word = |version: u32| Word(u64::from(version) << VERSION_SHIFT);
        assert!(!word(LAST_VERSION - 1).is_last_version());
        assert!(word(LAST_VERSION - 1).next_version(Status::Pending).is_last_version());
    }

    #[test]
    fn a_timer_that_is_armed_anew_keeps_its_version_alone() {
        for version in [0, 1, LAST_VERSION] {
            let word = Word(u64::from(version) << VERSION_SHIFT).with_extension(7).displaced();
            let again = word.with_status(Status::Running).rearmed();
            assert_eq!((again.version(), again.extension(), again.status()), (version, 0, Status::Pending));
            assert!(!again.is_displaced());
        }
    }
}

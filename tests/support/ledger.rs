//! The ledger: what became of each payload.
//!
//! Each payload has an entry, in which the test notes how the payload left its timer; the payload's
//! drop is noted there as well. When the threads have been joined and the shard is gone, the test
//! checks the ledger: each payload had one end and one drop, and no payload fired early.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use shardwheel::Tick;

/// How a payload leaves its timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Fired,
    Cancelled,
    HandedBack,
    Refused,
}

/// What is known of one payload. At most one end and exactly one drop are correct.
#[derive(Debug, Default)]
struct Entry {
    ends: [AtomicU32; 4],
    drops: AtomicU32,
    /// The deadline that the last successful call set.
    due: AtomicU64,
    /// The tick at which it fired.
    fired_at: AtomicU64,
    /// The last tick at which it may fire, where a test sets one.
    latest: AtomicU64,
}

impl Entry {
    fn note(&self, end: End) {
        self.ends[end as usize].fetch_add(1, Ordering::AcqRel);
    }

    fn count(&self, end: End) -> u32 {
        self.ends[end as usize].load(Ordering::Acquire)
    }

    fn has(&self, end: End) -> bool {
        self.count(end) > 0
    }

    /// How many ends there were, of all kinds.
    fn ends(&self) -> u32 {
        self.ends.iter().map(|end| end.load(Ordering::Acquire)).sum()
    }

    fn drops(&self) -> u32 {
        self.drops.load(Ordering::Acquire)
    }

    /// Whether nothing is left to happen: one drop, and at most one end.
    fn is_settled(&self) -> bool {
        self.drops() == 1 && self.ends() <= 1
    }
}

/// Entries in the first chunk; each further chunk has twice as many as the one before.
const FIRST: usize = 256;
const CHUNKS: usize = 24;

/// The chunk of an entry, and its place there.
fn place(id: usize) -> (usize, usize) {
    let chunk = (id / FIRST + 1).ilog2() as usize;
    (chunk, id - FIRST * ((1 << chunk) - 1))
}

#[derive(Default)]
struct Entries {
    chunks: [OnceLock<Box<[Entry]>>; CHUNKS],
    made: AtomicUsize,
    dropped: AtomicUsize,
}

impl Entries {
    fn chunk(&self, chunk: usize) -> &[Entry] {
        self.chunks[chunk].get_or_init(|| (0..FIRST << chunk).map(|_| Entry::default()).collect())
    }

    fn entry(&self, id: usize) -> &Entry {
        let (chunk, at) = place(id);
        &self.chunk(chunk)[at]
    }
}

/// A ledger; its clones are the same ledger.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Entries>);

/// A payload with an entry in a ledger. The box makes a double drop, or a use after the drop,
/// visible to the sanitizers.
pub(crate) struct Payload {
    id: Box<usize>,
    ledger: Ledger,
}

impl Ledger {
    /// A ledger whose first `capacity` entries exist from the start, so that making them orders no
    /// threads.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let ledger = Self::default();
        let (last, _) = place(capacity.max(1) - 1);
        (0..=last).for_each(|chunk| _ = ledger.0.chunk(chunk));
        ledger
    }

    /// The next payload.
    pub(crate) fn payload(&self) -> Payload {
        let id = self.0.made.fetch_add(1, Ordering::Relaxed);
        self.0.entry(id);
        Payload { id: Box::new(id), ledger: self.clone() }
    }

    /// The next payload, due at `deadline`.
    pub(crate) fn payload_due(&self, deadline: Tick) -> Payload {
        let payload = self.payload();
        self.due(payload.id(), deadline);
        payload
    }

    /// Sets the deadline of a payload.
    pub(crate) fn due(&self, id: usize, deadline: Tick) {
        self.0.entry(id).due.store(deadline, Ordering::Relaxed);
    }

    /// Lets a payload fire at `deadline`, if that is earlier than what was set before.
    pub(crate) fn due_from(&self, id: usize, deadline: Tick) {
        self.0.entry(id).due.fetch_min(deadline, Ordering::Relaxed);
    }

    /// Sets the last tick at which a payload may fire.
    pub(crate) fn must_fire_by(&self, id: usize, latest: Tick) {
        self.0.entry(id).latest.store(latest, Ordering::Relaxed);
    }

    /// Notes an end of a payload that the caller does not hold.
    pub(crate) fn note(&self, id: usize, end: End) {
        self.0.entry(id).note(end);
    }

    pub(crate) fn has(&self, id: usize, end: End) -> bool {
        self.0.entry(id).has(end)
    }

    pub(crate) fn is_dropped(&self, id: usize) -> bool {
        self.0.entry(id).drops() > 0
    }

    /// How many payloads there have been.
    pub(crate) fn made(&self) -> usize {
        self.0.made.load(Ordering::Relaxed)
    }

    /// How many payloads have been dropped.
    pub(crate) fn dropped(&self) -> usize {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// How many payloads have not been dropped.
    pub(crate) fn living(&self) -> usize {
        self.made() - self.dropped()
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        (0..self.made()).map(|id| self.0.entry(id))
    }

    /// How many payloads came to this end.
    pub(crate) fn count(&self, end: End) -> usize {
        self.entries().filter(|entry| entry.has(end)).count()
    }

    /// How often this end was noted. A recurring callback notes that it has fired at each
    /// occurrence.
    pub(crate) fn noted(&self, end: End) -> usize {
        self.entries().map(|entry| entry.count(end) as usize).sum()
    }

    /// How many payloads have no end yet.
    pub(crate) fn pending(&self) -> usize {
        self.entries().filter(|entry| entry.ends() == 0).count()
    }

    /// The deadline and the time of each payload that has fired.
    pub(crate) fn fired(&self) -> impl Iterator<Item = (Tick, Tick)> {
        let fired = self.entries().filter(|entry| entry.has(End::Fired));
        fired.map(|entry| (entry.due.load(Ordering::Relaxed), entry.fired_at.load(Ordering::Relaxed)))
    }

    /// Whether each payload fired by the tick that [`must_fire_by`](Self::must_fire_by) set.
    pub(crate) fn all_on_time(&self) -> bool {
        let on_time =
            |entry: &Entry| entry.fired_at.load(Ordering::Relaxed) <= entry.latest.load(Ordering::Relaxed);
        self.entries().all(on_time)
    }

    /// How many payloads were dropped without an end. None if a payload had two ends, or not
    /// exactly one drop.
    pub(crate) fn dropped_without_an_end(&self) -> Option<usize> {
        self.entries().all(Entry::is_settled).then(|| self.pending())
    }

    /// Checks that no payload was dropped twice.
    pub(crate) fn check_drops(&self) {
        for (id, entry) in self.entries().enumerate() {
            assert!(entry.drops() <= 1, "payload {id} was dropped twice: {entry:?}");
        }
    }

    /// Checks a ledger whose threads and shard have ended: each payload was dropped once, had at
    /// most one end (none if its shard dropped it), and did not fire early.
    pub(crate) fn check(&self) {
        for (id, entry) in self.entries().enumerate() {
            assert_eq!(entry.drops(), 1, "drops of payload {id}");
            assert!(entry.is_settled(), "payload {id} had more than one end: {entry:?}");
        }
        let early = self.fired().find(|(due, fired_at)| due > fired_at);
        assert_eq!(early, None, "a payload fired early: its deadline, and when it fired");
    }

    /// As [`check`](Self::check); and no payload was dropped with its shard.
    pub(crate) fn check_all_ended(&self) {
        self.check();
        assert_eq!(self.pending(), 0, "payloads without an outcome");
    }

    /// As [`check_all_ended`](Self::check_all_ended); and each payload that fired did so exactly at
    /// its deadline.
    pub(crate) fn check_exact(&self) {
        self.check_all_ended();
        let inexact = self.fired().find(|(due, fired_at)| due != fired_at);
        assert_eq!(inexact, None, "a payload fired late: its deadline, and when it fired");
    }
}

impl Payload {
    pub(crate) fn id(&self) -> usize {
        *self.id
    }

    /// Notes an end, and keeps the payload: it is part of a callback.
    pub(crate) fn note(&self, end: End) {
        self.ledger.note(*self.id, end);
    }

    /// Notes an end unless there was one: a recurring callback has many occurrences and one end.
    pub(crate) fn note_once(&self, end: End) {
        if self.ledger.0.entry(*self.id).ends() == 0 {
            self.note(end);
        }
    }

    /// Notes an end, and drops the payload.
    pub(crate) fn end(self, end: End) {
        self.note(end);
    }

    /// Notes that it fired at that tick, and drops the payload.
    pub(crate) fn fire_at(self, now: Tick) {
        self.ledger.0.entry(*self.id).fired_at.store(now, Ordering::Relaxed);
        self.end(End::Fired);
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.ledger.0.entry(*self.id).drops.fetch_add(1, Ordering::AcqRel);
        self.ledger.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

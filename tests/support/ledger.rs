//! The ledger: what became of each payload, and the ends that an advancer puts to them.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use shardwheel::{Advancer, Config, Key, Scheduler, Tick, shard};

#[derive(Clone, Copy)]
pub(crate) enum End {
    Fired,
    Cancelled,
    HandedBack,
    Refused,
}

/// What is known of one payload. All of it is compared only when the threads have been joined.
#[derive(Default)]
pub(crate) struct Record {
    ends: [AtomicU8; 4],
    drops: AtomicU8,
    /// The deadline that the last successful call gave it.
    due: AtomicU64,
    /// The time at which it fired.
    fired_at: AtomicU64,
    /// The last time at which it may fire, where a test says so.
    pub(crate) latest: AtomicU64,
}

impl Record {
    fn count(&self, end: End) -> u8 {
        self.ends[end as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn on_time(&self) -> bool {
        self.fired_at.load(Ordering::Relaxed) <= self.latest.load(Ordering::Relaxed)
    }

    fn ends(&self) -> u8 {
        self.ends.iter().map(|end| end.load(Ordering::Relaxed)).sum()
    }
}

pub(crate) struct Ledger {
    pub(crate) records: Vec<Record>,
    made: AtomicUsize,
}

/// A payload that reports to the ledger. The box makes a double drop, or a read after the drop, a matter for
/// the sanitizers.
pub(crate) struct Payload<'a> {
    pub(crate) id: Box<usize>,
    ledger: &'a Ledger,
}

impl Ledger {
    /// A ledger for at most `capacity` payloads.
    pub(crate) fn new(capacity: usize) -> Self {
        let mut records = Vec::new();
        records.resize_with(capacity, Record::default);
        Self { records, made: AtomicUsize::new(0) }
    }

    /// The next payload, due at `deadline`.
    pub(crate) fn payload(&self, deadline: Tick) -> Payload<'_> {
        let id = self.made.fetch_add(1, Ordering::Relaxed);
        self.due(id, deadline);
        Payload { id: Box::new(id), ledger: self }
    }

    pub(crate) fn due(&self, id: usize, deadline: Tick) {
        self.records[id].due.store(deadline, Ordering::Relaxed);
    }

    pub(crate) fn made(&self) -> &[Record] {
        &self.records[..self.made.load(Ordering::Relaxed)]
    }

    /// How many payloads came to this end.
    pub(crate) fn count(&self, end: End) -> usize {
        self.made().iter().filter(|record| record.count(end) > 0).count()
    }

    /// How many have come to no end yet.
    pub(crate) fn pending(&self) -> usize {
        self.made().iter().filter(|record| record.ends() == 0).count()
    }

    /// The deadline and the time of all that have fired.
    pub(crate) fn fired(&self) -> impl Iterator<Item = (Tick, Tick)> {
        let fired = self.made().iter().filter(|record| record.count(End::Fired) > 0);
        fired.map(|record| (record.due.load(Ordering::Relaxed), record.fired_at.load(Ordering::Relaxed)))
    }

    /// To be called when the threads and the shard are done: each payload was dropped once, had at most one
    /// end (none where it was dropped with its shard), and if it fired, then not before it was due.
    pub(crate) fn check(&self) {
        for (id, record) in self.made().iter().enumerate() {
            assert_eq!(record.drops.load(Ordering::Relaxed), 1, "drops of {id}");
            assert!(record.ends() <= 1, "{id} ended more than once: {:?}", record.ends);
        }
        let early = self.fired().find(|(due, fired_at)| due > fired_at);
        assert_eq!(early, None, "fired before it was due");
    }

    /// Moreover, none was dropped with the shard.
    pub(crate) fn check_all_ended(&self) {
        self.check();
        assert_eq!(self.pending(), 0, "payloads without an outcome");
    }

    /// Moreover, what fired did so exactly when it was due.
    pub(crate) fn check_exact(&self) {
        self.check_all_ended();
        let inexact = self.fired().find(|(due, fired_at)| due != fired_at);
        assert_eq!(inexact, None, "due, and fired at");
    }
}

impl Payload<'_> {
    pub(crate) fn end(self, end: End) {
        self.ledger.records[*self.id].ends[end as usize].fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Payload<'_> {
    fn drop(&mut self) {
        self.ledger.records[*self.id].drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// A timer, as the threads pass it among themselves: whoever has it may cancel or reschedule it.
pub(crate) type Timer = (Key, usize);

/// A shard for payloads of a ledger.
pub(crate) fn open<'a>(wheel_size: usize) -> (Scheduler<Payload<'a>>, Advancer<Payload<'a>>) {
    shard(&Config::builder().wheel_size(wheel_size).build().expect("a wheel size that is a power of two"))
}

/// Advances to `now` and takes at most `budget` of what is due.
pub(crate) fn take(advancer: &mut Advancer<Payload<'_>>, now: Tick, budget: usize) {
    let now = advancer.scheduler().now().max(now);
    for fired in advancer.advance(now).take(budget) {
        assert!(fired.deadline <= now, "{} fired at {now}", fired.deadline);
        let record = &fired.payload.ledger.records[*fired.payload.id];
        record.fired_at.store(now, Ordering::Relaxed);
        fired.payload.end(End::Fired);
    }
}

pub(crate) fn hand_back(advancer: Advancer<Payload<'_>>) {
    advancer.into_pending().for_each(|(_, payload)| payload.end(End::HandedBack));
}

pub(crate) fn let_go(advancer: Advancer<Payload<'_>>) {
    drop(advancer);
}

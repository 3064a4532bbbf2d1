//! How each timer ended, and the keys that the producers share.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use shardwheel::{Fired, Key, Tick};

use super::PRODUCERS;
use super::advancer::Ending;

/// The greatest number of timers of a producer, and of its published keys; further ones are skipped.
pub(crate) const MOST: usize = 64;

pub(crate) struct Ledger {
    accounts: Box<[Account]>,
    /// The keys that each producer has published, in order.
    keys: [Box<[OnceLock<Named>]>; PRODUCERS],
    /// How many timers each producer has tried to make.
    made: [AtomicUsize; PRODUCERS],
}

/// A key, and the number of its timer.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    pub(crate) key: Key,
    pub(crate) number: usize,
}

struct Account {
    /// The earliest deadline that any producer has asked for.
    earliest: AtomicU64,
    ended: AtomicU32,
    dropped: AtomicU32,
}

/// A timer's payload: its number, and the ledger that counts its end.
pub(crate) struct Payload {
    number: usize,
    ledger: Arc<Ledger>,
}

impl Payload {
    pub(crate) fn number(&self) -> usize {
        self.number
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // Ordering: Relaxed here and below, only the numbers matter. The thread that reads them at
        // the end has waited for the other threads.
        self.ledger.accounts[self.number].dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let account = |_| Account {
            earliest: AtomicU64::new(Tick::MAX),
            ended: AtomicU32::new(0),
            dropped: AtomicU32::new(0),
        };
        Self {
            accounts: (0..PRODUCERS * MOST).map(account).collect(),
            keys: std::array::from_fn(|_| (0..MOST).map(|_| OnceLock::new()).collect()),
            made: std::array::from_fn(|_| AtomicUsize::new(0)),
        }
    }

    /// The payload of a producer's next timer; `None` at the limit.
    pub(crate) fn payload(self: &Arc<Self>, producer: usize, deadline: Tick) -> Option<Payload> {
        let made = self.made[producer].fetch_add(1, Ordering::Relaxed);
        let number = (made < MOST).then_some(producer * MOST + made)?;
        self.ask_for(number, deadline);
        Some(Payload { number, ledger: Arc::clone(self) })
    }

    /// Notes a deadline. The caller does so before it passes the deadline to the shard.
    pub(crate) fn ask_for(&self, number: usize, deadline: Tick) {
        self.accounts[number].earliest.fetch_min(deadline, Ordering::Relaxed);
    }

    /// Publishes a producer's key, if there is room.
    pub(crate) fn publish(&self, producer: usize, at: usize, named: Named) {
        if let Some(place) = self.keys[producer].get(at) {
            assert!(place.set(named).is_ok(), "a producer's keys are its own to publish");
        }
    }

    pub(crate) fn key(&self, producer: usize, at: usize) -> Option<Named> {
        self.keys[producer].get(at)?.get().copied()
    }

    /// Notes a timer that has fired in an advance to `now`.
    pub(crate) fn fired(&self, fired: &Fired<Payload>, now: Tick) {
        let earliest = self.accounts[fired.payload.number].earliest.load(Ordering::Relaxed);
        assert!((earliest..=now).contains(&fired.deadline), "{} at {now}, not {earliest}", fired.deadline);
        self.ended(&fired.payload);
    }

    /// Notes a payload that came back: the timer has ended.
    pub(crate) fn ended(&self, payload: &Payload) {
        self.accounts[payload.number].ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the payload that a cancel has won.
    pub(crate) fn cancelled(&self, named: Named, payload: &Payload) {
        assert_eq!(payload.number, named.number, "the key was another timer's");
        self.ended(payload);
    }

    /// Asserts that each timer has ended once and that its payload was dropped once. If the shard
    /// ended while producers were running, a payload may have been dropped with the shard.
    pub(crate) fn balance(&self, ending: Ending) {
        for producer in 0..PRODUCERS {
            let made = self.made[producer].load(Ordering::Relaxed).min(MOST);
            for number in producer * MOST..producer * MOST + made {
                let Account { ended, dropped, .. } = &self.accounts[number];
                let (ended, dropped) = (ended.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed));
                assert_eq!(dropped, 1, "timer {number} was dropped {dropped} times");
                assert!(ended == 1 || ended == 0 && !ending.waits(), "timer {number} ended {ended} times");
            }
        }
    }
}

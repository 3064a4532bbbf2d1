//! Random producers, and a shard that is advanced while they work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use fastrand::Rng;
use shardwheel::{Advancer, Scheduler, Tick};

use super::work::{AtWork, PRODUCERS, Timer, jump, take};
use crate::support::ledger::{End, Ledger, Payload};

/// A thread that schedules, cancels and reschedules, and passes timers on to the next producer.
struct Producer<'a> {
    scheduler: Scheduler<Payload>,
    ledger: &'a Ledger,
    rng: Rng,
    held: Vec<Timer>,
    give: Sender<Timer>,
    get: Receiver<Timer>,
    refused: bool,
}

impl<'a> Producer<'a> {
    /// The producers of a test, in a ring.
    fn ring(scheduler: &Scheduler<Payload>, ledger: &'a Ledger, seed: u64) -> Vec<Self> {
        let (mut gives, gets): (Vec<_>, Vec<_>) = (0..PRODUCERS).map(|_| channel()).unzip();
        gives.rotate_left(1);
        let ends = gives.into_iter().zip(gets).zip(seed..);
        let new = |((give, get), seed)| Self {
            scheduler: scheduler.clone(),
            ledger,
            rng: Rng::with_seed(seed),
            held: Vec::new(),
            give,
            get,
            refused: false,
        };
        ends.map(new).collect()
    }

    fn step(&mut self) {
        match self.rng.u8(..16) {
            0..=7 => self.schedule(),
            8..=10 => self.cancel(),
            11..=13 => self.reschedule(),
            _ => self.exchange(),
        }
    }

    /// A past tick, the current one, a near one, a far one, or one of the last.
    fn deadline(&mut self) -> Tick {
        let now = self.scheduler.now();
        match self.rng.u8(..10) {
            0 => self.rng.u64(..=now),
            1 => now,
            2..=5 => now + self.rng.u64(..64),
            6..=7 => now + (1 << self.rng.u32(..40)),
            8 => Tick::MAX - self.rng.u64(..1_000),
            _ => Tick::MAX,
        }
    }

    fn schedule(&mut self) {
        let deadline = self.deadline();
        let payload = self.ledger.payload_due(deadline);
        let id = payload.id();
        match self.scheduler.schedule(deadline, payload) {
            Ok(key) => {
                assert!(!self.refused, "accepted after one was refused");
                self.held.push((key, id));
            }
            Err(refused) => {
                assert!(refused.is_shut_down(), "{refused}");
                self.refused = true;
                refused.into_payload().end(End::Refused);
            }
        }
    }

    /// Takes one of this thread's timers.
    fn pick(&mut self) -> Option<Timer> {
        let at = self.rng.usize(..self.held.len().max(1));
        (at < self.held.len()).then(|| self.held.swap_remove(at))
    }

    fn cancel(&mut self) {
        let Some((key, id)) = self.pick() else { return };
        if let Some(payload) = self.scheduler.cancel(key) {
            assert_eq!(payload.id(), id, "another timer was cancelled");
            payload.end(End::Cancelled);
        }
        assert!(self.scheduler.cancel(key).is_none(), "cancelled twice");
    }

    fn reschedule(&mut self) {
        let Some((key, id)) = self.pick() else { return };
        let deadline = self.deadline();
        if let Some(key) = self.scheduler.reschedule(key, deadline) {
            self.ledger.due(id, deadline);
            self.held.push((key, id));
        }
    }

    fn exchange(&mut self) {
        self.held.extend(self.get.try_iter());
        if let Some(timer) = self.pick() {
            // A producer that has finished receives no more timers; the timer then has no key.
            let _ = self.give.send(timer);
        }
    }
}

/// The producers do `steps` steps each, while this thread advances by one tick or by thousands, and
/// takes some of the due timers. When the producers are done, or have done `enough` steps, it ends
/// the shard.
pub(crate) fn produce(
    (scheduler, mut advancer): (Scheduler<Payload>, Advancer<Payload>),
    ledger: &Ledger,
    (seed, steps, enough): (u64, usize, usize),
    end: impl FnOnce(Advancer<Payload>),
) {
    let (at_work, done) = (AtomicUsize::new(PRODUCERS), AtomicUsize::new(0));
    let (at_work, done) = (&at_work, &done);
    thread::scope(|scope| {
        for mut producer in Producer::ring(&scheduler, ledger, seed) {
            scope.spawn(move || {
                let _at_work = AtWork(at_work);
                for _ in 0..steps {
                    producer.step();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let (mut rng, mut now) = (Rng::with_seed(!seed), 0);
        while at_work.load(Ordering::Acquire) > 0 && done.load(Ordering::Relaxed) < enough {
            now += jump(&mut rng, 12);
            take(&mut advancer, now, rng.usize(..64));
        }
        end(advancer);
    });
}

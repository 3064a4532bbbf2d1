//! A producer's part: it schedules timers, and cancels and reschedules its own timers and the other
//! producer's.

use shardwheel::{Key, ScheduleError, Scheduler, Tick};

use super::PRODUCERS;
use super::bytes::Bytes;
use super::keys::{Keys, MOST, Named};
use super::ledger::{End, Ledger, Payload};

struct Producer<'a> {
    me: usize,
    scheduler: &'a Scheduler<Payload>,
    ledger: &'a Ledger,
    keys: &'a Keys,
    /// How many timers it has made, and how many keys it has published.
    made: usize,
    published: usize,
}

/// Runs the script.
pub(crate) fn run(me: usize, script: &[u8], scheduler: &Scheduler<Payload>, ledger: &Ledger, keys: &Keys) {
    let mut producer = Producer { me, scheduler, ledger, keys, made: 0, published: 0 };
    let mut bytes = Bytes(script);
    while !bytes.is_empty() {
        producer.operation(&mut bytes);
    }
}

impl Producer<'_> {
    fn operation(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.byte() % 16 {
            0..=6 => self.schedule(bytes),
            7 => self.schedule_within(bytes),
            8..=10 => self.cancel(bytes),
            11..=13 => self.reschedule(bytes),
            14 => self.look(),
            _ => (0..bytes.byte()).for_each(|_| std::hint::spin_loop()),
        }
    }

    /// A deadline near the clock, which moves meanwhile: some before it, most just after it.
    fn deadline(&self, bytes: &mut Bytes<'_>) -> Tick {
        let now = self.scheduler.now();
        match bytes.byte() {
            near @ 0..192 => now.saturating_add(Tick::from(near % 16)),
            192..240 => now.saturating_add(bytes.ticks()),
            _ => now.saturating_sub(bytes.ticks()),
        }
    }

    fn schedule(&mut self, bytes: &mut Bytes<'_>) {
        let deadline = self.deadline(bytes);
        self.set(deadline, |scheduler, payload| scheduler.schedule(deadline, payload));
    }

    fn schedule_within(&mut self, bytes: &mut Bytes<'_>) {
        let start = self.deadline(bytes);
        let window = start..=start.saturating_add(bytes.ticks());
        self.set(start, |scheduler, payload| scheduler.schedule_within(window, payload));
    }

    /// Makes a timer that is due no earlier than `earliest`, unless it has made its share.
    fn set(
        &mut self,
        earliest: Tick,
        schedule: impl FnOnce(&Scheduler<Payload>, Payload) -> Result<Key, ScheduleError<Payload>>,
    ) {
        if self.made == MOST {
            return;
        }
        self.made += 1;
        let payload = self.ledger.payload_due(earliest);
        let number = payload.id();
        match schedule(self.scheduler, payload) {
            Ok(key) => self.publish(Named { key, number }),
            Err(refused) => refused.into_payload().end(End::Refused),
        }
    }

    fn publish(&mut self, named: Named) {
        self.keys.publish(self.me, self.published, named);
        self.published += 1;
    }

    /// A recent key, its own or the other producer's.
    fn pick(&self, bytes: &mut Bytes<'_>) -> Option<Named> {
        let choice = usize::from(bytes.byte());
        let (owner, back) = ((self.me + choice) % PRODUCERS, choice / PRODUCERS);
        self.keys.get(owner, self.published.checked_sub(1 + back % 32)?)
    }

    fn cancel(&mut self, bytes: &mut Bytes<'_>) {
        let Some(named) = self.pick(bytes) else { return };
        if let Some(payload) = self.scheduler.cancel(named.key) {
            assert_eq!(payload.id(), named.number, "the key was another timer's");
            payload.end(End::Cancelled);
            assert!(self.scheduler.cancel(named.key).is_none(), "cancelled twice");
        }
    }

    fn reschedule(&mut self, bytes: &mut Bytes<'_>) {
        let Some(named) = self.pick(bytes) else { return };
        let deadline = self.deadline(bytes);
        self.ledger.due_from(named.number, deadline);
        let Some(key) = self.scheduler.reschedule(named.key, deadline) else { return };
        if key != named.key {
            self.publish(Named { key, ..named });
        }
    }

    fn look(&self) {
        let stats = self.scheduler.stats();
        assert!(stats.fired <= stats.scheduled && stats.cancelled <= stats.scheduled);
    }
}

//! The owner of a partition: reads its log, decides, and publishes the results.
//!
//! It begins with the newest snapshot and the last result. It applies the rest of the log; what the
//! last result answers already is applied and not published, and the digest must come out the same.
//! From there on it publishes a result for each *group* of messages, which gathers while the
//! previous result is on its way.
//!
//! Anything that goes wrong ends it: a result that was refused because another owner was first, or a
//! result that may or may not stand. The worker then starts a new owner if it still has the partition.
//! So there is one way to recover, the same as after a crash. `failure.rs` says which failures last.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::serve::metrics::Metrics;

use super::broker::{Broker, LastResult};
use super::failure::Failure;
use super::keeper::Keeper;
use super::names::{self, Kind};
use super::partition::{Applied, Partition, Position};
use super::pulse::Pulse;
use super::reader::{Gap, Input, Reader};
use super::recovery::{self, Begin};
use super::status::Health;
use super::ticks::Ticks;
use super::{setup, snapshot};

/// A group ends when its lines are this long, in bytes. With the answers to the last message
/// (`MAX_LINES`) they fit into the smallest message that the broker must take.
const GROUP: usize = 384 << 10;

/// What all owners of a worker share.
#[derive(Clone)]
pub(crate) struct Office {
    pub(crate) broker: Broker,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Arc<Health>,
    /// A snapshot is taken after this many lines, or more.
    pub(crate) snapshot_every: usize,
    /// Partitions whose owner has caught up.
    pub(crate) caught_up: mpsc::UnboundedSender<u32>,
}

pub(crate) struct Owner {
    office: Office,
    number: u32,
    pulse: Pulse,
    partition: Partition,
    /// The last result that stands.
    last: LastResult,
    reader: Reader,
    ticks: Ticks,
    /// Lines and messages since the last snapshot.
    since: usize,
    /// It is away while it saves a snapshot.
    keeper: Option<Keeper>,
    saving: Option<JoinHandle<Result<Keeper, Failure>>>,
}

/// Owns a partition until the future is dropped. Every error is a reason to begin again.
pub(crate) async fn own(office: Office, number: u32, pulse: Pulse) -> Result<(), Failure> {
    Owner::recover(office, number, pulse).await?.work().await
}

impl Owner {
    async fn recover(office: Office, number: u32, pulse: Pulse) -> Result<Self, Failure> {
        let Begin { keeper, partition, last } = Begin::read(&office.broker, number).await?;
        let reader = Reader::new(office.broker.clone(), names::log(number), partition.position.input + 1);
        let (ticks, keeper, since, saving) = (Ticks::new(), Some(keeper), 0, None);
        let mut owner = Self { office, number, pulse, partition, last, reader, ticks, since, keeper, saving };
        owner.pulse.pending(owner.partition.books.pending());
        owner.tick().await?;
        Ok(owner)
    }

    async fn work(mut self) -> Result<(), Failure> {
        loop {
            let wait = self.ticks.wait(self.partition.next_check());
            tokio::select! {
                biased;
                input = self.reader.next() => match input {
                    Ok(input) => self.read(input).await?,
                    Err(gap) => return Err(self.gap(gap).await?),
                },
                () = shardwheel::sleep(wait.unwrap_or_default()), if wait.is_some() => self.tick().await?,
            }
            self.snapshot().await?;
        }
    }

    async fn read(&mut self, input: Option<Input>) -> Result<(), Failure> {
        match input {
            Some(input) => {
                self.group(input).await?;
                self.pulse.reached(self.partition.position.input);
            }
            // The log should have it.
            None if self.ticks.is_away() => {}
            None => self.pulse.beat(),
        }
        Ok(())
    }

    /// Why the log lacks a message. If it was trimmed, with all before it, a newer snapshot
    /// includes it, or the log has lost it: a new owner finds out.
    async fn gap(&mut self, gap: Gap) -> Result<Failure, Failure> {
        let number = match gap {
            Gap::Stream(name) => return Ok(setup::missing(&name)),
            Gap::Message(number) => number,
        };
        let trimmed = number < recovery::first(&self.office.broker.state(&names::log(self.number)).await?);
        let text = format!("message {number} is no longer in the log");
        Ok(if trimmed { Failure::temporary(text) } else { setup::lost(&text) })
    }

    async fn tick(&mut self) -> Result<(), Failure> {
        self.office.broker.tick(self.number, self.ticks.send()).await
    }

    /// Decides all messages that are here, and publishes what answers them.
    async fn group(&mut self, first: Input) -> Result<(), Failure> {
        let (mut lines, mut applied) = (String::new(), Vec::new());
        let mut next = Some(first);
        while let Some(input) = next {
            applied.push(self.apply(&input, &mut lines)?);
            next = if lines.len() < GROUP { self.reader.ready() } else { None };
        }
        // They are in the log; whether the result stands is another question.
        self.pulse.pending(self.partition.books.pending());
        self.publish(lines).await?;
        applied.iter().for_each(|applied| self.count(applied));
        Ok(())
    }

    /// Publishes lines as a result.
    async fn publish(&mut self, lines: String) -> Result<(), Failure> {
        if lines.is_empty() {
            return Ok(());
        }
        let (begin, Position { input, digest, .. }) = (Instant::now(), self.partition.position);
        let next = LastResult { input, digest, ..self.last };
        self.last = self.office.broker.publish(self.number, lines, next).await?;
        self.office.metrics.committed(begin.elapsed());
        Ok(())
    }

    fn apply(&mut self, input: &Input, lines: &mut String) -> Result<Applied, Failure> {
        let kind = Kind::of(&input.subject);
        let applied = self.partition.apply(input, lines)?;
        let Input { sequence, time, ref payload, .. } = *input;
        self.since += 1 + applied.answers.len();
        let nonce = (kind == Some(Kind::Tick)).then_some(&payload[..]);
        if self.ticks.received(time, nonce) {
            // The worker listens as long as it lives.
            let _ = self.office.caught_up.send(self.number);
        }
        if sequence > self.last.input {
            if !applied.answers.is_empty() || !applied.checked.is_empty() {
                self.pulse.waits(sequence, self.ticks.age(time));
            }
            return Ok(applied);
        }
        lines.clear();
        if sequence == self.last.input {
            recovery::compare(&self.partition.position, &self.last)?;
        }
        Ok(Applied::default())
    }

    /// Counts what is decided and published.
    fn count(&self, applied: &Applied) {
        let metrics = &self.office.metrics;
        metrics.answered(&applied.answers);
        applied.checked.iter().for_each(|&checked| metrics.checked(checked));
        metrics.ended(applied.changes.ended.iter().map(|ended| ended.state));
    }

    /// Begins a snapshot if a new owner would have much to read, compared with the size of the books.
    async fn snapshot(&mut self) -> Result<(), Failure> {
        if let Some(saving) = self.saving.take_if(|saving| saving.is_finished()) {
            self.keeper = Some(saving.await??);
        }
        let size = self.partition.books.pending() + self.partition.memory.len();
        let enough = self.since >= self.office.snapshot_every.max(size / 2);
        let input = self.partition.position.input;
        // While the owner reads again what is already published, a snapshot would be of no use.
        if enough
            && input >= self.last.input
            && let Some(keeper) = self.keeper.take()
        {
            let bytes = snapshot::encode(&self.partition);
            self.saving = Some(tokio::spawn(keeper.save(input, bytes)));
            self.since = 0;
        }
        Ok(())
    }
}

//! The owner of a partition: reads its log, decides, and publishes the results.
//!
//! It begins with the newest snapshot and the last result. It applies the rest of the log; what the
//! last result answers already is applied and not published, and the digest must come out the same.
//! From there on it publishes a result for each *group* of messages, which gathers while the
//! previous result is on its way.
//!
//! Anything that goes wrong ends it: a result that was refused because another owner was first, or a
//! result that may or may not stand. The worker then starts a new owner if it still has the lease.
//! So there is one way to recover, the same as after a crash.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::serve::metrics::Metrics;
use crate::store::EndState;

use super::broker::{Broker, Failure, LastResult};
use super::keeper::Keeper;
use super::names::{self, Kind};
use super::partition::{Applied, Partition};
use super::pulse::Pulse;
use super::reader::{Input, Reader};
use super::snapshot;
use super::ticks::Ticks;

/// A group ends when its lines are this long, in bytes. One message adds at most half a MiB.
const GROUP: usize = 384 << 10;

/// What all owners of a worker share.
#[derive(Clone)]
pub(crate) struct Office {
    pub(crate) broker: Broker,
    pub(crate) metrics: Arc<Metrics>,
    /// A snapshot is taken after this many lines, or more.
    pub(crate) snapshot_every: usize,
    pub(crate) keep_log: bool,
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
    /// What this owner has added to the worker's pending orders.
    pending: u64,
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
        let broker = office.broker.clone();
        let (keeper, bytes) = Keeper::load(broker.clone(), number, office.keep_log).await?;
        let settings = broker.settings;
        let mut partition = match bytes {
            Some(bytes) => snapshot::decode(&bytes, settings.shop(), settings.remember_ms)?,
            None => Partition::new(settings.shop(), settings.remember_ms)?,
        };
        partition.home = (number, settings.partitions);
        let last = broker.last_result(number).await?;
        let reader = Reader::new(broker, names::log(number), partition.position.input + 1);
        let (ticks, keeper) = (Ticks::new(), Some(keeper));
        let mut owner = Self {
            office,
            number,
            pulse,
            partition,
            last,
            reader,
            ticks,
            since: 0,
            pending: 0,
            keeper,
            saving: None,
        };
        if owner.partition.position.input >= last.input {
            owner.compare()?;
        }
        owner.tick().await?;
        Ok(owner)
    }

    /// The books must agree with what an earlier owner has published.
    fn compare(&self) -> Result<(), Failure> {
        let (digest, last) = (self.partition.position.digest, self.last);
        if last.sequence == 0 || last.digest == digest {
            return Ok(());
        }
        Err(format!("the decisions up to message {} differ from those that stand", last.input).into())
    }

    async fn work(mut self) -> Result<(), Failure> {
        loop {
            let wait = self.ticks.wait(self.partition.next_check());
            tokio::select! {
                biased;
                input = self.reader.next() => self.read(input?).await?,
                () = shardwheel::sleep(wait.unwrap_or_default()), if wait.is_some() => self.tick().await?,
            }
            self.snapshot().await?;
        }
    }

    async fn read(&mut self, input: Option<Input>) -> Result<(), Failure> {
        match input {
            Some(input) => self.group(input).await?,
            // The log should have it.
            None if self.ticks.is_away() => return Ok(()),
            None => {}
        }
        self.pulse.beat();
        Ok(())
    }

    async fn tick(&mut self) -> Result<(), Failure> {
        self.office.broker.tick(self.number, self.ticks.send()).await
    }

    /// Decides all messages that are here, and publishes one result.
    async fn group(&mut self, first: Input) -> Result<(), Failure> {
        let (mut lines, mut applied) = (String::new(), Vec::new());
        let mut next = Some(first);
        while let Some(input) = next {
            applied.push(self.apply(&input, &mut lines)?);
            self.set_aside(&input).await?;
            next = if lines.len() < GROUP { self.reader.ready() } else { None };
        }
        if !lines.is_empty() {
            let begin = Instant::now();
            let (broker, position) = (&self.office.broker, self.partition.position);
            self.last = broker.publish(self.number, lines, position, self.last).await?;
            self.office.metrics.committed(begin.elapsed());
        }
        applied.iter().for_each(|applied| self.count(applied));
        self.count_pending(self.partition.books.pending() as u64);
        Ok(())
    }

    fn count_pending(&mut self, pending: u64) {
        let before = std::mem::replace(&mut self.pending, pending);
        // A sum of several partitions: it goes down by what wraps around.
        self.office.metrics.pending.add(pending.wrapping_sub(before));
    }

    fn apply(&mut self, input: &Input, lines: &mut String) -> Result<Applied, Failure> {
        let kind = Kind::of(&input.subject);
        let Input { sequence, time, ref payload, .. } = *input;
        let applied = self.partition.apply(sequence, time, kind, payload, lines)?;
        self.since += 1 + applied.answers.len();
        let nonce = (kind == Some(Kind::Tick)).then_some(&payload[..]);
        if self.ticks.received(time, nonce) {
            // The worker listens as long as it lives.
            let _ = self.office.caught_up.send(self.number);
        }
        if sequence > self.last.input {
            return Ok(applied);
        }
        lines.clear();
        if sequence == self.last.input {
            self.compare()?;
        }
        Ok(Applied::default())
    }

    /// A message that cannot be decided goes to a stream of its own, and the partition goes on.
    async fn set_aside(&mut self, input: &Input) -> Result<(), Failure> {
        let Input { sequence, subject, payload, .. } = input;
        if Kind::of(subject).is_some() || *sequence <= self.last.input {
            return Ok(());
        }
        self.office.broker.set_aside(self.number, *sequence, subject, payload).await?;
        self.office.metrics.set_aside.add(1);
        eprintln!("message {sequence} of {subject} cannot be decided; it is set aside");
        Ok(())
    }

    /// Counts what is decided and published.
    fn count(&self, applied: &Applied) {
        let metrics = &self.office.metrics;
        metrics.answered(&applied.answers);
        applied.checked.iter().for_each(|&checked| metrics.checked(checked));
        for state in [EndState::PaidEarly, EndState::Confirmed, EndState::Released] {
            let ended = applied.changes.ended.iter().filter(|ended| ended.state == state);
            metrics.ended(state, ended.count() as u64);
        }
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

impl Drop for Owner {
    fn drop(&mut self) {
        self.count_pending(0);
    }
}

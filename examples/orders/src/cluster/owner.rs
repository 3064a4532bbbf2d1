//! The owner of a partition: reads its log, decides, and publishes the results.
//!
//! It begins with the newest snapshot and the last result. It applies the rest of the log; what the
//! last result answers already is applied and not published, and the digest must come out the same.
//! From there on it publishes a result for each *group* of messages, which gathers while the
//! previous result is on its way.
//!
//! Lines that are longer than the broker takes in one message are published as several results. All but
//! the last say how far they are ahead of the messages that are answered in full; a new owner decides the
//! same lines, and leaves out as many bytes.
//!
//! Anything that goes wrong ends it: a result that was refused because another owner was first, or a
//! result that may or may not stand. The worker then starts a new owner if it still has the partition.
//! So there is one way to recover, the same as after a crash. `failure.rs` says which failures last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::serve::metrics::{Figure, Metrics};

use super::broker::{Broker, LastResult};
use super::failure::Failure;
use super::held::Held;
use super::keeper::Keeper;
use super::names::{self, Kind, digest};
use super::partition::{Applied, Partition};
use super::pulse::Pulse;
use super::reader::{Gap, Input, Reader};
use super::recovery::{self, Begin};
use super::status::Health;
use super::ticks::Ticks;
use super::{setup, snapshot};

/// A group ends when its lines are this long, in bytes, or as long as the broker takes.
const GROUP: usize = 384 << 10;

/// What all owners of a worker share.
#[derive(Clone)]
pub(crate) struct Office {
    pub(crate) broker: Broker,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Arc<Health>,
    /// A snapshot is taken after this many lines, or more.
    pub(crate) snapshot_every: usize,
    pub(crate) keep_log: bool,
    /// Partitions whose owner has caught up.
    pub(crate) caught_up: mpsc::UnboundedSender<u32>,
}

impl Office {
    /// An owner has failed; returns the pause before the next one.
    pub(crate) fn failed(&self, number: u32, held: &mut Held, failure: &Failure) -> Duration {
        let pause = held.failed(failure);
        held.pulse.failed(failure.to_string());
        if held.stopped {
            self.health.stop(number, failure.to_string());
        }
        if held.says() {
            let what = if held.stopped { "has stopped" } else { "begins again" };
            say!("partition {number} {what}: {failure}");
        }
        pause
    }
}

pub(crate) struct Owner {
    office: Office,
    number: u32,
    pulse: Pulse,
    partition: Partition,
    /// The last result that stands.
    last: LastResult,
    /// Bytes of lines that an earlier owner has published, and this one has not decided yet.
    ahead: usize,
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
        let Begin { keeper, partition, last } = Begin::read(&office.broker, number, office.keep_log).await?;
        let reader = Reader::new(office.broker.clone(), names::log(number), partition.position.input + 1);
        let (ticks, keeper, ahead) = (Ticks::new(), Some(keeper), last.ahead);
        let mut owner = Self {
            office,
            number,
            pulse,
            partition,
            last,
            ahead,
            reader,
            ticks,
            since: 0,
            keeper,
            saving: None,
        };
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
                    Err(gap) => self.gap(gap).await?,
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

    /// Passes over a message that was deleted. If it was trimmed, with all before it, a newer snapshot
    /// includes it, or the log has lost it: a new owner finds out.
    async fn gap(&mut self, gap: Gap) -> Result<(), Failure> {
        let number = match gap {
            Gap::Stream(name) => return Err(setup::missing(&name)),
            Gap::Message(number) => number,
        };
        if number < recovery::first(&self.office.broker.state(&names::log(self.number)).await?) {
            return Err(Failure::temporary(format!("message {number} is no longer in the log")));
        }
        self.partition.position.input = number;
        if number > self.last.input {
            self.office.metrics.of(Figure::PassedOver).add(1);
            say!("partition {}: message {number} was deleted; it is passed over", self.number);
        }
        if number == self.last.input {
            recovery::compare(&self.partition.position, &self.last)?;
        }
        Ok(())
    }

    async fn tick(&mut self) -> Result<(), Failure> {
        self.office.broker.tick(self.number, self.ticks.send()).await
    }

    /// Decides all messages that are here, and publishes what answers them.
    async fn group(&mut self, first: Input) -> Result<(), Failure> {
        let (mut lines, mut applied) = (String::new(), Vec::new());
        let (mut next, most) = (Some(first), GROUP.min(self.office.broker.max_payload()));
        while let Some(input) = next {
            applied.push(self.apply(&input, &mut lines)?);
            self.set_aside(&input).await?;
            next = if lines.len() < most { self.reader.ready() } else { None };
        }
        self.leave_out(&mut lines)?;
        // They are in the log; whether the result stands is another question.
        self.pulse.pending(self.partition.books.pending());
        self.publish(lines).await?;
        applied.iter().for_each(|applied| self.count(applied));
        Ok(())
    }

    /// Takes out what an earlier owner has published already.
    fn leave_out(&mut self, lines: &mut String) -> Result<(), Failure> {
        if self.ahead == 0 {
            return Ok(());
        }
        let out = self.ahead.min(lines.len());
        if !lines.is_char_boundary(out) {
            return Err(recovery::differ(&self.last));
        }
        lines.drain(..out);
        self.ahead -= out;
        let same = digest(self.last.digest, lines.as_bytes()) == self.partition.position.digest;
        if self.ahead == 0 && !same { Err(recovery::differ(&self.last)) } else { Ok(()) }
    }

    /// Publishes lines, as one result if the broker takes so many bytes.
    async fn publish(&mut self, mut lines: String) -> Result<(), Failure> {
        let (broker, begin) = (&self.office.broker, Instant::now());
        while !lines.is_empty() {
            let rest = lines.split_off(cut(&lines, broker.max_payload())?);
            let mut next = LastResult { digest: digest(self.last.digest, lines.as_bytes()), ..self.last };
            next.ahead += lines.len();
            if rest.is_empty() {
                (next.input, next.ahead) = (self.partition.position.input, 0);
            }
            self.last = broker.publish(self.number, lines, next).await?;
            self.office.metrics.committed(begin.elapsed());
            lines = rest;
        }
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

    /// A message that cannot be decided goes to a stream of its own, and the partition goes on.
    async fn set_aside(&mut self, input: &Input) -> Result<(), Failure> {
        let Input { sequence, subject, payload, .. } = input;
        if Kind::of(subject).is_some() || *sequence <= self.last.input {
            return Ok(());
        }
        self.office.broker.set_aside(self.number, *sequence, subject, payload).await?;
        self.office.metrics.of(Figure::SetAside).add(1);
        say!("message {sequence} of {subject} cannot be decided; it is set aside");
        Ok(())
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
            && self.ahead == 0
            && let Some(keeper) = self.keeper.take()
        {
            let bytes = snapshot::encode(&self.partition);
            self.saving = Some(tokio::spawn(keeper.save(input, bytes)));
            self.since = 0;
        }
        Ok(())
    }
}

/// How many bytes of whole lines fit into a message.
pub(crate) fn cut(lines: &str, most: usize) -> Result<usize, Failure> {
    if lines.len() <= most {
        return Ok(lines.len());
    }
    let end = lines.as_bytes()[..most].iter().rposition(|&byte| byte == b'\n');
    end.map(|end| end + 1).ok_or_else(|| {
        Failure::permanent(format!("the broker takes no more than {most} bytes; raise its max_payload"))
    })
}

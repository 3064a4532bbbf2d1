//! The owner of a partition: reads its log, decides, and publishes the results.
//!
//! It begins with the newest snapshot and the last result. It applies the rest of the log; what the
//! last result answers already is applied and not published, and the digest must come out the same.
//! From there on it publishes a result for each *group* of messages, which gathers while the
//! previous result is on its way.
//!
//! Anything that goes wrong ends it: a result that was refused because another owner was first, a
//! result that may or may not stand, a request without an answer. Then it begins again after a
//! pause, and says why. So there is one way to recover, the same as after a crash.

use std::convert::Infallible;
use std::mem;
use std::time::Instant;

use async_nats::jetstream::stream::State;

use super::broker::{Broker, Failure, LastResult, PAUSE, SAY};
use super::names;
use super::partition::{Partition, Position};
use super::reader::{Input, Reader};
use super::snapshot::{self, Keeper};
use super::ticks::Ticks;

/// A group ends when its lines are this long, in bytes. With the answers to the last message
/// (`MAX_LINES`) they fit into the smallest message that the broker must take.
const GROUP: usize = 384 << 10;

struct Owner {
    broker: Broker,
    number: u32,
    /// A snapshot is taken after this many lines, or more.
    snapshot_every: usize,
    partition: Partition,
    /// The last result that stands.
    last: LastResult,
    reader: Reader,
    ticks: Ticks,
    caught_up: bool,
    /// Lines and messages since the last snapshot.
    since: usize,
    keeper: Keeper,
}

/// Owns a partition until the future is dropped.
pub(crate) async fn own(broker: Broker, number: u32, snapshot_every: usize) {
    let mut said = None::<Instant>;
    loop {
        let Err(failure) = work(broker.clone(), number, snapshot_every).await;
        if said.is_none_or(|at| at.elapsed() >= SAY) {
            said = Some(Instant::now());
            say!("partition {number} begins again: {failure}");
        }
        shardwheel::sleep(PAUSE).await;
    }
}

async fn work(broker: Broker, number: u32, snapshot_every: usize) -> Result<Infallible, Failure> {
    let mut owner = Owner::recover(broker, number, snapshot_every).await?;
    loop {
        match owner.reader.read().await? {
            inputs if inputs.is_empty() => owner.rest().await?,
            inputs => owner.group(&inputs).await?,
        }
    }
}

impl Owner {
    async fn recover(broker: Broker, number: u32, snapshot_every: usize) -> Result<Self, Failure> {
        let keeper = Keeper::load(broker.clone(), number).await?;
        let last = broker.last_result(number).await?;
        let mut partition = keeper.restore().await?;
        partition.home = (number, broker.settings.partitions);
        let (name, input) = (names::log(number), partition.position.input);
        let log = broker.stream(&name).await?.get_info().await?.state;
        follows(&partition.position, &last, &log)?;
        let reader = Reader::new(&broker, name, input + 1).await?;
        let (ticks, caught_up, since) = (Ticks::new(), false, 0);
        Ok(Self { broker, number, snapshot_every, partition, last, reader, ticks, caught_up, since, keeper })
    }

    /// All that is in the log is decided: waits for more, or until a check is due.
    async fn rest(&mut self) -> Result<(), Failure> {
        if !mem::replace(&mut self.caught_up, true) {
            say!("partition {} owned", self.number);
        }
        let wait = self.ticks.wait(self.partition.next_check());
        tokio::select! {
            biased;
            () = self.reader.more() => {}
            () = shardwheel::sleep(wait.unwrap_or_default()), if wait.is_some() => {
                self.broker.tick(self.number).await?;
                self.ticks.send();
            }
        }
        Ok(())
    }

    /// Decides messages, and publishes what answers them.
    async fn group(&mut self, inputs: &[Input]) -> Result<(), Failure> {
        let mut lines = String::new();
        for input in inputs {
            self.apply(input, &mut lines)?;
            if lines.len() >= GROUP {
                self.publish(mem::take(&mut lines)).await?;
            }
        }
        self.publish(lines).await?;
        self.snapshot().await
    }

    /// Publishes lines as a result.
    async fn publish(&mut self, lines: String) -> Result<(), Failure> {
        if !lines.is_empty() {
            let Position { input, digest, .. } = self.partition.position;
            let next = LastResult { input, digest, ..self.last };
            self.last = self.broker.publish(self.number, lines, next).await?;
        }
        Ok(())
    }

    fn apply(&mut self, input: &Input, lines: &mut String) -> Result<(), Failure> {
        self.since += 1 + self.partition.apply(input, lines)?;
        self.ticks.received(input.time);
        if input.sequence <= self.last.input {
            lines.clear();
        }
        if input.sequence == self.last.input {
            compare(&self.partition.position, &self.last)?;
        }
        Ok(())
    }

    /// Writes a snapshot if a new owner would have much to read, compared with the size of the
    /// books.
    async fn snapshot(&mut self) -> Result<(), Failure> {
        let size = self.partition.books.pending() + self.partition.memory.len();
        let input = self.partition.position.input;
        // While the owner reads again what is already published, a snapshot would be of no use.
        if self.since >= self.snapshot_every.max(size / 2) && input >= self.last.input {
            self.keeper.save(input, snapshot::encode(&self.partition)).await?;
            self.since = 0;
        }
        Ok(())
    }
}

/// Whether books, the last result and the log fit each other. Otherwise decisions would no longer
/// follow from the log: the partition stands still until a backup is restored.
fn follows(position: &Position, last: &LastResult, log: &State) -> Result<(), Failure> {
    let (input, end) = (position.input, log.last_sequence);
    let begin = if log.messages == 0 { end + 1 } else { log.first_sequence };
    if begin > input + 1 {
        return Err(format!("the log has lost messages {} to {}", input + 1, begin - 1).into());
    }
    if end < input.max(last.input) {
        let known = input.max(last.input);
        return Err(format!("the log ends with message {end}, but those up to {known} were decided").into());
    }
    // Messages without an answer have no result.
    if input >= last.input { compare(position, last) } else { Ok(()) }
}

/// The books up to the last result must be those of the owner that published it.
fn compare(position: &Position, last: &LastResult) -> Result<(), Failure> {
    if last.digest == position.digest {
        return Ok(());
    }
    Err(format!("the decisions up to message {} are not those of the last result", position.input).into())
}

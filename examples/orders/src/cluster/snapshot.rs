//! Snapshots of a partition: their bytes, and where they are in the broker.
//!
//! A snapshot is all that a partition is at one message of its log, in JSON: a number of *parts* in
//! one stream, and a *head* there that names them. The head is replaced only if the last one is
//! still the one that the owner has read or written. So an owner that has lost the partition
//! replaces nothing, and parts that no head names are never read.
//!
//! The log is trimmed up to the snapshot *before* the one just written, and its parts are kept: a
//! reader that still sees the old head finds all that it needs. If a part of the newest snapshot is
//! lost, the partition stands still until a backup is restored.

use serde::{Deserialize, Serialize};

use crate::serve::books::Shop;
use crate::store::{Open, Recovered};

use super::broker::{Broker, Failure};
use super::memory::{Memory, Past};
use super::names;
use super::partition::{Partition, Position};

/// Bytes in a part.
const PART: usize = 512 << 10;

#[derive(Serialize, Deserialize)]
struct Snapshot {
    position: Position,
    /// The number of the last outcome.
    last_seq: u64,
    open: Vec<Open>,
    /// Items and units.
    sold: Vec<(String, u64)>,
    past: Past,
}

/// The snapshot of a partition.
pub(crate) fn encode(partition: &Partition) -> Vec<u8> {
    let Partition { books, memory, position, .. } = partition;
    let (open, sold) = (books.orders().collect(), books.sold().collect());
    let (position, last_seq, past) = (*position, books.last_seq(), memory.past());
    let snapshot = Snapshot { position, last_seq, open, sold, past };
    serde_json::to_vec(&snapshot).expect("numbers and strings")
}

/// A partition from its snapshot.
pub(crate) fn decode(bytes: &[u8], shop: Shop, remember: u64) -> Result<Partition, Failure> {
    let Snapshot { position, last_seq, open, sold, past } = serde_json::from_slice(bytes)?;
    // All checks that were due before the present ms have been made, or are due at once.
    let now = position.millis().saturating_sub(1);
    let memory = Memory::new(
        Recovered { now, last_seq, open, sold, ..Recovered::default() },
        remember,
        shop.check_after,
    );
    memory.restore(past);
    Ok(Partition::restore(shop, memory, position)?)
}

/// Where a snapshot is: what a head names.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Place {
    /// The last message of the log that it includes.
    input: u64,
    /// The numbers of its parts.
    parts: Vec<u64>,
}

/// The snapshots of a partition, as its owner knows them.
pub(crate) struct Keeper {
    broker: Broker,
    partition: u32,
    /// The number of the head; 0 if there is none.
    head: u64,
    /// The snapshot that was read or written last.
    last: Option<Place>,
}

impl Keeper {
    /// Reads which snapshots there are.
    pub(crate) async fn load(broker: Broker, partition: u32) -> Result<Self, Failure> {
        let found = broker.last(names::BOOKS, names::head(partition)).await?;
        let head = found.as_ref().map_or(0, |message| message.sequence);
        let last = found.map(|message| serde_json::from_slice(&message.payload)).transpose()?;
        Ok(Self { broker, partition, head, last })
    }

    /// The partition as the newest snapshot has it, or an empty one if there was never a snapshot.
    pub(crate) async fn restore(&self) -> Result<Partition, Failure> {
        let settings = self.broker.settings;
        let Some(place) = &self.last else {
            return Ok(Partition::new(settings.shop(), settings.remember_ms)?);
        };
        let (stream, mut bytes) = (self.broker.stream(names::BOOKS).await?, Vec::new());
        for &part in &place.parts {
            let part = stream.get_raw_message(part).await;
            let part = part.map_err(|error| format!("a part of the snapshot is not found: {error}"))?;
            bytes.extend(part.payload);
        }
        decode(&bytes, settings.shop(), settings.remember_ms)
    }

    /// Writes a snapshot that includes the log up to message `input`, and trims.
    ///
    /// # Errors
    ///
    /// The newest snapshot is still the old one, or another owner's; or the head may be the new
    /// one.
    pub(crate) async fn save(&mut self, input: u64, bytes: Vec<u8>) -> Result<(), Failure> {
        let (mut parts, bytes) = (Vec::new(), bytes::Bytes::from(bytes));
        for begin in (0..bytes.len()).step_by(PART) {
            let part = bytes.slice(begin..bytes.len().min(begin + PART));
            let ack = self.broker.jetstream.publish(names::parts(self.partition), part).await?.await?;
            parts.push(ack.sequence);
        }
        let newest = Place { input, parts };
        let value = serde_json::to_vec(&newest)?;
        self.head = self.broker.replace(names::head(self.partition), self.head, value).await?;
        match self.last.replace(newest) {
            Some(previous) => self.trim(&previous).await,
            None => Ok(()),
        }
    }

    async fn trim(&self, previous: &Place) -> Result<(), Failure> {
        let books = self.broker.stream(names::BOOKS).await?;
        let first = previous.parts.first().copied().unwrap_or(0);
        // For the broker, "up to number 1" means all of it.
        if first > 1 {
            books.purge().filter(names::parts(self.partition)).sequence(first).await?;
        }
        books.purge().filter(names::head(self.partition)).keep(1).await?;
        let log = self.broker.stream(&names::log(self.partition)).await?;
        log.purge().sequence(previous.input + 1).await?;
        Ok(())
    }
}

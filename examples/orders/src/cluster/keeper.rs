//! Keeps a partition's snapshots in the broker, and trims what they replace.
//!
//! A snapshot is a number of parts in one stream, and a *head* in the bucket that names it. The head
//! is replaced by compare-and-set on the revision that the owner has read or written last. So an
//! owner that has lost the partition replaces nothing, and parts that no head names are never read.
//!
//! The log is trimmed up to the snapshot *before* the one just written, and its parts are kept: a
//! reader that still sees the old head finds all that it needs. If a part of the newest snapshot is
//! lost or damaged, the partition stops until a backup is restored.

use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use serde::{Deserialize, Serialize};

use super::broker::Broker;
use super::failure::Failure;
use super::names;
use super::partition::Partition;
use super::setup::lost;
use super::snapshot;

/// Bytes in a part.
const PART: usize = 512 << 10;

/// Where a snapshot is: what a head names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Place {
    /// The last message of the log that it includes.
    input: u64,
    /// The numbers of its parts in the stream of parts.
    parts: Vec<u64>,
}

/// The snapshots of a partition, as its owner knows them.
pub(crate) struct Keeper {
    broker: Broker,
    partition: u32,
    /// The revision of the head; 0 if there is none.
    revision: u64,
    /// The snapshot that was read or written last.
    last: Option<Place>,
}

impl Keeper {
    /// Reads which snapshots there are.
    pub(crate) async fn load(broker: Broker, partition: u32) -> Result<Self, Failure> {
        let entry = broker.entry(&names::head(partition)).await?;
        let revision = entry.as_ref().map_or(0, |(revision, _)| *revision);
        // A head that cannot be read names a snapshot without parts, which is no snapshot.
        let last = entry.map(|(_, value)| serde_json::from_slice(&value).unwrap_or_default());
        Ok(Self { broker, partition, revision, last })
    }

    /// The partition as the newest snapshot has it, or an empty one if there was never a snapshot.
    ///
    /// # Errors
    ///
    /// That the snapshot is not whole is permanent.
    pub(crate) async fn restore(&self) -> Result<Partition, Failure> {
        let settings = self.broker.settings;
        let Some(place) = &self.last else {
            return Ok(Partition::new(settings.shop(), settings.remember_ms)?);
        };
        let bytes = self.read(place).await?;
        let decoded = bytes.and_then(|bytes| snapshot::decode(&bytes, settings.shop(), settings.remember_ms));
        let input = place.input;
        decoded.ok_or_else(|| lost(&format!("the snapshot up to message {input} is damaged or lacks a part")))
    }

    /// The bytes of a snapshot, if all its parts are there.
    async fn read(&self, place: &Place) -> Result<Option<Vec<u8>>, Failure> {
        let (stream, mut bytes) = (self.broker.stream(names::BOOKS).await?, Vec::new());
        for &part in &place.parts {
            match stream.get_raw_message(part).await {
                Ok(part) => bytes.extend(part.payload),
                Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(bytes))
    }

    /// Writes a snapshot that includes the log up to message `input`, and trims.
    ///
    /// # Errors
    ///
    /// The newest snapshot is still the old one, or another owner's; or the head may be the new one.
    pub(crate) async fn save(mut self, input: u64, bytes: Vec<u8>) -> Result<Self, Failure> {
        let (mut parts, bytes) = (Vec::new(), bytes::Bytes::from(bytes));
        for begin in (0..bytes.len()).step_by(PART) {
            let part = bytes.slice(begin..bytes.len().min(begin + PART));
            let ack = self.broker.jetstream.publish(names::parts(self.partition), part).await?.await?;
            parts.push(ack.sequence);
        }
        let newest = Place { input, parts };
        let value = serde_json::to_vec(&newest)?.into();
        self.revision = self.broker.bucket.update(names::head(self.partition), value, self.revision).await?;
        let previous = self.last.replace(newest);
        if let Some(previous) = previous {
            self.trim(&previous).await?;
        }
        Ok(self)
    }

    async fn trim(&self, previous: &Place) -> Result<(), Failure> {
        let books = self.broker.stream(names::BOOKS).await?;
        let first = previous.parts.first().copied().unwrap_or(0);
        // For the broker, "up to number 1" means all of it.
        if first > 1 {
            books.purge().filter(names::parts(self.partition)).sequence(first).await?;
        }
        let log: Stream<()> = self.broker.stream(&names::log(self.partition)).await?;
        log.purge().sequence(previous.input + 1).await?;
        Ok(())
    }
}

//! Keeps a partition's snapshots in the broker, and trims what they replace.
//!
//! A snapshot is a number of parts in one stream, and a *head* in the bucket that names it. The head
//! is replaced by compare-and-set on the revision that the owner has read or written last. So an
//! owner that has lost the partition replaces nothing, and parts that no head names are never read.
//!
//! The log is trimmed up to the snapshot *before* the one just written, and its parts are kept. A
//! reader that still sees the old head finds all that it needs; and if a part of the newest snapshot is
//! lost or damaged, an owner begins with the one before, and loses nothing.

use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use serde::{Deserialize, Serialize};

use super::broker::Broker;
use super::failure::Failure;
use super::names;
use super::partition::{Partition, Position};
use super::setup::RESTORE;
use super::snapshot;

/// Bytes in a part, if the broker takes so many.
const PART: usize = 512 << 10;

/// Where a snapshot is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Place {
    /// The last message of the log that it includes.
    input: u64,
    /// The numbers of its parts in the stream of parts.
    parts: Vec<u64>,
}

/// Names the newest snapshot of a partition, and the one before.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Head {
    #[serde(flatten)]
    newest: Place,
    previous: Option<Place>,
}

impl Head {
    /// A head that cannot be read names a snapshot without parts, which is no snapshot.
    fn of(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }
}

/// The snapshots of a partition, as its owner knows them.
pub(crate) struct Keeper {
    broker: Broker,
    partition: u32,
    /// The log is never trimmed.
    keep_log: bool,
    /// The revision of the head; 0 if there is none.
    revision: u64,
    head: Option<Head>,
    /// The snapshot that was read or written last.
    last: Option<Place>,
}

impl Keeper {
    /// Reads which snapshots there are.
    pub(crate) async fn load(broker: Broker, partition: u32, keep_log: bool) -> Result<Self, Failure> {
        let entry = broker.entry(&names::head(partition)).await?;
        let revision = entry.as_ref().map_or(0, |(revision, _)| *revision);
        let head = entry.map(|(_, value)| Head::of(&value));
        Ok(Self { broker, partition, keep_log, revision, head, last: None })
    }

    /// The partition as the newest whole snapshot has it that `fits`, or an empty one if there was never a
    /// snapshot.
    ///
    /// # Errors
    ///
    /// That no snapshot is whole is permanent, as is why the newest whole one does not fit.
    pub(crate) async fn restore(
        &mut self,
        fits: impl Fn(&Position) -> Result<(), Failure>,
    ) -> Result<Partition, Failure> {
        let settings = self.broker.settings;
        let Some(head) = &self.head else {
            return Ok(Partition::new(settings.shop(), settings.remember_ms)?);
        };
        let (places, mut misfit) = ([Some(head.newest.clone()), head.previous.clone()], None);
        for place in places.into_iter().flatten() {
            let bytes = self.read(&place).await?;
            let decoded = bytes.map(|bytes| snapshot::decode(&bytes, settings.shop(), settings.remember_ms));
            if let Some(Ok(partition)) = decoded {
                let Err(failure) = fits(&partition.position) else {
                    self.last = Some(place);
                    return Ok(partition);
                };
                misfit.get_or_insert(failure);
                continue;
            }
            let (number, input) = (self.partition, place.input);
            say!("partition {number}: the snapshot up to message {input} is damaged or lacks a part");
        }
        Err(misfit.unwrap_or_else(|| Failure::permanent(format!("no snapshot is whole; {RESTORE}"))))
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
        let size = PART.min(self.broker.max_payload());
        for begin in (0..bytes.len()).step_by(size) {
            let part = bytes.slice(begin..bytes.len().min(begin + size));
            let ack = self.broker.jetstream.publish(names::parts(self.partition), part).await?.await?;
            parts.push(ack.sequence);
        }
        let (newest, previous) = (Place { input, parts }, self.last.take());
        let head = Head { newest: newest.clone(), previous: previous.clone() };
        let value = serde_json::to_vec(&head)?.into();
        self.revision = self.broker.bucket.update(names::head(self.partition), value, self.revision).await?;
        (self.head, self.last) = (Some(head), Some(newest));
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
        if !self.keep_log {
            let log: Stream<()> = self.broker.stream(&names::log(self.partition)).await?;
            log.purge().sequence(previous.input + 1).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_head_names_no_snapshot() {
        assert!(Head::of(b"\xff").newest.parts.is_empty());
        let head = Head { newest: Place { input: 9, parts: vec![5] }, previous: Some(Place::default()) };
        assert!(Head::of(&serde_json::to_vec(&head).unwrap()).previous.is_some());
    }
}

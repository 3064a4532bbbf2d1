//! Keeps a partition's snapshots in the broker, and trims what they replace.
//!
//! A snapshot is a number of parts in one stream, and a *head* in the bucket that names it. The head
//! is replaced by compare-and-set on the revision that the owner has read or written last. So an
//! owner that has lost the partition replaces nothing, and parts that no head names are never read.
//!
//! The log is trimmed up to the snapshot *before* the one just written, and its parts are kept. A
//! reader that still sees the old head finds all that it needs.

use async_nats::jetstream::stream::Stream;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};

use super::broker::{Broker, Failure};
use super::names;

/// Bytes in a part.
const PART: usize = 512 << 10;

/// Names the newest snapshot of a partition.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Head {
    /// The last message of the log that it includes.
    input: u64,
    /// The numbers of its parts in the stream of parts.
    parts: Vec<u64>,
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
}

impl Keeper {
    /// Reads the newest snapshot, if there is one.
    pub(crate) async fn load(
        broker: Broker,
        partition: u32,
        keep_log: bool,
    ) -> Result<(Self, Option<Vec<u8>>), Failure> {
        let entry = broker.bucket.entry(names::head(partition)).await?;
        let revision = entry.as_ref().map_or(0, |entry| entry.revision);
        let head = entry.map(|entry| serde_json::from_slice::<Head>(&entry.value)).transpose()?;
        let keeper = Self { broker, partition, keep_log, revision, head };
        let bytes = match &keeper.head {
            Some(head) => Some(keeper.read(head).await?),
            None => None,
        };
        Ok((keeper, bytes))
    }

    async fn read(&self, head: &Head) -> Result<Vec<u8>, Failure> {
        let stream = &self.broker.stream(names::BOOKS).await?;
        let parts = try_join_all(head.parts.iter().map(|&part| stream.get_raw_message(part))).await?;
        Ok(parts.iter().flat_map(|part| part.payload.iter().copied()).collect())
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
        let head = Head { input, parts };
        let value = serde_json::to_vec(&head)?.into();
        self.revision = self.broker.bucket.update(names::head(self.partition), value, self.revision).await?;
        if let Some(previous) = self.head.replace(head) {
            self.trim(&previous).await?;
        }
        Ok(self)
    }

    async fn trim(&self, previous: &Head) -> Result<(), Failure> {
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

//! Reads a stream from one message on, in order and without gaps, across all that happens to servers
//! and connections: a consumer that falls silent is replaced by one that goes on behind the last
//! message.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures_util::{FutureExt, StreamExt};
use tokio::task::JoinHandle;

use super::broker::{Broker, Failure};

/// Messages that are on their way, at most.
const BATCH: usize = 256;
/// Bytes that are on their way, at most.
const BYTES: usize = 4 << 20;
/// A consumer says at least this often that it is there.
const HEARTBEAT: Duration = Duration::from_millis(750);
/// How long one request for messages stands.
const EXPIRES: Duration = Duration::from_secs(10);
/// After which time the broker forgets a consumer that nobody reads.
const INACTIVE: Duration = Duration::from_secs(10);
/// The pause after an error.
const PAUSE: Duration = Duration::from_millis(50);

/// A message of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) sequence: u64,
    /// When the broker took it in, in ns since 1970.
    pub(crate) time: u64,
    pub(crate) subject: String,
    pub(crate) payload: bytes::Bytes,
}

/// The next message is not the one that was expected: it was trimmed.
#[derive(Debug)]
pub(crate) struct Gap {
    expected: u64,
    found: u64,
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "message {} is gone; the next one is {}", self.expected, self.found)
    }
}

impl std::error::Error for Gap {}

pub(crate) struct Reader {
    broker: Broker,
    stream: String,
    next: u64,
    messages: Option<pull::Stream>,
    /// A consumer that is being made. It goes on when a caller drops its future: a caller with little
    /// patience would otherwise never get one.
    opening: Option<JoinHandle<Result<pull::Stream, Failure>>>,
}

impl Reader {
    /// A reader that begins with message number `next`.
    pub(crate) fn new(broker: Broker, stream: String, next: u64) -> Self {
        Self { broker, stream, next, messages: None, opening: None }
    }

    /// Waits for the next message. A caller that drops the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Input, Gap> {
        loop {
            let Some(messages) = &mut self.messages else {
                self.messages = self.open().await;
                continue;
            };
            let result = messages.next().await;
            match result.and_then(Result::ok).as_ref().and_then(input) {
                // The broker may send a message twice.
                Some(input) if input.sequence < self.next => {}
                Some(input) => return self.take(input),
                None => {
                    self.messages = None;
                    shardwheel::sleep(PAUSE).await;
                }
            }
        }
    }

    /// The next message, if it is here already.
    pub(crate) fn ready(&mut self) -> Option<Result<Input, Gap>> {
        let message = self.messages.as_mut()?.next().now_or_never()??.ok();
        let input = message.as_ref().and_then(input);
        if input.is_none() {
            self.messages = None;
        }
        input.filter(|input| input.sequence >= self.next).map(|input| self.take(input))
    }

    fn take(&mut self, input: Input) -> Result<Input, Gap> {
        if input.sequence != self.next {
            return Err(Gap { expected: self.next, found: input.sequence });
        }
        self.next += 1;
        Ok(input)
    }

    /// Makes a consumer; `None` after a pause if that fails.
    async fn open(&mut self) -> Option<pull::Stream> {
        let (broker, stream, next) = (&self.broker, &self.stream, self.next);
        let opening =
            self.opening.get_or_insert_with(|| tokio::spawn(open(broker.clone(), stream.clone(), next)));
        let opened = opening.await;
        self.opening = None;
        let messages = opened.ok().and_then(Result::ok);
        if messages.is_none() {
            shardwheel::sleep(PAUSE).await;
        }
        messages
    }
}

async fn open(broker: Broker, stream: String, next: u64) -> Result<pull::Stream, Failure> {
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next },
        ack_policy: AckPolicy::None,
        inactive_threshold: INACTIVE,
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    };
    let consumer = broker.stream(&stream).await?.create_consumer(config).await?;
    let stream = consumer.stream().max_messages_per_batch(BATCH).max_bytes_per_batch(BYTES);
    Ok(stream.heartbeat(HEARTBEAT).expires(EXPIRES).messages().await?)
}

fn input(message: &async_nats::jetstream::Message) -> Option<Input> {
    let info = message.info().ok()?;
    Some(Input {
        sequence: info.stream_sequence,
        time: u64::try_from(info.published.unix_timestamp_nanos()).ok()?,
        subject: message.subject.to_string(),
        payload: message.payload.clone(),
    })
}

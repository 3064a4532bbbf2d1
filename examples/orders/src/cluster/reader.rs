//! Reads a stream from one message on, in order and without gaps, across all that happens to
//! servers and connections.
//!
//! The reader *asks* the stream's leader for messages by their numbers until there is no next one.
//! From there on a consumer delivers what comes, in less than half of the time. The broker sends
//! each message once, and does not know whether it arrives: a connection that breaks, and a server
//! that dies, lose what is on its way, and a consumer may end or hang. So the reader takes only the
//! next message from it. After a gap it asks again, with a new consumer to follow; and after a while
//! in which nothing has come it asks whether that is true. An answer that does not come is a
//! failure, and the message is asked for again.

use std::pin::Pin;
use std::time::{Duration, Instant};

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use futures_util::future::try_join_all;
use futures_util::stream::Peekable;
use futures_util::{FutureExt, StreamExt};

use super::broker::{Broker, Failure};

/// Messages that are asked for at once, at most.
const WIDEST: u64 = 32;
/// Messages that the consumer delivers before the reader has taken any, and their bytes.
const DELIVERED: usize = 256;
const BYTES: usize = 4 << 20;
/// After so long without a message the leader is asked whether there is one.
const QUIET: Duration = Duration::from_millis(500);
/// The time after which the broker forgets a consumer that is not read.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// After so many answers in a row that there is no next message the leader is asked for its last one.
const MISSES: u32 = 10;

/// A message of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) sequence: u64,
    /// When the broker took it in, in ns since 1970.
    pub(crate) time: u64,
    pub(crate) subject: String,
    pub(crate) payload: bytes::Bytes,
}

pub(crate) struct Reader {
    name: String,
    stream: Stream<()>,
    /// `None` while the leader is asked.
    consumer: Option<Pin<Box<Peekable<pull::Stream>>>>,
    next: u64,
    /// When a message came last, or the leader answered that there is none.
    heard: Instant,
    /// How many messages are asked for at once.
    width: u64,
    /// How often in a row the next message was not there.
    misses: u32,
}

impl Reader {
    /// A reader that begins with message number `next`.
    pub(crate) async fn new(broker: &Broker, name: String, next: u64) -> Result<Self, Failure> {
        let stream = broker.stream(&name).await?;
        Ok(Self { name, stream, consumer: None, next, heard: Instant::now(), width: 1, misses: 0 })
    }

    /// The next messages, as far as they are known; none if the leader has none, or nothing has come
    /// since the last call.
    ///
    /// # Errors
    ///
    /// The leader does not answer, or a message is gone. The reader is where it was.
    pub(crate) async fn read(&mut self) -> Result<Vec<Input>, Failure> {
        let delivered = self.take_delivered();
        if !delivered.is_empty() {
            (self.heard, self.misses) = (Instant::now(), 0);
            return Ok(delivered);
        }
        if self.consumer.is_some() && self.heard.elapsed() < QUIET {
            return Ok(Vec::new());
        }
        let found = self.ask().await?;
        if !found.is_empty() {
            // If there is one, it hangs, or was about to deliver these.
            self.consumer = None;
        } else if self.consumer.is_none() {
            self.consumer = Some(Box::pin(consume(&self.stream, self.next).await?.peekable()));
        }
        self.heard = Instant::now();
        Ok(found)
    }

    /// Waits until there may be more. A caller may drop the future.
    pub(crate) async fn more(&mut self) {
        let Some(consumer) = &mut self.consumer else { return };
        tokio::select! {
            _ = consumer.as_mut().peek() => {}
            () = shardwheel::sleep(QUIET.saturating_sub(self.heard.elapsed())) => {}
        }
    }

    /// What the consumer has delivered, up to a gap.
    fn take_delivered(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        while inputs.len() < DELIVERED
            && let Some(consumer) = &mut self.consumer
            && let Some(delivered) = consumer.next().now_or_never()
        {
            match delivered.and_then(Result::ok).as_ref().and_then(Input::delivered) {
                // It was asked for.
                Some(input) if input.sequence < self.next => {}
                Some(input) if input.sequence == self.next => {
                    self.next += 1;
                    inputs.push(input);
                }
                _ => self.consumer = None,
            }
        }
        inputs
    }

    /// The next messages, as far as the leader has them now.
    async fn ask(&mut self) -> Result<Vec<Input>, Failure> {
        // Asked before the message itself, so that one which comes meanwhile is not taken for lost.
        let last = if self.misses >= MISSES { self.stream.get_info().await?.state.last_sequence } else { 0 };
        let numbers = self.next..self.next + self.width;
        let found = try_join_all(numbers.map(|number| message(&self.stream, number))).await?;
        let inputs = found.into_iter().map_while(|input| input).collect::<Vec<_>>();
        if inputs.is_empty() && self.next <= last {
            return Err(format!("{}: message {} is gone", self.name, self.next).into());
        }
        self.misses = if inputs.is_empty() { self.misses.saturating_add(1) } else { 0 };
        self.next += inputs.len() as u64;
        self.width = (2 * inputs.len() as u64).clamp(1, WIDEST);
        Ok(inputs)
    }
}

/// Makes a consumer, which the broker forgets when it is not read any more.
async fn consume(stream: &Stream<()>, next: u64) -> Result<pull::Stream, Failure> {
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next },
        ack_policy: AckPolicy::None,
        inactive_threshold: FORGOTTEN,
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await?;
    let messages = consumer.stream().max_messages_per_batch(DELIVERED).max_bytes_per_batch(BYTES);
    Ok(messages.messages().await?)
}

async fn message(stream: &Stream<()>, number: u64) -> Result<Option<Input>, Failure> {
    match stream.get_raw_message(number).await {
        Ok(message) => Ok(Some(Input::of(message)?)),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Input {
    fn of(message: StreamMessage) -> Result<Self, Failure> {
        let time = u64::try_from(message.time.unix_timestamp_nanos())?;
        let StreamMessage { sequence, subject, payload, .. } = message;
        Ok(Self { sequence, time, subject: subject.to_string(), payload })
    }

    fn delivered(message: &Message) -> Option<Self> {
        let info = message.info().ok()?;
        let time = u64::try_from(info.published.unix_timestamp_nanos()).ok()?;
        let (subject, payload) = (message.subject.to_string(), message.payload.clone());
        Some(Self { sequence: info.stream_sequence, time, subject, payload })
    }
}

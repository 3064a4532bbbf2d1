//! Reads a stream from one message on, in order and without gaps, across all that happens to servers
//! and connections.
//!
//! The broker sends each message once, and does not know whether it arrived: a connection that breaks,
//! and a server that dies, lose what is on its way. The client then goes on with the same consumer, and
//! the next message that arrives is not the next one of the stream. Two things are found out here:
//!
//! - *A message is missing between two.* The stream's leader is asked for it by its number. Only a
//!   message that the leader does not have either is a [`Gap`].
//! - *The last message is missing, or the consumer hangs.* Heartbeats come all the same. So a reader that
//!   has got nothing for [`QUIET`] asks the leader for the number of its last message.
//!
//! A consumer that falls silent, or is found to be behind, is replaced by a new one that goes on after the
//! last message read.

use std::cmp::Ordering;
use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{ConsumerErrorKind, RawMessageErrorKind};
use futures_util::{FutureExt, StreamExt};
use shardwheel::global::Sleep;
use tokio::task::JoinHandle;

use super::broker::Broker;
use super::failure::Failure;

/// Messages that are on their way, at most.
const BATCH: usize = 256;
/// Bytes that are on their way, at most.
const BYTES: usize = 4 << 20;
/// A consumer says at least this often that it is there.
const HEARTBEAT: Duration = Duration::from_millis(750);
/// How long one request for messages stands.
const EXPIRES: Duration = Duration::from_secs(10);
/// The time after which the broker forgets a consumer that is not read.
const INACTIVE: Duration = Duration::from_secs(10);
/// The pause after an error.
const PAUSE: Duration = Duration::from_millis(50);
/// After so long without a message the leader is asked whether there is one.
pub(crate) const QUIET: Duration = Duration::from_secs(5);

/// A message of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) sequence: u64,
    /// When the broker took it in, in ns since 1970.
    pub(crate) time: u64,
    pub(crate) subject: String,
    pub(crate) payload: bytes::Bytes,
}

/// The stream does not have the next message any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    Message(u64),
    /// There is no stream.
    Stream(String),
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Message(number) => write!(f, "message {number} is gone"),
            Self::Stream(name) => write!(f, "the stream {name} is missing"),
        }
    }
}

impl std::error::Error for Gap {}

/// What happens to a reader.
enum Event {
    Message(Input),
    Consumer(Box<pull::Stream>),
    /// The stream does not have the message that was missing.
    Gone,
    /// There is no stream.
    Missing,
    /// The number of the stream's last message.
    Last(u64),
    Broken,
}

/// A request that goes on when the caller drops its future. Otherwise a caller that waits only a short time
/// would never get an answer.
type Request<T> = Option<JoinHandle<Result<T, Failure>>>;

/// What the leader is asked before a consumer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    Nothing,
    /// Whether it has the next message: the last messages may have been deleted.
    IsThere,
    /// The next message: a later one came instead.
    Fetch,
}

pub(crate) struct Reader {
    broker: Broker,
    stream: String,
    next: u64,
    messages: Option<Box<pull::Stream>>,
    opening: Request<Event>,
    /// The last attempt to make a consumer failed.
    failed: bool,
    search: Search,
    /// The stream has a message of this number, or had one.
    known: u64,
    asking: Request<u64>,
    /// Ends [`QUIET`] after the last message, or the last word of the leader.
    quiet: Sleep,
}

impl Reader {
    /// A reader that begins with message number `next`.
    pub(crate) fn new(broker: Broker, stream: String, next: u64) -> Self {
        let (messages, opening, failed, search) = (None, None, false, Search::Nothing);
        Self {
            broker,
            stream,
            next,
            messages,
            opening,
            failed,
            search,
            known: 0,
            asking: None,
            quiet: shardwheel::sleep(QUIET),
        }
    }

    /// Waits for the next message. `None`: the stream's leader says that there is none. A caller that drops
    /// the future loses nothing. After a message that is gone the reader goes on behind it.
    pub(crate) async fn next(&mut self) -> Result<Option<Input>, Gap> {
        loop {
            match self.event().await {
                Event::Message(input) => {
                    if let Some(input) = self.take(input) {
                        return Ok(Some(input));
                    }
                }
                Event::Consumer(messages) => self.messages = Some(messages),
                Event::Gone => return Err(self.skip()),
                Event::Missing => return Err(Gap::Stream(self.stream.clone())),
                Event::Last(last) if last < self.next => return Ok(None),
                Event::Last(last) => {
                    self.search = Search::IsThere;
                    self.replace(last);
                }
                Event::Broken => {
                    self.messages = None;
                    shardwheel::sleep(PAUSE).await;
                }
            }
        }
    }

    /// The next message, if it is here already.
    pub(crate) fn ready(&mut self) -> Option<Input> {
        match event(self.messages.as_mut()?.next().now_or_never()?) {
            Event::Message(input) => self.take(input),
            _ => {
                self.messages = None;
                None
            }
        }
    }

    fn take(&mut self, input: Input) -> Option<Input> {
        // What the leader has said before is old.
        self.asking = None;
        self.quiet.reset_after(QUIET);
        match input.sequence.cmp(&self.next) {
            // The broker may send a message twice.
            Ordering::Less => None,
            Ordering::Equal => {
                (self.next, self.search) = (self.next + 1, Search::Nothing);
                Some(input)
            }
            Ordering::Greater => {
                self.search = Search::Fetch;
                self.replace(input.sequence);
                None
            }
        }
    }

    /// Others that follow it may be gone as well.
    fn skip(&mut self) -> Gap {
        let gap = Gap::Message(self.next);
        self.next += 1;
        self.search = if self.next <= self.known { Search::IsThere } else { Search::Nothing };
        gap
    }

    fn replace(&mut self, found: u64) {
        self.known = found;
        let Self { stream, next, .. } = self;
        say!("{stream}: message {next} did not come, but there is message {found}; reading it again");
        self.messages = None;
    }

    async fn event(&mut self) -> Event {
        let Self { messages: Some(messages), asking, broker, stream, quiet, .. } = self else {
            return self.open().await;
        };
        let last = async {
            (&mut *quiet).await;
            asking.get_or_insert_with(|| tokio::spawn(last(broker.clone(), stream.clone()))).await
        };
        let last = tokio::select! {
            biased;
            message = messages.next() => return event(message),
            last = last => last,
        };
        *asking = None;
        quiet.reset_after(QUIET);
        last.ok().and_then(Result::ok).map_or(Event::Broken, Event::Last)
    }

    /// Asks the leader for the missing message, or makes a consumer.
    async fn open(&mut self) -> Event {
        let (broker, stream, next, search) = (&self.broker, &self.stream, self.next, self.search);
        let request = || tokio::spawn(open(broker.clone(), stream.clone(), next, search));
        let opened = self.opening.get_or_insert_with(request).await;
        self.opening = None;
        let opened = opened.unwrap_or_else(|panic| Err(panic.into()));
        let failed = std::mem::replace(&mut self.failed, opened.is_err());
        opened.unwrap_or_else(|failure| {
            if !failed {
                say!("{}: no consumer: {failure}; trying again", self.stream);
            }
            Event::Broken
        })
    }
}

async fn open(broker: Broker, stream: String, next: u64, search: Search) -> Result<Event, Failure> {
    let stream = broker.stream(&stream).await?;
    if search != Search::Nothing {
        match stream.get_raw_message(next).await {
            Ok(_) if search == Search::IsThere => {}
            Ok(message) => return found(message).ok_or_else(no_time),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => return Ok(Event::Gone),
            Err(error) => return Err(error.into()),
        }
    }
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next },
        ack_policy: AckPolicy::None,
        inactive_threshold: INACTIVE,
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    };
    let consumer = match stream.create_consumer(config).await {
        Ok(consumer) => consumer,
        Err(error) => match error.kind() {
            ConsumerErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                return Ok(Event::Missing);
            }
            _ => return Err(error.into()),
        },
    };
    let messages = consumer.stream().max_messages_per_batch(BATCH).max_bytes_per_batch(BYTES);
    let messages = messages.heartbeat(HEARTBEAT).expires(EXPIRES).messages().await?;
    Ok(Event::Consumer(Box::new(messages)))
}

async fn last(broker: Broker, stream: String) -> Result<u64, Failure> {
    Ok(broker.stream(&stream).await?.get_info().await?.state.last_sequence)
}

fn event(message: Option<Result<async_nats::jetstream::Message, pull::MessagesError>>) -> Event {
    message.and_then(Result::ok).as_ref().and_then(delivered).map_or(Event::Broken, Event::Message)
}

fn delivered(message: &async_nats::jetstream::Message) -> Option<Input> {
    let info = message.info().ok()?;
    let time = u64::try_from(info.published.unix_timestamp_nanos()).ok()?;
    let (subject, payload) = (message.subject.to_string(), message.payload.clone());
    Some(Input { sequence: info.stream_sequence, time, subject, payload })
}

fn found(message: StreamMessage) -> Option<Event> {
    Input::of(message).map(Event::Message)
}

fn no_time() -> Failure {
    Failure::permanent("a message has a time before 1970")
}

impl Input {
    pub(crate) fn of(message: StreamMessage) -> Option<Self> {
        let time = u64::try_from(message.time.unix_timestamp_nanos()).ok()?;
        let StreamMessage { sequence, subject, payload, .. } = message;
        Some(Self { sequence, time, subject: subject.to_string(), payload })
    }
}

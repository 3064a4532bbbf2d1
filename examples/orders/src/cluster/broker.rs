//! The broker: its connection, and the requests of workers and clients.

use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, RawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, ContextBuilder, kv};
use async_nats::{Client, ConnectOptions, HeaderMap, ServerAddr};
use bytes::Bytes;
use percent_encoding::percent_decode_str;

use super::failure::{Failure, Patience};
use super::names::{self, Kind};
use super::setup::{Settings, lost};

/// How long a request may take. The election of a stream's new leader may take longer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A server that does not answer for three of these is left for another.
const PING: Duration = Duration::from_secs(1);
/// How long a server may take to accept a connection.
const ACCEPT: Duration = Duration::from_secs(2);
/// The longest pause between two attempts to connect.
const RECONNECT: Duration = Duration::from_secs(1);
/// How long one attempt to connect to the servers may take.
const CONNECT: Duration = Duration::from_secs(10);

/// In a result: the last message of the log that it and those before it answer, and the digest of
/// all lines so far.
const INPUT: &str = "Shop-Input";
const DIGEST: &str = "Shop-Digest";
/// The headers that name the last result; the broker takes a new one only right after that. Servers of
/// 2.9 look at the first header before they replicate a message, and not again: if two messages come at
/// once, they take both. They look at the second header when they store the message.
const EXPECTED: [&str; 2] = ["Nats-Expected-Last-Subject-Sequence", "Nats-Expected-Last-Sequence"];

/// Bytes of a message that are left for its headers.
const HEADERS: usize = 1 << 10;

/// The last result of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastResult {
    /// Its number in the stream; 0 if there is none.
    pub(crate) sequence: u64,
    pub(crate) input: u64,
    /// The digest of all lines that are published.
    pub(crate) digest: u64,
}

impl LastResult {
    /// Reads the headers of a result of a partition.
    fn of(partition: u32, message: &StreamMessage) -> Result<Self, Failure> {
        let number = |name| message.headers.get(name).and_then(|value| value.as_str().parse::<u64>().ok());
        let (input, digest) = number(INPUT).zip(number(DIGEST)).ok_or_else(|| {
            let (stream, number) = (names::results(partition), message.sequence);
            lost(&format!(
                "message {number} of {stream} lacks its headers, so no worker has written it: keep other clients \
                 off `results.>`"
            ))
        })?;
        Ok(Self { sequence: message.sequence, input, digest })
    }
}

/// A connection, with all that the shop has there.
#[derive(Clone)]
pub(crate) struct Broker {
    pub(crate) jetstream: Context,
    pub(crate) bucket: kv::Store,
    pub(crate) settings: Settings,
}

/// Connects to one of several servers, which are separated by commas. The first user that an address names
/// is that for all of them.
pub(crate) async fn connect(urls: &str, name: &str, patience: &Patience) -> Result<Client, Failure> {
    let servers = urls.split(',').map(str::parse::<ServerAddr>).collect::<Result<Vec<_>, _>>();
    let servers = servers.map_err(|error| Failure::permanent(format!("{urls}: {error}")))?;
    // Without the password.
    let shown =
        servers.iter().map(|server| format!("{}://{}:{}", server.scheme(), server.host(), server.port()));
    let shown = shown.collect::<Vec<_>>().join(",");
    let user = servers.iter().find_map(|server| Some((server.username()?, server.password()?)));
    let options = || {
        user.map_or_else(ConnectOptions::new, |(user, password)| {
            ConnectOptions::with_user_and_password(decoded(user), decoded(password))
        })
        .name(name)
        .ping_interval(PING)
        .connection_timeout(ACCEPT)
        .request_timeout(Some(TIMEOUT))
        .reconnect_delay_callback(|attempts| RECONNECT.min(Duration::from_millis(20 * attempts as u64)))
        .max_reconnects(None)
    };
    let connect = || async {
        let connected = options().connect(&servers).await;
        connected.map_err(|error| Failure::temporary(format!("{shown}: {error}")))
    };
    patience.insist(CONNECT, connect).await
}

/// A part of an address, with its `%` escapes replaced.
fn decoded(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

impl Broker {
    /// The largest payload of a message, in bytes.
    pub(crate) fn max_payload(&self) -> usize {
        self.jetstream.client().server_info().max_payload.saturating_sub(HEADERS)
    }

    pub(crate) async fn stream(&self, name: &str) -> Result<Stream<()>, Failure> {
        Ok(self.jetstream.get_stream_no_info(name).await?)
    }

    /// Adds a tick to a partition's log, and does not wait for an answer: the owner sends a lost tick
    /// again.
    pub(crate) async fn tick(&self, partition: u32, nonce: u64) -> Result<(), Failure> {
        let subject = names::log_subject(partition, Kind::Tick);
        Ok(self.jetstream.client().publish(subject, nonce.to_le_bytes().to_vec().into()).await?)
    }

    /// An entry of the bucket and its revision, by the word of the bucket's leader. The bucket's
    /// own call asks any replica if the stream allows direct reads, as one does that `nats kv add`
    /// made; and a replica may lag.
    pub(crate) async fn entry(&self, key: &str) -> Result<Option<(u64, Bytes)>, Failure> {
        let subject = format!("{}{key}", self.bucket.prefix);
        match self.bucket.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok(Some((message.sequence, message.payload))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The last result, by the word of the stream's leader.
    pub(crate) async fn last_result(&self, partition: u32) -> Result<LastResult, Failure> {
        let name = names::results(partition);
        let number = self.state(&name).await?.last_sequence;
        if number == 0 {
            return Ok(LastResult { sequence: 0, input: 0, digest: names::DIGEST });
        }
        match self.stream(&name).await?.get_raw_message(number).await {
            Ok(message) => LastResult::of(partition, &message),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => {
                Err(lost(&format!("the last result, message {number} of {name}, is gone")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The last result, as soon as the stream's leader answers.
    pub(crate) async fn insist_on_last_result(
        &self,
        partition: u32,
        patience: &Patience,
    ) -> Result<LastResult, Failure> {
        patience.insist(TIMEOUT, || self.last_result(partition)).await
    }

    /// Publishes lines as the result `next`, if the last one is still the one that the caller knows.
    ///
    /// # Errors
    ///
    /// Another owner was first, or it is not known whether the result stands.
    pub(crate) async fn publish(
        &self,
        partition: u32,
        lines: String,
        next: LastResult,
    ) -> Result<LastResult, Failure> {
        let mut headers = HeaderMap::new();
        EXPECTED.iter().for_each(|&name| headers.insert(name, next.sequence.to_string()));
        headers.insert(INPUT, next.input.to_string());
        headers.insert(DIGEST, next.digest.to_string());
        let subject = names::results_subject(partition);
        let ack = self.jetstream.publish_with_headers(subject, headers, lines.into()).await?.await?;
        Ok(LastResult { sequence: ack.sequence, ..next })
    }
}

pub(crate) fn context(client: Client) -> Context {
    ContextBuilder::new().timeout(TIMEOUT).backpressure_on_inflight(true).build(client)
}

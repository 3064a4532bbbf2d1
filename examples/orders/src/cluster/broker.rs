//! The broker: its connection, and the requests of workers and clients.

use std::time::Duration;

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, RawMessageErrorKind, State, Stream};
use async_nats::jetstream::{Context, ContextBuilder, kv};
use async_nats::{Client, ConnectOptions, HeaderMap, ServerAddr};
use bytes::Bytes;
use percent_encoding::percent_decode_str;

use super::failure::{Failure, Patience};
use super::names::{self, Kind};
use super::setup::Settings;

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

/// In a result: the last message of the log that it and those before it answer; the digest of all lines so
/// far; and how many bytes of lines that answer later messages have been published already.
const INPUT: &str = "Shop-Input";
const DIGEST: &str = "Shop-Digest";
const AHEAD: &str = "Shop-Ahead";
/// The headers that name the last result; the broker takes a new one only right after that. Servers of
/// 2.9 look at the first header before they replicate a message, and not again: if two messages come at
/// once, they take both. They look at the second header when they store the message. The first one has the
/// number that the broker answers to a request for the last message of the subject, 0 if it finds none; the
/// second one the last number that the stream has given. These two differ if messages were deleted or purged
/// at the end. Servers of 2.9 find no last message then, though others are there.
const EXPECTED: [&str; 2] = ["Nats-Expected-Last-Subject-Sequence", "Nats-Expected-Last-Sequence"];

/// Bytes that are kept of a message that cannot be decided, at most.
const ASIDE: usize = 64 << 10;
/// Bytes of a message that are left for its headers.
const HEADERS: usize = 1 << 10;

/// The last result of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastResult {
    /// What the first of the headers [`EXPECTED`] has for the next result, and the second one.
    pub(crate) of_subject: u64,
    pub(crate) sequence: u64,
    pub(crate) input: u64,
    /// The digest of all lines that are published.
    pub(crate) digest: u64,
    /// Bytes of lines that are published and answer later messages than `input`. A message may have more
    /// answers than one result can hold.
    pub(crate) ahead: usize,
}

impl LastResult {
    /// There is no result in a stream.
    fn none(sequence: u64) -> Self {
        Self { of_subject: 0, sequence, input: 0, digest: names::DIGEST, ahead: 0 }
    }

    /// Nothing is answered.
    pub(crate) fn is_none(&self) -> bool {
        (self.input, self.digest, self.ahead) == (0, names::DIGEST, 0)
    }

    /// Reads the headers of a result of a partition.
    pub(crate) fn of(partition: u32, message: &StreamMessage) -> Result<Self, Failure> {
        let number = |name| message.headers.get(name).and_then(|value| value.as_str().parse::<u64>().ok());
        let (input, digest) = number(INPUT).zip(number(DIGEST)).ok_or_else(|| {
            let (stream, number) = (names::results(partition), message.sequence);
            Failure::permanent(format!(
                "message {number} of {stream} lacks its headers, so no worker has written it; delete it with \
                 `nats stream rmm {stream} {number}`, and keep other clients off `results.>` (see the README)"
            ))
        })?;
        let ahead = number(AHEAD).unwrap_or_default() as usize;
        Ok(Self { of_subject: message.sequence, sequence: message.sequence, input, digest, ahead })
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

    /// Keeps the beginning of a message that cannot be decided. For two minutes the broker drops a
    /// repetition; later, an owner that reads the log again may keep the message twice.
    pub(crate) async fn set_aside(
        &self,
        partition: u32,
        sequence: u64,
        subject: &str,
        payload: &Bytes,
    ) -> Result<(), Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, format!("{partition}-{sequence}"));
        headers.insert("Subject", subject);
        let payload = payload.slice(..payload.len().min(ASIDE).min(self.max_payload()));
        self.jetstream.publish_with_headers(names::aside(partition), headers, payload).await?.await?;
        Ok(())
    }

    /// An entry of the bucket and its revision, by the word of the bucket's leader. The bucket's own call asks
    /// any replica if the stream allows direct reads, as one does that `nats kv add` made; and a replica may
    /// lag.
    pub(crate) async fn entry(&self, key: &str) -> Result<Option<(u64, Bytes)>, Failure> {
        let subject = format!("{}{key}", self.bucket.prefix);
        match self.bucket.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok(Some((message.sequence, message.payload))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The last result that is there. Which one it is, and the last number, is one answer of the stream's
    /// leader: two answers could be those of two leaders, of which one was replaced and does not know it.
    pub(crate) async fn last_result(&self, partition: u32) -> Result<LastResult, Failure> {
        let name = names::results(partition);
        let state = self.state(&name).await?;
        let Some(number) = last_message(&state) else { return Ok(LastResult::none(state.last_sequence)) };
        match self.stream(&name).await?.get_raw_message(number).await {
            Ok(message) => {
                let last = LastResult::of(partition, &message)?;
                let sequence = state.last_sequence;
                if number == sequence {
                    return Ok(last);
                }
                Ok(LastResult { of_subject: self.last_of_subject(partition).await?, sequence, ..last })
            }
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => {
                Err(Failure::temporary(format!("message {number} of {name} has just been deleted")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The number of the last result as the broker finds it by its subject.
    async fn last_of_subject(&self, partition: u32) -> Result<u64, Failure> {
        let stream = self.stream(&names::results(partition)).await?;
        match stream.get_last_raw_message_by_subject(&names::results_subject(partition)).await {
            Ok(message) => Ok(message.sequence),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(0),
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
        let LastResult { of_subject, sequence, input, digest, ahead } = next;
        let mut headers = HeaderMap::new();
        EXPECTED
            .iter()
            .zip([of_subject, sequence])
            .for_each(|(&name, last)| headers.insert(name, last.to_string()));
        headers.insert(INPUT, input.to_string());
        headers.insert(DIGEST, digest.to_string());
        headers.insert(AHEAD, ahead.to_string());
        let subject = names::results_subject(partition);
        let ack = self.jetstream.publish_with_headers(subject, headers, lines.into()).await?.await?;
        Ok(LastResult { of_subject: ack.sequence, sequence: ack.sequence, ..next })
    }
}

/// The number of the last message that a stream has.
fn last_message(state: &State) -> Option<u64> {
    let deleted = state.deleted.as_deref().unwrap_or_default();
    let numbers = (state.first_sequence..=state.last_sequence).rev();
    // A server may name deleted messages of a stream that is empty.
    numbers.take(deleted.len() + 1).find(|number| state.messages > 0 && !deleted.contains(number))
}

pub(crate) fn context(client: Client) -> Context {
    ContextBuilder::new().timeout(TIMEOUT).backpressure_on_inflight(true).build(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_the_last_that_is_not_deleted() {
        let last = |messages: u64, first: u64, last: u64, deleted: &[u64]| {
            let (first_ts, last_ts) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z");
            let state = serde_json::json!({
                "messages": messages, "bytes": 0, "first_seq": first, "first_ts": first_ts, "last_seq": last,
                "last_ts": last_ts, "consumer_count": 0, "deleted": deleted,
            });
            last_message(&serde_json::from_value(state).expect("a state"))
        };
        assert_eq!(last(9, 1, 9, &[]), Some(9));
        assert_eq!(last(6, 1, 9, &[9, 4, 8]), Some(7));
        assert_eq!([last(0, 0, 0, &[0]), last(0, 0, 0, &[]), last(0, 10, 9, &[])], [None; 3]);
    }
}

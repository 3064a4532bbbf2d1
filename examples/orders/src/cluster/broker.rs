//! The broker: streams and the bucket, made and found; and the settings that all workers share.

use std::time::{Duration, Instant};

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::kv::{self, CreateErrorKind};
use async_nats::jetstream::stream::{self, DiscardPolicy, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, ContextBuilder};
use async_nats::{Client, ConnectOptions, HeaderMap, ServerAddr};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::serve::books::Shop;

use super::names::{self, Kind};
use super::partition::Position;

/// Anything that goes wrong with the broker.
pub(crate) type Failure = async_nats::Error;

/// How long a request may take. The election of a stream's new leader may take longer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A server that does not answer for two of these is left for another.
const PING: Duration = Duration::from_secs(2);
/// The longest pause between two attempts to connect.
const RECONNECT: Duration = Duration::from_secs(1);
/// How long a request may take at the start, and the pause before it is tried again. Servers that have just
/// started have to find each other; before that, requests get no answer.
const FIRST: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(300);
/// How long one attempt to connect to the servers may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a worker tries to find or make the shop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// In a result: the last message of the log that it answers, and the digest of all lines up to it.
const INPUT: &str = "Shop-Input";
const DIGEST: &str = "Shop-Digest";
/// The headers that name the last result; the broker takes a new one only right after that. Servers of
/// 2.9 look at the first header before they replicate a message, and not again: if two messages come at
/// once, they take both. They look at the second header when they store the message. The stream has one
/// subject, so both headers mean the same.
const EXPECTED: [&str; 2] = ["Nats-Expected-Last-Subject-Sequence", "Nats-Expected-Last-Sequence"];

/// Bytes that are kept of a message that cannot be decided, at most.
const ASIDE: usize = 64 << 10;

/// What must be the same for all workers, because decisions depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) partitions: u32,
    /// Units of each item.
    pub(crate) stock: u64,
    pub(crate) check_after_ms: u64,
    /// How long an order that has ended is known.
    pub(crate) remember_ms: u64,
}

impl Settings {
    pub(crate) fn shop(&self) -> Shop {
        Shop { stock: self.stock, check_after: self.check_after_ms, max_pending: usize::MAX }
    }
}

/// The last result of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastResult {
    /// Its number in its stream; 0 if there is none.
    pub(crate) sequence: u64,
    pub(crate) input: u64,
    pub(crate) digest: u64,
}

/// A connection, with all that the shop has there.
#[derive(Clone)]
pub(crate) struct Broker {
    pub(crate) jetstream: Context,
    pub(crate) bucket: kv::Store,
    pub(crate) settings: Settings,
}

/// Connects to one of several servers, which are separated by commas.
pub(crate) async fn connect(urls: &str, name: &str, patience: Duration) -> Result<Client, Failure> {
    let servers = urls.split(',').map(str::parse::<ServerAddr>).collect::<Result<Vec<_>, _>>()?;
    let options = || {
        ConnectOptions::new()
            .name(name)
            .ping_interval(PING)
            .connection_timeout(PING)
            .request_timeout(Some(TIMEOUT))
            .reconnect_delay_callback(|attempts| RECONNECT.min(Duration::from_millis(20 * attempts as u64)))
            .max_reconnects(None)
    };
    insist(CONNECT, patience, || async { Ok(options().connect(&servers).await?) }).await
}

impl Broker {
    /// Finds the shop, or makes it.
    ///
    /// # Errors
    ///
    /// The broker does not answer, or the shop has other settings.
    pub(crate) async fn make(client: Client, settings: Settings, replicas: usize) -> Result<Self, Failure> {
        if replicas > 1 && !client.is_server_compatible(2, 10, 0) {
            let version = client.server_info().version;
            eprintln!(
                "warning: replicas of nats-server {version} may come to differ when a server is killed; \
                 use 2.10 or newer"
            );
        }
        let jetstream = context(client);
        insist(FIRST, PATIENCE, || async { Ok(jetstream.get_or_create_stream(bucket(replicas)).await?) })
            .await?;
        let bucket =
            insist(FIRST, PATIENCE, || async { Ok(jetstream.get_key_value(names::BUCKET).await?) }).await?;
        let found = insist(FIRST, PATIENCE, || agree(&bucket, settings)).await?;
        if found != settings {
            return Err(format!("the shop has other settings: {found:?}, not {settings:?}").into());
        }
        for config in streams(settings.partitions, replicas) {
            let make = || async { Ok(jetstream.get_or_create_stream(config.clone()).await?) };
            insist(FIRST, PATIENCE, make).await?;
        }
        Ok(Self { jetstream, bucket, settings })
    }

    /// Finds a shop that workers have made, within `patience`.
    pub(crate) async fn find(client: Client, patience: Duration) -> Result<Self, Failure> {
        let jetstream = context(client);
        let find = || async {
            let bucket = jetstream.get_key_value(names::BUCKET).await?;
            let settings =
                bucket.get(names::SETTINGS).await?.ok_or("there is no shop yet; start a worker")?;
            Ok((bucket, serde_json::from_slice(&settings)?))
        };
        let (bucket, settings) = insist(FIRST, patience, find).await?;
        Ok(Self { jetstream, bucket, settings })
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
        let payload = payload.slice(..payload.len().min(ASIDE));
        self.jetstream.publish_with_headers(names::aside(partition), headers, payload).await?.await?;
        Ok(())
    }

    pub(crate) async fn last_result(&self, partition: u32) -> Result<LastResult, Failure> {
        let stream = self.stream(&names::results(partition)).await?;
        let subject = names::results_subject(partition);
        let message = match stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => message,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                return Ok(LastResult::default());
            }
            Err(error) => return Err(error.into()),
        };
        let number = |name| message.headers.get(name).and_then(|value| value.as_str().parse().ok());
        let (input, digest) = number(INPUT).zip(number(DIGEST)).ok_or("a result lacks its headers")?;
        Ok(LastResult { sequence: message.sequence, input, digest })
    }

    /// The last result, as soon as the stream's leader answers.
    pub(crate) async fn insist_on_last_result(
        &self,
        partition: u32,
        patience: Duration,
    ) -> Result<LastResult, Failure> {
        insist(TIMEOUT, patience, || self.last_result(partition)).await
    }

    /// Publishes a result, if the last one is still the one that the caller knows.
    ///
    /// # Errors
    ///
    /// Another owner was first, or it is not known whether the result stands.
    pub(crate) async fn publish(
        &self,
        partition: u32,
        lines: String,
        position: Position,
        last: LastResult,
    ) -> Result<LastResult, Failure> {
        let Position { input, digest, .. } = position;
        let mut headers = HeaderMap::new();
        EXPECTED.iter().for_each(|&name| headers.insert(name, last.sequence.to_string()));
        headers.insert(INPUT, input.to_string());
        headers.insert(DIGEST, digest.to_string());
        let subject = names::results_subject(partition);
        let ack = self.jetstream.publish_with_headers(subject, headers, lines.into()).await?.await?;
        Ok(LastResult { sequence: ack.sequence, input, digest })
    }
}

fn context(client: Client) -> Context {
    ContextBuilder::new().timeout(TIMEOUT).backpressure_on_inflight(true).build(client)
}

/// Tries until it succeeds: an attempt takes no longer than `each`, and all of them not much longer than
/// `patience`.
async fn insist<T, F: Future<Output = Result<T, Failure>>>(
    each: Duration,
    patience: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Failure> {
    let (begin, mut first) = (Instant::now(), true);
    loop {
        let attempted = shardwheel::timeout(each, attempt()).await;
        match attempted.unwrap_or_else(|elapsed| Err(elapsed.into())) {
            Err(failure) if begin.elapsed() < patience => {
                if std::mem::take(&mut first) {
                    eprintln!("{failure}; trying again");
                }
                shardwheel::sleep(PAUSE).await;
            }
            result => return result,
        }
    }
}

/// Enters the settings, or reads those that another worker has entered.
async fn agree(bucket: &kv::Store, settings: Settings) -> Result<Settings, Failure> {
    let value = serde_json::to_vec(&settings)?;
    match bucket.create(names::SETTINGS, value.into()).await {
        Ok(_) => Ok(settings),
        Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {
            let found = bucket.get(names::SETTINGS).await?.ok_or("the settings are gone")?;
            Ok(serde_json::from_slice(&found)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// The stream of a bucket, as the client would make it; but the client's own call reads an answer
/// that servers before 2.10 give in another form. Only the leader answers what is in it.
fn bucket(replicas: usize) -> stream::Config {
    stream::Config {
        name: format!("KV_{}", names::BUCKET),
        subjects: vec![format!("$KV.{}.>", names::BUCKET)],
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        num_replicas: replicas,
        ..stream::Config::default()
    }
}

fn streams(partitions: u32, replicas: usize) -> Vec<stream::Config> {
    let stream = |name: String, subjects: String| stream::Config {
        name,
        subjects: vec![subjects],
        num_replicas: replicas,
        ..stream::Config::default()
    };
    let of = |partition| {
        let log = stream(names::log(partition), names::log_subjects(partition));
        let results = stream(names::results(partition), names::results_subject(partition));
        [log, results]
    };
    let books = stream(names::BOOKS.to_owned(), format!("{}.*", names::BOOKS));
    let aside = stream(names::ASIDE.to_owned(), format!("{}.*", names::ASIDE));
    (0..partitions).flat_map(of).chain([books, aside]).collect()
}

//! The broker: its connection, the shop's streams there, and the requests of workers and clients.

use std::error::Error;
use std::time::{Duration, Instant};

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, ContextBuilder};
use async_nats::{Client, ConnectOptions, HeaderMap, ServerAddr};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use crate::serve::books::Shop;

use super::names::{self, Kind};

/// Why something does not work, in a sentence. All failures are the same: it is tried again.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// How long a request may take. The election of a stream's new leader may take longer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The pause before what failed is tried again.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);
/// How often it is said what does not work.
pub(crate) const SAY: Duration = Duration::from_secs(5);
/// A server that does not answer for three of these is left for another.
const PING: Duration = Duration::from_secs(1);
/// How long a server may take to accept a connection.
const ACCEPT: Duration = Duration::from_secs(2);
/// The longest pause between two attempts to connect again.
const RECONNECT: Duration = Duration::from_secs(1);
/// The broker must take messages of so many bytes, as it does by default: a result has all answers
/// to a message.
const MIN_PAYLOAD: usize = 1 << 20;

/// In a result: the last message of the log that it and those before it answer, and the digest of
/// all lines so far.
const INPUT: &str = "Shop-Input";
const DIGEST: &str = "Shop-Digest";
/// A message is taken only if the last one of its subject has this number.
const EXPECTED_OF_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence";
/// The headers that name the last result; the broker takes a new one only right after that. Servers
/// of 2.9 look at the first header before they replicate a message, and not again: if two messages
/// come at once, they take both. They look at the second header when they store the message.
const EXPECTED: [&str; 2] = [EXPECTED_OF_SUBJECT, "Nats-Expected-Last-Sequence"];

/// What must be the same for all workers. It stands in the description of the stream of snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) partitions: u32,
    pub(crate) replicas: usize,
    /// Units of each item.
    pub(crate) stock: u64,
    pub(crate) check_after_ms: u64,
    /// How long an order that has ended is known.
    pub(crate) remember_ms: u64,
    pub(crate) lease_ms: u64,
}

impl Settings {
    pub(crate) fn shop(&self) -> Shop {
        Shop { stock: self.stock, check_after: self.check_after_ms, in_memory: usize::MAX }
    }

    fn of(found: &Config) -> Result<Self, Failure> {
        let text = found.description.as_deref().unwrap_or_default();
        serde_json::from_str(text).map_err(|_| format!("the stream {} is no shop's", found.name).into())
    }

    /// The stream of all snapshots.
    fn books(&self) -> Result<Config, Failure> {
        let description = Some(serde_json::to_string(self)?);
        Ok(Config { description, ..self.stream(names::BOOKS.to_owned(), format!("{}.>", names::BOOKS)) })
    }

    /// The stream of the workers that live, and the log and the results of each partition.
    fn streams(&self) -> impl Iterator<Item = Config> {
        let max_age = Duration::from_millis(self.lease_ms);
        let workers = self.stream(names::WORKERS.to_owned(), names::worker("*"));
        let workers = Config { max_age, max_messages_per_subject: 1, ..workers };
        let of = |number| {
            let log = self.stream(names::log(number), names::log_subjects(number));
            [log, self.stream(names::results(number), names::results_subject(number))]
        };
        (0..self.partitions).flat_map(of).chain([workers])
    }

    fn stream(&self, name: String, subject: String) -> Config {
        Config { name, subjects: vec![subject], num_replicas: self.replicas, ..Config::default() }
    }
}

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
    /// Reads the headers of a result.
    fn of(message: &StreamMessage) -> Result<Self, Failure> {
        let number = |name| message.headers.get(name).and_then(|value| value.as_str().parse::<u64>().ok());
        let (input, digest) = number(INPUT).zip(number(DIGEST)).ok_or_else(|| {
            format!("the last message of {} lacks its headers: no worker has written it", message.subject)
        })?;
        Ok(Self { sequence: message.sequence, input, digest })
    }
}

/// A connection, with all that the shop has there.
#[derive(Clone)]
pub(crate) struct Broker {
    pub(crate) jetstream: Context,
    pub(crate) settings: Settings,
}

/// Tries until it succeeds, or for so long. Says every few seconds why it does not.
pub(crate) async fn insist<T, F: Future<Output = Result<T, Failure>>>(
    most: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Failure> {
    let (begin, mut said) = (Instant::now(), None::<Instant>);
    loop {
        let failure = match attempt().await {
            Ok(done) => return Ok(done),
            Err(failure) if begin.elapsed() >= most => return Err(failure),
            Err(failure) => failure,
        };
        if said.is_none_or(|at| at.elapsed() >= SAY) {
            said = Some(Instant::now());
            say!("waiting for NATS: {failure}; trying again for {} s", begin.elapsed().as_secs());
        }
        shardwheel::sleep(PAUSE).await;
    }
}

/// Connects to one of several servers, which are separated by commas. The first user that an
/// address names is that for all of them.
pub(crate) async fn connect(urls: &str, name: &str, most: Duration) -> Result<Client, Failure> {
    let servers = urls.split(',').map(str::parse::<ServerAddr>).collect::<Result<Vec<_>, _>>();
    let servers = servers.map_err(|error| format!("{urls}: {error}"))?;
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
    insist(most, || async { Ok(options().connect(&servers).await?) }).await
}

/// A part of an address, with its `%` escapes replaced.
fn decoded(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

fn context(client: Client) -> Context {
    ContextBuilder::new().timeout(TIMEOUT).backpressure_on_inflight(true).build(client)
}

impl Broker {
    /// Finds the shop, or makes it.
    ///
    /// # Errors
    ///
    /// The shop has other settings, or the broker takes small messages only.
    pub(crate) async fn make(client: Client, settings: Settings) -> Result<Self, Failure> {
        let payload = client.server_info().max_payload;
        if payload < MIN_PAYLOAD {
            return Err(format!("the broker's max_payload is {payload}, and must be {MIN_PAYLOAD}").into());
        }
        let jetstream = &context(client);
        let make = |config: Config| {
            insist(Duration::MAX, move || {
                let made = jetstream.get_or_create_stream(config.clone());
                async { Ok(made.await?) }
            })
        };
        let books = make(settings.books()?).await?;
        let found = Settings::of(&books.cached_info().config)?;
        if found != settings {
            let texts = [found, settings].map(|settings| format!("{settings:?}"));
            return Err(format!("the shop has other settings: {}, not {}", texts[0], texts[1]).into());
        }
        for config in settings.streams() {
            make(config).await?;
        }
        Ok(Self { jetstream: jetstream.clone(), settings })
    }

    /// Connects to a shop that workers have made.
    pub(crate) async fn find(urls: &str, most: Duration) -> Result<Self, Failure> {
        let jetstream = context(connect(urls, "client", most).await?);
        let books = insist(most, || async {
            let books = jetstream.get_stream(names::BOOKS).await;
            books.map_err(|error| format!("there is no shop yet; start a worker: {error}").into())
        });
        let settings = Settings::of(&books.await?.cached_info().config)?;
        Ok(Self { jetstream, settings })
    }

    /// A stream, for requests to its leader.
    pub(crate) async fn stream(&self, name: &str) -> Result<Stream<()>, Failure> {
        Ok(self.jetstream.get_stream_no_info(name).await?)
    }

    /// Adds a tick to a partition's log, and does not wait for an answer: the owner sends a lost
    /// tick again.
    pub(crate) async fn tick(&self, partition: u32) -> Result<(), Failure> {
        let subject = names::log_subject(partition, Kind::Tick);
        Ok(self.jetstream.client().publish(subject, bytes::Bytes::new()).await?)
    }

    /// The last message of a subject, by the word of the stream's leader.
    pub(crate) async fn last(&self, stream: &str, subject: String) -> Result<Option<StreamMessage>, Failure> {
        let found = self.stream(stream).await?;
        // A server of 2.9 may crash if it is asked for the last message of a stream that it just makes.
        if found.get_info().await?.state.messages == 0 {
            return Ok(None);
        }
        match found.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok(Some(message)),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(format!("{stream}: {error}").into()),
        }
    }

    pub(crate) async fn last_result(&self, partition: u32) -> Result<LastResult, Failure> {
        let last = self.last(&names::results(partition), names::results_subject(partition)).await?;
        let none = LastResult { sequence: 0, input: 0, digest: names::DIGEST };
        last.map_or(Ok(none), |message| LastResult::of(&message))
    }

    /// Publishes a message if the last one of its subject has the number `expected`; returns its
    /// own.
    pub(crate) async fn replace(
        &self,
        subject: String,
        expected: u64,
        payload: Vec<u8>,
    ) -> Result<u64, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED_OF_SUBJECT, expected.to_string());
        Ok(self.jetstream.publish_with_headers(subject, headers, payload.into()).await?.await?.sequence)
    }

    /// Publishes lines as the result `next`, if the last one is still the one that the caller
    /// knows.
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

//! The shop in the broker: its bucket and its streams, made or found, and checked; and the settings that
//! all workers share.
//!
//! The streams must keep what is in them: a message of the log goes when the owner trims it, and a result
//! never. A stream with a limit of age or size would lose messages in silence, so a worker does not begin
//! with one.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::kv::{self, CreateErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, State, StorageType};
use async_nats::jetstream::{Context, ErrorCode};
use serde::{Deserialize, Serialize};

use crate::serve::books::Shop;

use super::broker::{self, Broker};
use super::failure::{Failure, Patience};
use super::names;

/// How long a request may take at the start. Servers that have just started have to find each other; before
/// that, requests get no answer.
const FIRST: Duration = Duration::from_secs(2);
/// The broker must take messages of so many bytes, as it does by default: a result has all answers
/// to a message.
const MIN_PAYLOAD: usize = 1 << 20;

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
        Shop { stock: self.stock, check_after: self.check_after_ms, in_memory: usize::MAX }
    }

    /// As a user writes them.
    fn flags(&self) -> [String; 4] {
        let Self { partitions, stock, check_after_ms, remember_ms } = *self;
        [
            format!("--partitions {partitions}"),
            format!("--stock {stock}"),
            format!("--check-after {}", as_written(check_after_ms)),
            format!("--remember {}", as_written(remember_ms)),
        ]
    }

    fn expect(&self, wanted: &Self) -> Result<(), Failure> {
        let pairs = self.flags().into_iter().zip(wanted.flags()).filter(|(found, wanted)| found != wanted);
        let different = pairs.map(|(found, wanted)| format!("{found}, not {wanted}")).collect::<Vec<_>>();
        if different.is_empty() {
            return Ok(());
        }
        Err(Failure::permanent(format!("the shop has other settings: {}", different.join("; "))))
    }
}

/// A duration as a user writes it.
fn as_written(millis: u64) -> impl std::fmt::Display {
    humantime::format_duration(Duration::from_millis(millis))
}

impl Broker {
    /// Finds the shop, or makes it.
    ///
    /// # Errors
    ///
    /// The shop has other settings, or its streams are not as they must be.
    pub(crate) async fn make(
        client: Client,
        settings: Settings,
        replicas: usize,
        patience: &Patience,
    ) -> Result<Self, Failure> {
        warn_of_an_old_server(&client, replicas);
        let max_payload = client.server_info().max_payload;
        if max_payload < MIN_PAYLOAD {
            return Err(Failure::permanent(format!(
                "the broker's max_payload is {max_payload} bytes; it must be at least {MIN_PAYLOAD}"
            )));
        }
        let jetstream = broker::context(client);
        patience.insist(FIRST, || make(&jetstream, bucket(replicas))).await?;
        let find = || async { Ok(jetstream.get_key_value(names::BUCKET).await?) };
        let bucket = patience.insist(FIRST, find).await?;
        patience.insist(FIRST, || agree(&bucket, settings)).await?.expect(&settings)?;
        for config in streams(settings.partitions, replicas) {
            patience.insist(FIRST, || make(&jetstream, config.clone())).await?;
        }
        Ok(Self { jetstream, bucket, settings })
    }

    /// Finds a shop that workers have made.
    pub(crate) async fn find(client: Client, patience: &Patience) -> Result<Self, Failure> {
        let jetstream = broker::context(client);
        let none = "there is no shop yet; start a worker";
        let find = || async {
            // Without a stream there is no bucket yet.
            let bucket = jetstream.get_key_value(names::BUCKET).await;
            let bucket = bucket.map_err(|error| Failure::temporary(format!("{none}: {error}")))?;
            let settings = bucket.get(names::SETTINGS).await?.ok_or_else(|| Failure::temporary(none))?;
            Ok((bucket, serde_json::from_slice(&settings)?))
        };
        let (bucket, settings) = patience.insist(FIRST, find).await?;
        Ok(Self { jetstream, bucket, settings })
    }

    /// What a stream holds.
    ///
    /// # Errors
    ///
    /// That the stream is missing is permanent.
    pub(crate) async fn state(&self, name: &str) -> Result<State, Failure> {
        match self.jetstream.get_stream(name).await {
            Ok(stream) => Ok(stream.cached_info().state.clone()),
            Err(error) => Err(match error.kind() {
                GetStreamErrorKind::JetStream(word) if word.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    missing(name)
                }
                _ => error.into(),
            }),
        }
    }
}

/// The broker has lost something.
pub(crate) fn lost(what: &str) -> Failure {
    let restore =
        "restore all streams of the shop from one backup, with `nats stream restore` (see the README)";
    Failure::permanent(format!("{what}; {restore}"))
}

pub(crate) fn missing(stream: &str) -> Failure {
    lost(&format!("the stream {stream} is missing"))
}

fn warn_of_an_old_server(client: &Client, replicas: usize) {
    if replicas > 1 && !client.is_server_compatible(2, 10, 0) {
        let version = client.server_info().version;
        say!(
            "warning: replicas of nats-server {version} may come to differ when a server is killed; \
             use 2.10 or newer"
        );
    }
}

/// Makes a stream, or checks the one that is there.
async fn make(jetstream: &Context, wanted: Config) -> Result<(), Failure> {
    match jetstream.get_or_create_stream(wanted.clone()).await {
        Ok(stream) => check(&stream.cached_info().config, &wanted),
        Err(error) => Err(match error.kind() {
            CreateStreamErrorKind::JetStream(word) => refused(error, word.error_code(), wanted.num_replicas),
            _ => error.into(),
        }),
    }
}

fn refused(error: CreateStreamError, code: ErrorCode, replicas: usize) -> Failure {
    match code {
        ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED => Failure::permanent(format!(
            "--replicas {replicas} needs a cluster of at least {replicas} servers, and this server is alone"
        )),
        ErrorCode::CLUSTER_NO_PEERS | ErrorCode::INSUFFICIENT_RESOURCES => Failure::temporary(format!(
            "--replicas {replicas} needs {replicas} servers that are there: {error}"
        )),
        ErrorCode::STREAM_SUBJECT_OVERLAP => {
            Failure::permanent(format!("another stream has the subjects of this shop: {error}"))
        }
        _ => error.into(),
    }
}

/// Checks that a stream keeps what is in it.
fn check(found: &Config, wanted: &Config) -> Result<(), Failure> {
    let limit = |number: i64| if number > 0 { number.to_string() } else { "none".to_owned() };
    let both = |name, read: fn(&Config) -> i64| (name, limit(read(found)), limit(read(wanted)));
    let age = |config: &Config| humantime::format_duration(config.max_age).to_string();
    let rows = [
        ("--replicas", found.num_replicas.to_string(), wanted.num_replicas.to_string()),
        ("retention", retention(found).to_owned(), retention(wanted).to_owned()),
        ("storage", storage(found).to_owned(), storage(wanted).to_owned()),
        ("subjects", found.subjects.join(","), wanted.subjects.join(",")),
        ("max_age", age(found), age(wanted)),
        both("max_bytes", |config| config.max_bytes),
        both("max_msgs", |config| config.max_messages),
        both("max_msgs_per_subject", |config| config.max_messages_per_subject),
        both("max_msg_size", |config| i64::from(config.max_message_size)),
    ];
    let Some((name, found_value, wanted_value)) = rows.into_iter().find(|(_, found, wanted)| found != wanted)
    else {
        return Ok(());
    };
    Err(Failure::permanent(format!(
        "the stream {} has {name} {found_value}, not {wanted_value}; start the worker with what the shop has, \
         or change the stream with `nats stream edit`",
        wanted.name
    )))
}

fn retention(config: &Config) -> &'static str {
    match config.retention {
        RetentionPolicy::Limits => "limits",
        RetentionPolicy::Interest => "interest",
        RetentionPolicy::WorkQueue => "workqueue",
    }
}

fn storage(config: &Config) -> &'static str {
    if config.storage == StorageType::File { "file" } else { "memory" }
}

/// Enters the settings, or reads those that another worker has entered.
async fn agree(bucket: &kv::Store, settings: Settings) -> Result<Settings, Failure> {
    let value = serde_json::to_vec(&settings)?;
    match bucket.create(names::SETTINGS, value.into()).await {
        Ok(_) => Ok(settings),
        Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {
            let found = bucket.get(names::SETTINGS).await?;
            Ok(serde_json::from_slice(&found.ok_or_else(|| Failure::temporary("the settings are gone"))?)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// The stream of a bucket, as the client would make it; but the client's own call reads an answer
/// that servers before 2.10 give in another form. Only the leader answers what is in it.
fn bucket(replicas: usize) -> Config {
    Config {
        name: format!("KV_{}", names::BUCKET),
        subjects: vec![format!("$KV.{}.>", names::BUCKET)],
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        num_replicas: replicas,
        ..Config::default()
    }
}

/// The log and the results of each partition, and the parts of all snapshots.
fn streams(partitions: u32, num_replicas: usize) -> Vec<Config> {
    let stream = |name, subjects| Config { name, subjects, num_replicas, ..Config::default() };
    let books = stream(names::BOOKS.to_owned(), vec![format!("{}.*", names::BOOKS)]);
    let of = |partition| {
        let results = vec![names::results_subject(partition)];
        [
            stream(names::log(partition), names::log_subjects(partition)),
            stream(names::results(partition), results),
        ]
    };
    (0..partitions).flat_map(of).chain([books]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_limits_are_named_as_users_write_them() {
        let settings = Settings { partitions: 2, stock: 5, check_after_ms: 1_800_000, remember_ms: 1_500 };
        assert_eq!(
            settings.flags(),
            ["--partitions 2", "--stock 5", "--check-after 30m", "--remember 1s 500ms"]
        );
        let other = Settings { partitions: 3, ..settings };
        let said = settings.expect(&other).map_err(|failure| failure.to_string());
        assert_eq!(said, Err("the shop has other settings: --partitions 2, not --partitions 3".to_owned()));
        let [log, ..] = &streams(1, 1)[..] else { panic!("there is a log") };
        assert!(check(&Config { max_bytes: -1, ..log.clone() }, log).is_ok());
        let limited = [
            (Config { max_age: Duration::from_secs(7_200), ..log.clone() }, "max_age 2h, not 0s"),
            (Config { max_messages: 9, ..log.clone() }, "max_msgs 9, not none"),
            (Config { retention: RetentionPolicy::WorkQueue, ..log.clone() }, "retention workqueue"),
            (Config { num_replicas: 3, ..log.clone() }, "--replicas 3, not 1"),
        ];
        for (found, said) in limited {
            assert!(check(&found, log).is_err_and(|failure| failure.to_string().contains(said)), "{said}");
        }
    }
}

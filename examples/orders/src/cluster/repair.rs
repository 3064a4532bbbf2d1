//! `repair`: lets partitions go on that have stopped because the broker has lost something.
//!
//! A partition is whole if an owner could begin with it. If not, `repair` makes a snapshot that agrees with
//! all results that stand (`salvage.rs`), and says what is lost. The order of its steps is such that it may
//! be stopped at any instant and run again:
//!
//! 1. It publishes a result without lines, under the condition that the last one is still the one that it
//!    knows. An owner that works meanwhile is refused from then on.
//! 2. If the log was made anew, it goes on with numbers that no message had before.
//! 3. It writes the snapshot, and changes a key of the bucket: workers begin again at once.

use std::io::Write;
use std::time::{Duration, Instant};

use async_nats::jetstream::stream::RawMessageErrorKind;
use order_reconciliation::durations;

use crate::{EXIT_OK, EXIT_USAGE, Streams};

use super::broker::{self, Broker, LastResult};
use super::failure::{Failure, Patience};
use super::keeper::Keeper;
use super::names::{self, Kind};
use super::partition::Partition;
use super::reader::{Gap, Reader};
use super::recovery::{self, Begin};
use super::salvage::Salvage;
use super::snapshot;

/// How long one attempt at a partition may take.
const EACH: Duration = Duration::from_secs(300);
/// A failure is believed to be permanent if it is so for this long.
const SURE: Duration = Duration::from_secs(3);

/// Lets partitions of a cluster go on that have stopped, and names what is lost
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The NATS servers, separated by commas
    #[arg(long, value_name = "URL[,URL...]")]
    nats: String,

    /// How long to try again when the servers do not answer
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = durations::parse)]
    give_up_after: Duration,
}

/// Repairs all partitions; returns the exit code.
pub(crate) fn run(args: &Args, streams: &mut Streams<'_>) -> u8 {
    let repaired = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(repair(args, streams.out)));
    match repaired {
        Ok(()) => EXIT_OK,
        Err(failure) => {
            // If standard error is closed too, nothing can be reported.
            let _ = writeln!(streams.err, "error: {failure}");
            EXIT_USAGE
        }
    }
}

async fn repair(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let patience = Patience::of(args.give_up_after);
    let client = broker::connect(&args.nats, "repair", &patience).await?;
    let broker = Broker::find(client, &patience).await?;
    broker.make_missing(&patience).await?;
    let mut left = 0;
    for number in 0..broker.settings.partitions {
        let said = match patience.insist(EACH, || why_it_stops(&broker, number)).await? {
            None => patience.insist(EACH, || try_to_publish(&broker, number)).await,
            Some(why) => {
                let mended = patience.insist(EACH, || mend(&broker, number)).await;
                mended.map(|said| format!("{why}\n{said}"))
            }
        };
        left += u32::from(said.is_err());
        let said = said.unwrap_or_else(|failure| format!("not repaired: {failure}"));
        writeln!(out, "partition {number}: {said}")?;
    }
    if left == 0 { Ok(()) } else { Err(Failure::permanent(format!("partitions not repaired: {left}"))) }
}

/// Whether results can be published. While messages are answered they can. If one waits, and no worker
/// answers in time, a result without lines is published.
async fn try_to_publish(broker: &Broker, number: u32) -> Result<String, Failure> {
    let (begin, before) = (Instant::now(), broker.last_result(number).await?);
    let Some(waiting) = first_unanswered(broker, number, before.input).await? else {
        return Ok("whole".to_owned());
    };
    while begin.elapsed() < SURE {
        shardwheel::sleep(SURE / 6).await;
        if broker.last_result(number).await? != before {
            return Ok("whole".to_owned());
        }
    }
    broker.publish(number, String::new(), before).await?;
    Ok(format!(
        "whole; a result can be published, but message {waiting} has no answer: does a worker run, and what \
         does its /healthz say?"
    ))
}

/// The first orders or payments after a message. Each line of them has an answer.
async fn first_unanswered(broker: &Broker, number: u32, input: u64) -> Result<Option<u64>, Failure> {
    let (log, mut first) = (broker.stream(&names::log(number)).await?, None);
    for kind in [Kind::Orders, Kind::Payments] {
        match log.get_first_raw_message_by_subject(names::log_subject(number, kind), input + 1).await {
            Ok(message) if message.payload.trim_ascii().is_empty() => {}
            Ok(message) => first = Some(first.unwrap_or(message.sequence).min(message.sequence)),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(first)
}

/// Why an owner cannot begin with a partition, if it cannot.
async fn why_it_stops(broker: &Broker, number: u32) -> Result<Option<String>, Failure> {
    let begin = Instant::now();
    loop {
        match replay(broker, number).await {
            Ok(()) => return Ok(None),
            // A new leader may not have all messages for a moment.
            Err(Failure::Permanent(_)) if begin.elapsed() < SURE => {
                shardwheel::sleep(SURE / 6).await;
            }
            Err(Failure::Permanent(why)) => return Ok(Some(why)),
            Err(failure) => return Err(failure),
        }
    }
}

/// Begins as an owner does, up to the last result.
async fn replay(broker: &Broker, number: u32) -> Result<(), Failure> {
    let Begin { mut partition, last, .. } = Begin::read(broker, number, true).await?;
    let mut reader = Reader::new(broker.clone(), names::log(number), partition.position.input + 1);
    while reader.position() < last.input {
        match reader.next().await {
            Ok(Some(input)) => {
                partition.apply(&input, &mut String::new())?;
            }
            Ok(None) => {}
            Err(Gap::Message(_)) => partition.position.input = reader.position(),
            Err(gap) => return Err(gap.into()),
        }
    }
    // Later books fit, or the owner would not begin with them.
    if partition.position.input > last.input { Ok(()) } else { recovery::compare(&partition.position, &last) }
}

/// Repairs a partition; returns what there is to say.
async fn mend(broker: &Broker, number: u32) -> Result<String, Failure> {
    let mut keeper = Keeper::load(broker.clone(), number, true).await?;
    let found = match keeper.restore(|_| Ok(())).await {
        Err(failure) if failure.is_permanent() => None,
        restored => Some(restored?),
    };
    let is_whole = found.is_some();
    let settings = broker.settings;
    let empty = || Partition::new(settings.shop(), settings.remember_ms);
    let base = found.map_or_else(empty, Ok)?;
    let last = broker.last_result(number).await?;
    let mut salvage = Salvage::new(&base, is_whole);
    salvage.read(broker, number, &last).await?;
    let (partition, said) = salvage.end(settings, &last)?;
    let input = partition.position.input;
    let digest = partition.position.digest;
    broker.publish(number, String::new(), LastResult { input, digest, ahead: 0, ..last }).await?;
    if broker.state(&names::log(number)).await?.last_sequence < input {
        broker.stream(&names::log(number)).await?.purge().sequence(input + 1).await?;
    }
    keeper.begin_anew();
    keeper.save(input, snapshot::encode(&partition)).await?;
    broker.bucket.put(names::repaired(number), "".into()).await?;
    Ok(said)
}

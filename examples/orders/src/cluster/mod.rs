//! `serve --nats`: many workers, over a broker that keeps the data.
//!
//! # One log a partition
//!
//! The shop is divided by item into P partitions. Each has a *log*, a JetStream stream with the
//! subjects `shop.P.orders`, `shop.P.payments` and `shop.P.ticks`: one total order of all that
//! happens to its items. Front ends publish lines of JSON there, several to a message. A payment goes
//! to the partition of its order's item, which the front end knows because it sold the item. The line
//! names the item as well, for a tool that divides the shop anew. An order's id belongs to one item:
//! other partitions do not know the id.
//!
//! **Decisions are a pure function of the log** (`partition.rs`). The time of an order or a payment
//! is the one that the broker gave its message, and a check that is due at T is made by the first
//! message after T. No owner's clock decides anything. So two owners of a partition, the present one
//! and one that was paused and does not know it, write the same lines.
//!
//! # Results
//!
//! An owner answers messages by a *result*: a message in the partition's other stream, with a line
//! for each line answered and for each outcome. It names the last message of the log that it answers.
//! The broker takes it only if the last result is still the one that the owner knows
//! (`Nats-Expected-Last-Sequence`). So each message of the log is answered once.
//!
//! | what meets | what happens |
//! |---|---|
//! | two owners publish the same step | the second is refused, and begins again |
//! | an owner stops between deciding and publishing | the next owner decides the same |
//! | an owner stops after publishing | the next one reads the result, and is silent up to there |
//! | an owner does not know whether its result stands | it begins again, as after a crash |
//! | a paused owner goes on, and a new one has published | its result is refused |
//! | it goes on, and is first | it says what the new one would have said, which is refused |
//! | a clock is set back, or a new leader's clock is slow | the log's time stands still; no check is early |
//! | a message is sent twice | the books know its orders and payments by their ids: *duplicate* |
//! | a message that was sent to an owner or client is lost | its reader asks for it (`reader.rs`) |
//! | a message was trimmed from the log | its owner begins again, with the newest snapshot |
//! | a part of the log, the results or the snapshot is lost | the partition stops until a backup is restored (`recovery.rs`) |
//! | an owner hangs, or begins again and again | `/healthz` says so (`status.rs`), for whoever restarts the worker |
//!
//! The invariant: after result n, which answers the log up to message m, the books of each owner that
//! has applied the log up to m are the same. Each result bears a digest of all lines before it, and a
//! new owner compares: one that decides differently publishes nothing.
//!
//! # Who has which partition
//!
//! Each worker renews an entry of a KV bucket, and lives while others see it change within the length of a
//! lease, by their clocks. Which partitions are whose follows from who lives (`view.rs`), without asking
//! anybody. This keeps two owners from doing the same work, mostly; that nothing is decided twice does not
//! depend on it: only the broker's condition on results decides. So what a worker sees may be old, as when a
//! replica sends it: then two workers may act, and one of them is refused.
//!
//! # Snapshots
//!
//! After a number of lines the owner writes its books into the broker (`keeper.rs`), and the log is
//! trimmed up to the previous snapshot. A new owner reads the newest one and the rest of the log.
//! A snapshot is as large as what is pending and what is remembered of the past (`memory.rs`).
//!
//! # What the broker must do
//!
//! A message that it has acknowledged stays. JetStream with three replicas keeps it when one server
//! is lost. It does not sync each message to its disk: if all three machines lose their power at
//! once, the last messages may be lost. After a server died, replicas of the bucket were seen to number
//! the same changes differently (2.9.10), so workers ask its leader when a change is refused. The
//! servers' clocks should agree well enough for the shop's promise of thirty minutes.
//!
//! # The files, from the bottom up
//!
//! | file | what |
//! |---|---|
//! | `names.rs` | subjects, streams, keys; the partition of an item |
//! | `memory.rs`, `partition.rs`, `snapshot.rs` | books as a function of the log; their bytes |
//! | `ticks.rs` | when a tick is of use. No broker |
//! | `view.rs`, `pulse.rs` | who lives and has which partitions; how a partition is. No broker |
//! | `failure.rs`, `status.rs` | two kinds of failure, what is waited for; `/healthz` and `/metrics` |
//! | `broker.rs`, `setup.rs` | requests and results; the streams, made and checked |
//! | `reader.rs`, `keeper.rs`, `recovery.rs` | reading without gaps; snapshots; where an owner begins |
//! | `owner.rs` | one partition: reads, decides, publishes |
//! | `held.rs`, `watch.rs`, `worker.rs` | the partitions of a worker, and an owner for each |
//! | `client.rs` | sends lines and receives the answers: for `feed` |

mod args;
mod broker;
mod client;
mod failure;
mod held;
mod keeper;
mod memory;
mod names;
mod owner;
mod partition;
mod pulse;
mod reader;
mod recovery;
mod setup;
mod snapshot;
mod status;
mod ticks;
mod view;
mod watch;
mod worker;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::serve::metrics::Metrics;
use crate::serve::places::Limits;

use broker::Broker;
use failure::{Failure, Patience};
use owner::Office;
use setup::Settings;
use status::Health;
use worker::Worker;

pub(crate) use args::Args;
pub(crate) use client::{Addressed, Name, ShopClient};
pub(crate) use names::Kind;

/// What `serve` says about the shop.
pub(crate) struct Terms {
    pub(crate) stock: u64,
    pub(crate) check_after: Duration,
    /// Where to answer `/healthz` and `/metrics`.
    pub(crate) listen: Option<SocketAddr>,
    /// What a client there may take.
    pub(crate) limits: Limits,
}

/// Works until a signal ends it.
pub(crate) fn serve(
    args: &Args,
    urls: &str,
    terms: Terms,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(work(args, urls, terms, out))?)
}

async fn work(args: &Args, urls: &str, terms: Terms, out: &mut dyn Write) -> Result<(), Failure> {
    let settings = Settings {
        partitions: args.partitions,
        stock: terms.stock,
        check_after_ms: terms.check_after.as_millis() as u64,
        remember_ms: args.remember.as_millis() as u64,
    };
    let (metrics, health) = (Arc::new(Metrics::default()), Arc::new(Health::default()));
    if let Some(at) = terms.listen {
        let (metrics, health) = (Arc::clone(&metrics), Arc::clone(&health));
        let address = status::listen(at, terms.limits, metrics, health)
            .map_err(|error| Failure::permanent(format!("cannot listen on {at}: {error}")))?;
        worker::say(out, &format!("listening on {address}"))?;
    }
    let patience = Patience::without_end(Arc::clone(&health));
    let client = broker::connect(urls, &args.worker, &patience).await?;
    health.connected(client.clone());
    let broker = Broker::make(client, settings, args.replicas, &patience).await?;
    let (caught_up, numbers) = mpsc::unbounded_channel();
    let office = Office { broker, metrics, health, snapshot_every: args.snapshot_every, caught_up };
    office.health.ready();
    worker::say(out, &format!("worker {} ready", args.worker))?;
    Worker::new(office, args.worker.clone(), args.lease).run(numbers, out).await
}

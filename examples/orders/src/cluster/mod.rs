//! `serve --nats`: many workers, over a broker that keeps the data.
//!
//! # One log a partition
//!
//! The shop is divided by item into P partitions. Each has a *log*, a JetStream stream with the
//! subjects `shop.P.orders`, `shop.P.payments` and `shop.P.ticks`: one total order of all that
//! happens to its items. Front ends publish lines of JSON there, several to a message. A payment
//! goes to the partition of its order's item, which the front end knows because it sold the item.
//! The line names the item as well, for a tool that divides the shop anew. An order's id belongs to
//! one item: other partitions do not know the id.
//!
//! **Decisions are a pure function of the log** (`partition.rs`). The time of an order or a payment
//! is the one that the broker gave its message, and a check that is due at T is made by the first
//! message after T. No owner's clock decides anything. So two owners of a partition, the present
//! one and one that was paused and does not know it, write the same lines.
//!
//! # Results
//!
//! An owner answers messages by a *result*: a message in the partition's other stream, with a line
//! for each line answered and for each outcome. It names the last message of the log that it
//! answers. The broker takes it only if the last result is still the one that the owner knows
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
//! | an answer of the broker is lost | its reader asks again (`reader.rs`) |
//! | a message was trimmed from the log | its owner begins again, with the newest snapshot |
//! | a part of the log, the results or the snapshot is lost | the partition stands still (`owner.rs`) |
//!
//! The invariant: after result n, which answers the log up to message m, the books of each owner
//! that has applied the log up to m are the same. Each result bears a digest of all lines before
//! it, and a new owner compares: one that decides differently publishes nothing.
//!
//! # Who has which partition
//!
//! Each worker renews a message that the broker forgets after the length of a lease. Which
//! partitions are whose follows from the messages that are there (`worker.rs`). This keeps two
//! owners from doing the same work, mostly; that nothing is decided twice does not depend on it:
//! only the broker's condition on results decides.
//!
//! # Snapshots
//!
//! After a number of lines the owner writes its books into the broker (`snapshot.rs`), and the log
//! is trimmed up to the previous snapshot. A new owner reads the newest one and the rest of the
//! log. A snapshot is as large as what is pending and what is remembered of the past (`memory.rs`).
//!
//! # What the broker must do
//!
//! A message that it has acknowledged stays. JetStream with three replicas keeps it when one server
//! is lost. It does not sync each message to its disk: if all three machines lose their power at
//! once, the last messages may be lost. The servers' clocks should agree well enough for the shop's
//! promise of thirty minutes.
//!
//! # The files, from the bottom up
//!
//! | file | what |
//! |---|---|
//! | `names.rs` | subjects, streams; the partition of an item |
//! | `memory.rs`, `partition.rs` | books as a function of the log. No broker |
//! | `ticks.rs` | when a tick is of use. No broker |
//! | `broker.rs` | the connection, the streams, requests and results |
//! | `reader.rs`, `snapshot.rs` | reading without gaps; snapshots |
//! | `owner.rs` | one partition: reads, decides, publishes |
//! | `worker.rs` | the partitions of a worker, and an owner for each |
//! | `client.rs` | sends lines and receives the answers: for `feed` |

mod args;
mod broker;
mod client;
mod memory;
mod names;
mod owner;
mod partition;
mod reader;
mod snapshot;
mod ticks;
mod worker;

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use broker::{Broker, Failure, Settings};
use worker::Worker;

pub(crate) use args::Args;
pub(crate) use client::{Addressed, Name, ShopClient};
pub(crate) use names::Kind;

/// Works until a signal ends it.
pub(crate) fn serve(
    args: &Args,
    urls: &str,
    stock: u64,
    check_after: Duration,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let &Args { partitions, replicas, remember, lease, snapshot_every, .. } = args;
    let [check_after_ms, remember_ms, lease_ms] =
        [check_after, remember, lease].map(|duration| duration.as_millis() as u64);
    let settings = Settings { partitions, replicas, stock, check_after_ms, remember_ms, lease_ms };
    runtime.block_on(async {
        let client = broker::connect(urls, &args.worker, Duration::MAX).await?;
        let broker = Broker::make(client, settings).await?;
        writeln!(out, "worker {} ready", args.worker)?;
        out.flush()?;
        let (name, owners) = (args.worker.clone(), BTreeMap::new());
        Worker { broker, name, snapshot_every, owners }.run().await
    })
}

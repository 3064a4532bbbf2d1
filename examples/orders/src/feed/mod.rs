//! `feed`: sends orders and payments from CSV files to a cluster, as a front end does.
//!
//! # Times
//!
//! The broker dates an order or a payment when it comes in; the dates in the files are not sent. So by
//! default the dates decide two things only:
//!
//! - *The order of sending.* The orders of an item go by date, in one lane. A payment follows its
//!   order's answer, and earlier payments for the same order.
//! - *What is late.* A payment that is dated after its order's check (`--check-after` after the order)
//!   is left out: it would change nothing.
//!
//! Everything else is sent as fast as it is answered. With `--speed` every line is sent at its date,
//! that many times faster, late payments as well.
//!
//! # A cut
//!
//! A message without an answer is sent again until `--give-up-after`. The shop knows what it has: the
//! answer is `duplicate` then. A feed that is killed keeps nothing: the same command sends all lines
//! again, and those that were answered before are `duplicate`.
//!
//! | file | what |
//! |---|---|
//! | `plan.rs` | what is sent in which lane, and in which order |
//! | `lane.rs` | one lane |

mod lane;
mod plan;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use order_reconciliation::durations;
use order_reconciliation::files::Files;
use tokio::task::JoinSet;

use crate::cluster::ShopClient;
use crate::{Failure, Streams};

use lane::{Done, Pace, Sender, Shared};
use plan::Lane;

/// Sends orders and payments from CSV files to a cluster
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Orders: CSV with the header order_id,item,quantity,amount_cents,placed_at_ms.
    /// `order-reconciliation --write-sample DIR` writes such files
    #[arg(long, value_name = "FILE")]
    orders: PathBuf,

    /// Payments: CSV with the header order_id,amount_cents,paid_at_ms
    #[arg(long, value_name = "FILE")]
    payments: Option<PathBuf>,

    /// The servers of the cluster: nats://HOST:PORT[,...]
    #[arg(long, value_name = "URL")]
    to: String,

    /// Lines in a request, at most
    #[arg(long, value_name = "N", default_value = "100", value_parser = crate::cli::up_to(2_000))]
    batch: usize,

    /// Requests at a time. All orders of an item, and their payments, go one after the other
    #[arg(long, value_name = "N", default_value = "8", value_parser = crate::cli::up_to(256))]
    connections: usize,

    /// The time until the check that the files are made for. A payment dated later than this after
    /// its order is left out, but with `--speed`
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = durations::check_after)]
    check_after: Duration,

    /// Sends each line at its date, this many times faster. Without this option all lines are sent as
    /// fast as they are answered
    #[arg(long, value_name = "FACTOR", value_parser = durations::speed)]
    speed: Option<f64>,

    /// How long to try again when the cluster is not there, or does not answer
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = durations::parse)]
    give_up_after: Duration,
}

/// Sends the files.
pub(crate) fn run(args: &Args, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let files = Files::read(&args.orders, args.payments.as_deref(), streams)
        .map_err(|failure| failure.to_string())?;
    let check_after = args.check_after.as_millis() as u64;
    let lanes = plan::lanes(&files, args.connections, check_after, args.speed.is_some());
    let late = lanes.iter().map(|lane| lane.late).sum::<usize>();
    if late > 0 {
        let _ = writeln!(streams.err, "{late} payments are late by their dates, and left out");
    }
    let begin = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(send(args, files, lanes))?;
    Ok(summary(streams.out, &done, begin.elapsed())?)
}

/// Sends all lanes until they end or one fails.
async fn send(args: &Args, files: Files, lanes: Vec<Lane>) -> Result<Done, Failure> {
    let client = ShopClient::connect(&args.to, args.give_up_after).await?;
    let dates = files.orders.iter().map(|order| order.placed_at);
    let first = dates.chain(files.payments.iter().map(|payment| payment.paid_at)).min();
    let pace = Pace { start: Instant::now(), first: first.unwrap_or(0), speed: args.speed };
    let shared = Arc::new(Shared { client, files, batch: args.batch, pace, done: Mutex::default() });
    let sender = |lane| Sender { shared: Arc::clone(&shared), lane, orders: 0, payments: 0 };
    let mut running = lanes.into_iter().map(|lane| sender(lane).run()).collect::<JoinSet<_>>();
    while let Some(lane) = running.join_next().await {
        lane??;
    }
    Ok(shared.with_done(std::mem::take))
}

fn summary(out: &mut dyn Write, done: &Done, took: Duration) -> io::Result<()> {
    writeln!(out, "| lines | answer | number |\n|---|---|---|")?;
    for ((kind, answer), number) in &done.answers {
        writeln!(out, "| {kind} | {answer} | {number} |")?;
    }
    let (lines, seconds) = (done.answers.values().sum::<u64>(), took.as_secs_f64());
    let per_second = lines as f64 / seconds;
    writeln!(out, "{lines} lines in {seconds:.1} s, {per_second:.0} a second")?;
    writeln!(out, "{} requests were sent more than once", done.repeated)
}

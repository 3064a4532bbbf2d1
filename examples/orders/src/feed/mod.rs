//! `feed`: sends orders and payments from CSV files to a server.
//!
//! # Times
//!
//! A server dates an order or a payment when it comes in; the dates in the files are not sent. So by
//! default the dates decide two things only:
//!
//! - *The order of sending.* The orders of an item go by date, over one connection. A payment follows
//!   its order's answer, and earlier payments for the same order.
//! - *What is late.* A payment that is dated after its order's check (`--check-after` after the order)
//!   is left out: it would change nothing.
//!
//! Everything else is sent as fast as the server takes it. Each outcome is that of a replay if
//! (1) in the replay no order gets stock that a check takes back: the last order is placed before the
//! first check, or there is enough stock; and (2) the server gets each payment before it checks the
//! order: its `--check-after` must be longer than the time for which it is away.
//!
//! With `--speed` every line is sent at its date, that many times faster, late payments as well. If
//! the server's `--check-after` is as many times shorter than that of the files, an hour there is
//! an hour here, and (1) is not needed.
//!
//! # A cut
//!
//! A request without an answer is sent again, and so is one that the server refuses for now. The
//! waits grow up to two seconds, or are what the server asks for, until `--give-up-after`. The server
//! knows what it has: the answer is `duplicate` then.
//!
//! A feed that is killed keeps nothing: the same command sends all lines again, and those that were
//! answered before are `duplicate`. With `--speed` its clock begins anew, too.
//!
//! | file | what |
//! |---|---|
//! | `plan.rs` | what is sent over which connection, and in which order |
//! | `lane.rs` | one connection |
//! | `target.rs` | the kinds of servers |

mod args;
mod lane;
mod plan;
mod target;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use order_reconciliation::files::Files;
use tokio::task::JoinSet;

use crate::exchange::Failure;
use crate::{EXIT_BROKEN, EXIT_OK, Streams};

use lane::{Done, Pace, Sender, Shared};
use plan::Lane;
use target::Target;

pub(crate) use args::Args;

/// Sends the files; returns the exit code.
pub(crate) fn run(args: &Args, streams: &mut Streams<'_>) -> u8 {
    match feed(args, streams) {
        Ok(done) => {
            if let Some(reason) = &done.invalid {
                let _ = writeln!(streams.err, "error: the server finds a line invalid: {reason}");
            }
            if done.invalid.is_some() { EXIT_BROKEN } else { EXIT_OK }
        }
        Err(failure) => {
            let code = failure.report(streams);
            if matches!(failure, Failure::Server(_)) {
                let _ = writeln!(streams.err, "the same command goes on: what the server has is a duplicate");
            }
            code
        }
    }
}

fn feed(args: &Args, streams: &mut Streams<'_>) -> Result<Done, Failure> {
    let target = Target::new(&args.to, args.exchange.token()?.as_deref(), args.exchange.give_up_after)?;
    let files = args.exchange.files(streams)?;
    let check_after = args.check_after.as_millis() as u64;
    let lanes = plan::lanes(&files, args.connections, check_after, args.speed.is_some());
    let late = lanes.iter().map(|lane| lane.late).sum::<usize>();
    if late > 0 {
        let _ = writeln!(streams.err, "{late} payments are late by their dates, and left out");
    }
    let shared = Arc::new(share(args, files));
    let begin = Instant::now();
    send(&shared, &target, lanes)?;
    let done = shared.with_done(|done| done.clone());
    summary(streams.out, &done, begin.elapsed()).map_err(Failure::output)?;
    Ok(done)
}

fn share(args: &Args, files: Files) -> Shared {
    let dates = files.orders.iter().map(|order| order.placed_at);
    let first = dates.chain(files.payments.iter().map(|payment| payment.paid_at)).min();
    Shared {
        batch: args.batch,
        pace: Pace { start: Instant::now(), first: first.unwrap_or(0), speed: args.speed },
        done: Mutex::default(),
        files,
    }
}

/// Sends all lanes until they end or one fails.
fn send(shared: &Arc<Shared>, target: &Target, lanes: Vec<Lane>) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::output)?;
    runtime.block_on(async {
        let sender = |lane| {
            let (shared, link) = (Arc::clone(shared), target.link());
            Sender { shared, lane, link, orders: 0, payments: 0 }
        };
        let mut running = lanes.into_iter().map(|lane| sender(lane).run()).collect::<JoinSet<_>>();
        while let Some(lane) = running.join_next().await {
            lane.expect("a lane does not panic")?;
        }
        Ok(())
    })
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

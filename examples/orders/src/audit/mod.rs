//! `audit`: compares all outcomes of a server with those of a replay of the same CSV files.
//!
//! It reads the outcomes, the orders that have one, and the stock of each item, and changes nothing.
//! `findings.rs` has what must hold. The server must hold the orders of these files and no others.
//! `../feed/mod.rs` says when a server and the replay decide alike.

mod args;
mod findings;
mod source;
mod walk;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use order_reconciliation::files::Files;
use order_reconciliation::outcomes::outcomes;

use crate::client::Endpoint;
use crate::cluster::{self, Results};
use crate::exchange::Failure;
use crate::{EXIT_BROKEN, EXIT_OK, Streams, client};

use findings::{Findings, Rule};
use source::{Outcome, Reader};
use walk::Walk;

pub(crate) use args::Args;

/// The time between two looks at the number of pending orders.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Connections that look at orders.
const CONNECTIONS: usize = 8;

/// Audits a server; returns the exit code.
pub(crate) fn run(args: &Args, streams: &mut Streams<'_>) -> u8 {
    match audit(args, streams) {
        Ok(0) => EXIT_OK,
        Ok(_) => EXIT_BROKEN,
        Err(failure) => failure.report(streams),
    }
}

/// Returns the number of differences.
fn audit(args: &Args, streams: &mut Streams<'_>) -> Result<u64, Failure> {
    if args.from.starts_with(cluster::SCHEME) {
        return audit_cluster(args, streams);
    }
    let token = args.exchange.token()?;
    let source = Arc::new(Endpoint::new(&args.from, token.as_deref(), args.exchange.give_up_after)?);
    let files = args.exchange.files(streams)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build().map_err(Failure::output)?;
    let found = runtime.block_on(read_outcomes(&source, args.wait))?;
    let check_after = args.check_after.as_millis() as u64;
    let expected = outcomes(&files.orders, &files.payments, args.stock, check_after);
    let mut findings = Findings::default();
    let ends = findings.outcomes(&found, expected);
    runtime.block_on(look(&source, &found, kept(&files, &ends), &files, args.stock, &mut findings))?;
    print(streams.out, &findings, &found).map_err(Failure::output)?;
    Ok(findings.differences())
}

/// Returns the number of differences.
fn audit_cluster(args: &Args, streams: &mut Streams<'_>) -> Result<u64, Failure> {
    let files = args.exchange.files(streams)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::output)?;
    let begin = Instant::now();
    loop {
        let results = runtime.block_on(Results::read(&args.from, args.exchange.give_up_after));
        let results = results.map_err(|failure| Failure::Server(client::Failure::broker(failure)))?;
        let mut findings = Findings::default();
        let walk = Walk::new(&files, &results, args.stock, &mut findings);
        let unfinished = walk.unfinished();
        if args.wait && unfinished > 0 && begin.elapsed() < args.exchange.give_up_after {
            thread::sleep(LOOK_EVERY);
            continue;
        }
        findings.expect(Rule::Missing, unfinished == 0, || {
            format!("{unfinished} orders have neither outcome nor refusal")
        });
        let expected = if args.as_answered {
            outcomes(&walk.orders, &walk.paid, args.stock, results.check_after)
        } else {
            let check_after = args.check_after.as_millis() as u64;
            outcomes(&files.orders, &files.payments, args.stock, check_after)
        };
        findings.outcomes(&walk.outcomes, expected);
        print(streams.out, &findings, &walk.outcomes).map_err(Failure::output)?;
        return Ok(findings.differences());
    }
}

/// All outcomes, in the order in which the server returns them.
async fn read_outcomes(source: &Arc<Endpoint>, wait: bool) -> Result<Vec<Outcome>, client::Failure> {
    let mut reader = Reader::new(source);
    while wait && reader.pending().await? > 0 {
        shardwheel::sleep(LOOK_EVERY).await;
    }
    let mut all = Vec::<Outcome>::new();
    loop {
        let after = all.last().map_or(0, |last| last.seq);
        let page = reader.outcomes(after).await?;
        // Numbers that do not increase are reported later; here they must not make an endless loop.
        let ends = page.last().is_none_or(|last| last.seq <= after);
        all.extend(page);
        if ends {
            return Ok(all);
        }
    }
}

/// The units of each item that the outcomes keep.
fn kept<'a>(files: &'a Files, ends: &HashMap<u64, &Outcome>) -> BTreeMap<&'a str, u64> {
    let mut items = BTreeMap::new();
    for order in &files.orders {
        let kept = ends.get(&order.order_id).is_some_and(|end| end.state != "released");
        *items.entry(&*order.item).or_default() += u64::from(order.quantity) * u64::from(kept);
    }
    items
}

/// Looks at orders one by one, over several connections, and at the units of all items.
async fn look(
    source: &Arc<Endpoint>,
    found: &[Outcome],
    kept: BTreeMap<&str, u64>,
    files: &Files,
    stock: u64,
    findings: &mut Findings,
) -> Result<(), client::Failure> {
    let read = async |part: &[Outcome]| {
        let (mut reader, mut orders) = (Reader::new(source), Vec::with_capacity(part.len()));
        for outcome in part {
            orders.push(reader.order(outcome.order_id).await?);
        }
        Ok::<_, client::Failure>(orders)
    };
    let parts = found.chunks(found.len().div_ceil(CONNECTIONS).max(1));
    let orders = try_join_all(parts.map(read)).await?;
    for (outcome, order) in found.iter().zip(orders.into_iter().flatten()) {
        findings.order(outcome, order.as_ref(), files);
    }
    let mut reader = Reader::new(source);
    for (item, kept) in kept {
        findings.stock(item, reader.stock(item).await?, kept, stock);
    }
    Ok(())
}

fn print(out: &mut dyn Write, findings: &Findings, found: &[Outcome]) -> io::Result<()> {
    findings.print(out)?;
    let mut states = BTreeMap::<&str, u64>::new();
    found.iter().for_each(|outcome| *states.entry(&outcome.state).or_default() += 1);
    let states = states.iter().map(|(state, number)| format!("{number} {state}")).collect::<Vec<_>>();
    let (outcomes, states) = (found.len(), states.join(", "));
    writeln!(out, "{outcomes} outcomes ({states})")?;
    match findings.differences() {
        0 => writeln!(out, "no difference"),
        differences => writeln!(out, "{differences} differences"),
    }
}

//! `serve`: orders over HTTP, on one machine, kept in an embedded store.
//!
//! # What is durable when
//!
//! One thread, the *writer*, decides. Request handlers pass it the lines of a request and wait. The
//! writer gathers what has come in and the checks that are due into a *group*, and decides all of it
//! in memory. Another thread, the *committer*, commits all changes of the group by one batch and one
//! sync of the store. Then it answers. So every answer, and every outcome that a reader can see, is on
//! disk. While the disk syncs, the writer decides the next group: the more requests come in, the fewer
//! syncs there are for each, and a check that falls due does not wait for the disk before it is
//! decided. Readers see it after its commit.
//!
//! A group is one transaction. A decision, the change of the sales of its item, and its outcome are
//! part of the same group, so they are there together or not at all.
//!
//! | kept | as |
//! |---|---|
//! | a pending order, with what is paid so far | a record, until the order ends; sorted by the time of the check |
//! | an order that has ended, its outcome | a record each, for ever |
//! | a payment that was counted | its id, for ever; a repetition is a duplicate |
//! | units sold of an item | a number for each item |
//! | units reserved of an item | a number for each item, the sum over the pending orders |
//! | the wheel | not kept: one timer for each pending order in memory |
//! | the shop's time | a number with each commit |
//!
//! # A crash at any instant
//!
//! `writer.rs` has the table, and `../../DESIGN.md` what a restart reads. Nothing acknowledged is
//! lost, because answers follow the sync. Nothing is decided twice: an order is pending in the
//! store until the group that holds its outcome replaces it, the writer is alone, and the store
//! locks its directory. A client that was cut off sends its lines again: orders and payments are
//! known by their ids, and a repetition changes nothing.
//!
//! Two answers leave no trace: *sold out* and *late*. A client that repeats such a line gets the answer
//! that is true at that time.
//!
//! # The files, from the bottom up
//!
//! | file | what |
//! |---|---|
//! | `order_reconciliation::rules`, `../store/` | what decides an order; what survives |
//! | `lines.rs` | lines in, lines out |
//! | `clock.rs` | a time that never goes back, also over a restart |
//! | `books.rs`, `books/` | the decisions; which pending orders are in memory; the timers; what a commit changes |
//! | `metrics.rs` | counts |
//! | `writer.rs`, `committer.rs` | recovery and groups; commits and answers |
//! | `places.rs`, `http.rs` | connections: their number, their time limits; the routes |

mod args;
pub(crate) mod books;
mod clock;
mod committer;
mod http;
pub(crate) mod lines;
mod metrics;
mod places;
mod writer;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::Sender;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::store::{Disk, StoreError};
use crate::{Failure, Streams, cluster};

use books::Shop;
use http::Context;
use metrics::Metrics;
use writer::{Message, Writer};

pub(crate) use args::Args;

/// The address without `--listen`.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// What `serve` says without either of them.
const CHOOSE: &str = "choose where the orders are kept: with --data DIR, in a directory of this machine, for one \
                      server; with --nats URL, in a NATS cluster, for any number of workers";

/// Serves until a signal ends it.
pub(crate) fn run(args: &Args, streams: &mut Streams<'_>) -> Result<(), Failure> {
    match (&args.cluster, &args.data) {
        (None, Some(data)) => serve(args, data, streams.out),
        (Some(own @ cluster::Args { nats: Some(urls), .. }), None) => {
            cluster::serve(own, urls, args.stock, args.check_after, streams.out)
        }
        (Some(_), _) => {
            Err("--worker, --partitions, --replicas, --lease, --remember and --snapshot-every are for --nats"
                .into())
        }
        (None, None) => Err(CHOOSE.into()),
    }
}

fn serve(args: &Args, data: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build()?;
    let listen = args.listen.unwrap_or(LISTEN);
    // Clients that come while the store is opened wait in the system's queue.
    let listener = runtime
        .block_on(async { places::bind(listen) })
        .map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let address = listener.local_addr()?;
    let failed = |error| format!("{}: {error}", data.display());
    let (store, metrics) = (Arc::new(Disk::open(data).map_err(failed)?), Arc::new(Metrics::default()));
    let shop = Shop {
        stock: args.stock,
        check_after: args.check_after.as_millis() as u64,
        in_memory: args.in_memory,
    };
    let writer = Writer::recover(shop, Arc::clone(&store), Arc::clone(&metrics)).map_err(failed)?;
    // A connection has one request at a time, so the queue has room for all.
    let (messages, inbox) = crossbeam_channel::bounded(args.limits.max_connections);
    let (end, ended) = oneshot::channel();
    // No receiver is left once the program ends by itself.
    thread::Builder::new().name("writer".to_owned()).spawn(move || drop(end.send(writer.run(&inbox))))?;
    let (messages_of_handlers, timeout) = (messages.clone(), args.limits.timeout);
    let context = Arc::new(Context { store, metrics, messages: messages_of_handlers, timeout });
    runtime.spawn(places::serve(listener, args.limits, move |request| {
        http::handle(Arc::clone(&context), request)
    }));
    writeln!(out, "listening on {address}")?;
    out.flush()?;
    let ended = until_end(&runtime, &messages, ended);
    // A look-up may wait for the disk.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ended?.map_err(failed)?)
}

/// Waits for a signal, and then for the writer's last commit; or for the writer's failure.
fn until_end(
    runtime: &Runtime,
    messages: &Sender<Message>,
    mut ended: oneshot::Receiver<Result<(), StoreError>>,
) -> Result<Result<(), StoreError>, Failure> {
    let by_itself = runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            _ = terminate.recv() => Ok::<_, Failure>(None),
            _ = interrupt.recv() => Ok(None),
            ended = &mut ended => Ok(Some(ended)),
        }
    })?;
    let ended = by_itself.unwrap_or_else(|| {
        // The writer takes messages until it ends, so this waits for a group at most.
        let _ = messages.send(Message::Stop);
        ended.blocking_recv()
    });
    ended.map_err(|_| "the writer has panicked".into())
}

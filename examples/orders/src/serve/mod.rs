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
//! | `metrics.rs`, `shared.rs` | counts; what writer and handlers share |
//! | `writer.rs`, `committer.rs` | recovery and groups; commits and answers |
//! | `places.rs` | connections: their number, their time limits |
//! | `http.rs`, `access.rs`, `status.html` | the routes; who may ask; the status page |

mod access;
mod args;
pub(crate) mod books;
mod clock;
mod committer;
mod http;
pub(crate) mod lines;
mod metrics;
mod places;
mod shared;
mod writer;

use std::error::Error;
use std::future;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::Sender;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::store::StoreError;
use crate::{EXIT_OK, EXIT_USAGE, Streams, cluster, log};

use books::Shop;
use http::Context;
use shared::Shared;
use writer::Message;

pub(crate) use args::Args;

/// The address without `--listen`.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// What `serve` says without either of them.
const CHOOSE: &str = "choose where the orders are kept: with --data DIR, in a directory of this machine, for one \
                      server; with --nats URL, in a NATS cluster, for any number of workers";

type Failure = Box<dyn Error + Send + Sync>;

/// Serves until a signal ends it; returns the exit code.
pub(crate) fn run(args: &Args, streams: &mut Streams<'_>) -> u8 {
    let served = match (&args.cluster, &args.data) {
        (None, Some(data)) => serve(args, data, streams.out),
        (Some(cluster::Args { nats: Some(urls), .. }), None) => serve_cluster(args, urls, streams.out),
        (Some(_), _) => {
            Err("--worker, --partitions, --replicas, --lease, --remember and --snapshot-every are for --nats"
                .into())
        }
        (None, None) => Err(CHOOSE.into()),
    };
    match served {
        Ok(()) => EXIT_OK,
        Err(failure) => {
            // If standard error is closed too, nothing can be reported.
            let _ = writeln!(streams.err, "{} error: {failure}", log::now());
            EXIT_USAGE
        }
    }
}

fn serve_cluster(args: &Args, urls: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(cluster) = &args.cluster else { return Err(CHOOSE.into()) };
    cluster::serve(cluster, urls, args.stock, args.check_after, out)
}

fn serve(args: &Args, data: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build()?;
    let listen = args.listen.unwrap_or(LISTEN);
    let token = args.token.read()?;
    let listener = runtime
        .block_on(async { places::bind(listen) })
        .map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared::default());
    let Writer { messages, opened, ended } = start_writer(args, data, Arc::clone(&shared))?;
    let timeout = args.limits.timeout;
    let context = Arc::new(Context { shared, messages: messages.clone(), token, timeout });
    let handle = move |request| http::handle(Arc::clone(&context), request);
    runtime.spawn(places::serve(listener, args.limits, handle));
    let announce = async {
        if opened.await.is_ok() {
            writeln!(out, "listening on {address}").and_then(|()| out.flush())?;
        }
        future::pending().await
    };
    let ended = until_end(&runtime, announce, messages, ended);
    // A look-up may wait for the disk.
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended.map_err(|error| format!("{}: {error}", data.display()).into())
}

/// Waits for a signal, and then for the writer's last commit; or for the writer's failure.
fn until_end(
    runtime: &Runtime,
    announce: impl Future<Output = io::Result<()>>,
    messages: Sender<Message>,
    mut ended: oneshot::Receiver<Result<(), StoreError>>,
) -> Result<(), StoreError> {
    let signalled = runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            _ = terminate.recv() => Ok(None),
            _ = interrupt.recv() => Ok(None),
            ended = &mut ended => Ok(Some(ended)),
            failed = announce => failed.map(|()| None),
        }
    });
    let ended = signalled.map_err(StoreError::Io)?.unwrap_or_else(|| {
        // The writer takes messages until it ends, so this waits for a group at most.
        let _ = messages.send(Message::Stop);
        ended.blocking_recv()
    });
    ended.unwrap_or_else(|_| Err(StoreError::Engine("the writer panicked".into())))
}

struct Writer {
    messages: Sender<Message>,
    /// The store is open, or waits for room.
    opened: oneshot::Receiver<()>,
    ended: oneshot::Receiver<Result<(), StoreError>>,
}

fn start_writer(args: &Args, data: &Path, shared: Arc<Shared>) -> io::Result<Writer> {
    let shop = Shop {
        stock: args.stock,
        check_after: args.check_after.as_millis() as u64,
        max_pending: args.max_pending,
        in_memory: args.in_memory,
    };
    // A connection has one request at a time, so the queue has room for all.
    let (messages, inbox) = crossbeam_channel::bounded(args.limits.max_connections);
    let ((open, opened), (end, ended)) = (oneshot::channel(), oneshot::channel());
    let directory = data.to_owned();
    thread::Builder::new().name("writer".to_owned()).spawn(move || {
        let result = writer::run(&directory, shop, &inbox, &shared, open);
        // No receiver is left once the program ends by itself.
        let _ = end.send(result);
    })?;
    Ok(Writer { messages, opened, ended })
}

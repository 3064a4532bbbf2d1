//! The whole server: the threads, each with its core, and what they are given at the start.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::{process, thread};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;

use crate::acceptor;
use crate::commands::config::Settings;
use crate::desk::Desk;
use crate::keyspace::timers;
use crate::mail::Mailbox;
use crate::shared::Shared;
use crate::stats::metrics;
use crate::worker::Worker;

/// Connections that wait to be accepted, if the system allows so many.
const BACKLOG: i32 = 4096;

/// By default, there are so many cores for each thread: the kernel's network, and clients of the same
/// machine, need the others. To forward a request costs as much as to serve it, so with one core for each
/// thread they only take turns.
const CORES_A_THREAD: usize = 2;

/// Serves until it receives a signal to stop, and has drained.
///
/// With `--pin`, each worker has a core of its own while there are cores left. A thread that panics ends
/// the process: no other thread has its keys and its clients.
pub(crate) fn serve(mut settings: Settings, give_back: fn(), out: &mut dyn Write) -> io::Result<()> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let threads = settings.threads.map_or((cores.len() / CORES_A_THREAD).max(1), usize::from);
    let threads = if settings.one_thread { 1 } else { threads };
    let (schedulers, advancers): (Vec<_>, Vec<_>) = (0..threads).map(|_| timers()).unzip();
    // Each client is a file. If the system refuses, there are fewer clients.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let listener =
        mio::net::TcpListener::bind(settings.listen).map_err(|error| on(settings.listen, &error))?;
    rustix::net::listen(&listener, BACKLOG)?;
    settings.listen = listener.local_addr()?;
    settings.password = settings.password_file.take().unwrap_or(settings.password);
    if settings.password.is_empty() && !settings.listen.ip().is_loopback() {
        writeln!(io::stderr(), "warning: {} is open to everybody: there is no password", settings.listen)?;
    }
    // Before anybody knows that there is a server.
    let signals = Signals::new([SIGTERM, SIGINT])?;
    let shared = Arc::new(Shared::new(schedulers, settings.clone()));
    writeln!(out, "listening on {}", settings.listen)?;
    if let Some(address) = settings.metrics {
        let listener = std::net::TcpListener::bind(address).map_err(|error| on(address, &error))?;
        writeln!(out, "metrics on http://{}/metrics", listener.local_addr()?)?;
        let shared = Arc::clone(&shared);
        thread::Builder::new().name("metrics".into()).spawn(move || metrics::serve(&listener, &shared))?;
    }
    out.flush()?;

    let mut mailboxes = Mailbox::all(threads + 1)?;
    let mailbox = mailboxes.remove(threads);
    let workers = mailboxes.into_iter().zip(advancers).enumerate();
    let running = workers.map(|(number, ((poll, mailbox), advancer))| {
        let desk = Desk::new(number, &shared, mailbox);
        let (worker, core) = (
            Worker::new(poll, advancer, desk, give_back),
            cores.get(number).copied().filter(|_| settings.pin),
        );
        thread::Builder::new().name(format!("cache-{number}")).spawn(move || {
            core.map(core_affinity::set_for_current);
            panic::catch_unwind(AssertUnwindSafe(|| worker.run())).unwrap_or_else(|_| process::abort())
        })
    });
    let running = running.collect::<io::Result<Vec<_>>>()?;
    let served = acceptor::serve(mailbox, listener, signals, &shared);
    running.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| process::abort()))?;
    served
}

fn on(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
}

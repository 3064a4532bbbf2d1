//! The whole server: the threads, each with its core, and what they are given at the start.

use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::{process, thread};

use core_affinity::CoreId;
use mio::Poll;
use mio::net::TcpListener;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::args::Args;
use crate::desk::Desk;
use crate::keyspace::timers;
use crate::mail::Mailbox;
use crate::shared::Shared;
use crate::worker::Worker;
use crate::worker::door::Door;

/// Serves until it receives a signal to stop, and has drained.
pub(crate) fn serve(args: &Args, out: &mut dyn Write) -> io::Result<()> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let threads = args.threads(cores.len());
    allow_files();
    let listener = TcpListener::bind(args.listen).map_err(|error| on(args.listen, &error))?;
    let metrics = args.metrics.map(|at| TcpListener::bind(at).map_err(|error| on(at, &error))).transpose()?;
    let shared = Arc::new(Shared::new(threads, listener.local_addr()?));
    announce(&shared, metrics.as_ref(), out)?;
    let polls = (0..threads).map(|_| Poll::new()).collect::<io::Result<Vec<_>>>()?;
    let mut door = Some(Door::new(listener, metrics, polls[0].registry())?);
    let mailboxes = Mailbox::all(&polls)?;
    let settings = args.settings(shared.address.port());
    let workers = polls.into_iter().zip(mailboxes).enumerate().map(|(number, (poll, mailbox))| {
        let (scheduler, advancer) = timers();
        let desk = Desk::new(number, Arc::clone(&shared), settings.clone(), mailbox, scheduler);
        Worker::new(poll, advancer, desk, door.take())
    });
    run(workers.collect(), &cores)
}

fn on(address: std::net::SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
}

fn announce(shared: &Shared, metrics: Option<&TcpListener>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "listening on {}", shared.address)?;
    if let Some(metrics) = metrics {
        writeln!(out, "metrics on http://{}/metrics", metrics.local_addr()?)?;
    }
    out.flush()
}

/// Runs each worker in a thread of its own, with a core of its own while there are cores left. A
/// thread that panics ends the process: no other thread has its keys and its clients.
fn run(workers: Vec<Worker>, cores: &[CoreId]) -> io::Result<()> {
    let running = workers.into_iter().enumerate().map(|(number, worker)| {
        let core = cores.get(number).copied();
        thread::Builder::new().name(format!("cache-{number}")).spawn(move || {
            core.map(core_affinity::set_for_current);
            let run = AssertUnwindSafe(|| worker.run());
            panic::catch_unwind(run).unwrap_or_else(|_| process::abort())
        })
    });
    let running = running.collect::<io::Result<Vec<_>>>()?;
    running.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| process::abort()))
}

/// Lets the process open as many files as it may: each client is one.
fn allow_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If the system refuses, there are fewer clients.
    let _ = setrlimit(Resource::Nofile, limit);
}

//! The whole server: the threads, each with its core, and what they are given at the start.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;

use core_affinity::CoreId;
use mio::Poll;
use mio::net::TcpListener;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::args::Args;
use crate::desk::Desk;
use crate::mail::{Bell, Mailbox};
use crate::shared::Shared;
use crate::worker::Worker;
use crate::worker::door::Door;
use crate::worker::event_loop::{EventLoop, WAKE, timers};

/// Serves until it is told to stop, and has drained.
pub(crate) fn serve(args: &Args, out: &mut dyn Write) -> io::Result<()> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let threads = args.threads(cores.len());
    allow_files();
    let listener = TcpListener::bind(args.listen).map_err(|error| on(args.listen, &error))?;
    let metrics = args.metrics.map(|at| TcpListener::bind(at).map_err(|error| on(at, &error))).transpose()?;
    let shared = Arc::new(Shared::new(threads, listener.local_addr()?));
    announce(&shared, metrics.as_ref(), out)?;
    let mut workers = workers(args, &shared, threads)?;
    let first = &mut workers[0];
    first.take_door(Door::new(listener, metrics, first.registry())?);
    run(workers, &cores)
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

fn workers(args: &Args, shared: &Arc<Shared>, threads: usize) -> io::Result<Vec<Worker>> {
    let polls = (0..threads).map(|_| Poll::new()).collect::<io::Result<Vec<_>>>()?;
    let bells = polls.iter().map(|poll| Ok(Arc::new(Bell::new(mio::Waker::new(poll.registry(), WAKE)?))));
    let mailboxes = Mailbox::all(&bells.collect::<io::Result<Vec<_>>>()?);
    let settings = args.settings(shared.address.port());
    let workers = polls.into_iter().zip(mailboxes).enumerate().map(|(number, (poll, mailbox))| {
        let (scheduler, advancer) = timers();
        let event_loop = EventLoop::new(poll, advancer, shared.clock, mailbox.waker());
        Worker::new(event_loop, Desk::new(number, Arc::clone(shared), settings.clone(), mailbox, scheduler))
    });
    Ok(workers.collect())
}

/// Runs each worker in a thread of its own, with a core of its own while there are cores left.
fn run(workers: Vec<Worker>, cores: &[CoreId]) -> io::Result<()> {
    let running = workers.into_iter().enumerate().map(|(number, worker)| {
        let core = cores.get(number).copied();
        thread::Builder::new().name(format!("cache-{number}")).spawn(move || {
            core.map(core_affinity::set_for_current);
            let _guard = EndOfAll;
            worker.run()
        })
    });
    let running = running.collect::<io::Result<Vec<_>>>()?;
    running
        .into_iter()
        .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
}

/// A thread that panics ends the process: its keys and its clients are nobody else's.
struct EndOfAll;

impl Drop for EndOfAll {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

/// Lets the process open as many files as it may: each client is one.
fn allow_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If the system refuses, there are fewer clients.
    let _ = setrlimit(Resource::Nofile, limit);
}

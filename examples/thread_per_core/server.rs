//! The server: its threads, each with its own core, poller, shard and listener.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use core_affinity::CoreId;
use mio::net::TcpListener;

use super::clock::Clock;
use super::event_loop::EventLoop;
use super::tally::Tally;
use super::worker::{Setting, Worker};

/// A running server. Dropping it stops it.
pub(crate) struct Server {
    threads: Vec<JoinHandle<io::Result<Tally>>>,
    addresses: Vec<SocketAddr>,
    setting: Arc<Setting>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Starts `threads` threads; the first ones are pinned, each to one of `cores`.
    pub(crate) fn start(
        threads: usize,
        cores: &[CoreId],
        idle_timeout: Duration,
        clock: &Clock,
    ) -> io::Result<Self> {
        let halves = (0..threads).map(|_| EventLoop::new(clock)).collect::<io::Result<Vec<_>>>()?;
        let (loops, handles) = halves.into_iter().unzip::<_, _, Vec<_>, _>();
        let setting = Arc::new(Setting { clock: clock.clone(), idle_timeout, handles });
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = Self { threads: Vec::new(), addresses: Vec::new(), setting, stop };
        for (number, event_loop) in loops.into_iter().enumerate() {
            let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
            server.addresses.push(listener.local_addr()?);
            let worker = Worker::new(number, event_loop, listener, Arc::clone(&server.setting))?;
            server.start_thread(number, cores.get(number).copied(), worker)?;
        }
        Ok(server)
    }

    fn start_thread(&mut self, number: usize, core: Option<CoreId>, worker: Worker) -> io::Result<()> {
        let stop = Arc::clone(&self.stop);
        let thread = thread::Builder::new().name(format!("server {number}")).spawn(move || {
            let pinned = core.is_some_and(core_affinity::set_for_current);
            let tally = worker.run(&stop)?;
            Ok(Tally { pinned: u64::from(pinned), ..tally })
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// The address on which each thread listens.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Stops all threads, and adds up their counts.
    pub(crate) fn stop(mut self) -> io::Result<Tally> {
        self.tell_to_stop();
        let mut tally = Tally::default();
        for thread in self.threads.drain(..) {
            tally += thread.join().expect("a serving thread does not panic")?;
        }
        Ok(tally)
    }

    fn tell_to_stop(&self) {
        // Ordering: Release, pairs with the workers' Acquire.
        self.stop.store(true, Ordering::Release);
        self.setting.handles.iter().for_each(|handle| handle.wake());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tell_to_stop();
    }
}

//! The first thread's door: it accepts all connections, and receives the signals to stop.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream as StdUnixStream;

use mio::net::{TcpListener, TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use signal_hook::consts::{SIGINT, SIGTERM};

pub(crate) const CLIENTS: Token = Token(usize::MAX - 1);
pub(crate) const METRICS: Token = Token(usize::MAX - 2);
pub(crate) const SIGNALS: Token = Token(usize::MAX - 3);

/// Connections that are accepted in one round.
const AT_ONCE: usize = 256;

#[derive(Debug)]
pub(crate) struct Door {
    clients: TcpListener,
    metrics: Option<TcpListener>,
    /// Readable after a signal.
    _signals: UnixStream,
    /// The thread that gets the next connection.
    turn: usize,
}

impl Door {
    pub(crate) fn new(
        mut clients: TcpListener,
        mut metrics: Option<TcpListener>,
        registry: &Registry,
    ) -> io::Result<Self> {
        registry.register(&mut clients, CLIENTS, Interest::READABLE)?;
        if let Some(metrics) = &mut metrics {
            registry.register(metrics, METRICS, Interest::READABLE)?;
        }
        let (receiver, sender) = StdUnixStream::pair()?;
        receiver.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGTERM, sender.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGINT, sender)?;
        let mut signals = UnixStream::from_std(receiver);
        registry.register(&mut signals, SIGNALS, Interest::READABLE)?;
        Ok(Self { clients, metrics, _signals: signals, turn: 0 })
    }

    /// Accepts connections that wait, but not too many at once. True if more may wait, or
    /// the system had no room: the poller will not report it again.
    pub(crate) fn accept(&self, token: Token, streams: &mut Vec<TcpStream>) -> bool {
        let listener = if token == CLIENTS { Some(&self.clients) } else { self.metrics.as_ref() };
        while let Some(listener) = listener
            && streams.len() < AT_ONCE
        {
            match listener.accept().map_err(|error| error.kind()) {
                Ok((stream, _)) => streams.push(stream),
                Err(ErrorKind::WouldBlock) => return false,
                // The client left before it was accepted, or a signal came.
                Err(ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(_) => break,
            }
        }
        true
    }

    /// The thread that serves the next client: each in turn.
    pub(crate) fn next_thread(&mut self, threads: usize) -> usize {
        self.turn = (self.turn + 1) % threads;
        self.turn
    }
}

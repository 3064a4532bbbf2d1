//! The first thread's door: it accepts all connections, and hears the signals to stop.

use std::io::{self, Write};
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

/// How accepting went.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) streams: Vec<TcpStream>,
    /// Whether more may wait, or the system had no room: the poller will not say so again.
    pub(crate) try_again: bool,
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
        let (heard, said) = StdUnixStream::pair()?;
        heard.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGTERM, said.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGINT, said)?;
        let mut signals = UnixStream::from_std(heard);
        registry.register(&mut signals, SIGNALS, Interest::READABLE)?;
        Ok(Self { clients, metrics, _signals: signals, turn: 0 })
    }

    /// Accepts those that wait, but not too many at once.
    pub(crate) fn accept(&self, token: Token) -> Accepted {
        let mut accepted = Accepted { streams: Vec::new(), try_again: false };
        let Some(listener) = (if token == CLIENTS { Some(&self.clients) } else { self.metrics.as_ref() })
        else {
            return accepted;
        };
        while accepted.streams.len() < AT_ONCE {
            match listener.accept() {
                Ok((stream, _)) => accepted.streams.push(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return accepted,
                // The client left before it was accepted, or a signal came.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                    ) => {}
                Err(_) => break,
            }
        }
        accepted.try_again = true;
        accepted
    }

    /// The thread that serves the next client: each in turn.
    pub(crate) fn next_thread(&mut self, threads: usize) -> usize {
        self.turn = (self.turn + 1) % threads;
        self.turn
    }
}

/// Tells a client that there is no room for it.
pub(crate) fn turn_away(mut stream: TcpStream) {
    // The first bytes always fit; a client that has left needs none.
    let _ = stream.write(b"-ERR max number of clients reached\r\n");
}

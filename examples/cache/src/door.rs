//! The door: the main thread accepts all connections, hands each to a worker in turn, and receives
//! the signals to stop.

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;

use mio::net::{TcpListener, UnixStream};
use mio::{Events, Interest, Poll, Token};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::mail::{Mailbox, Message};
use crate::shared::Shared;
use crate::stats::Figure;

const CLIENTS: Token = Token(0);
const SIGNALS: Token = Token(1);
/// When a connection found no descriptor, or a message no room, the door tries again after this.
const SOON: Duration = Duration::from_millis(1);

pub(crate) struct Door {
    poll: Poll,
    listener: TcpListener,
    /// Readable after a signal.
    _signals: UnixStream,
    mailbox: Mailbox,
    /// The worker that gets the next connection.
    turn: usize,
}

impl Door {
    pub(crate) fn new(poll: Poll, mut listener: TcpListener, mailbox: Mailbox) -> io::Result<Self> {
        let (receiver, sender) = StdUnixStream::pair()?;
        receiver.set_nonblocking(true)?;
        pipe::register(SIGTERM, sender.try_clone()?)?;
        pipe::register(SIGINT, sender)?;
        let mut signals = UnixStream::from_std(receiver);
        poll.registry().register(&mut signals, SIGNALS, Interest::READABLE)?;
        poll.registry().register(&mut listener, CLIENTS, Interest::READABLE)?;
        Ok(Self { poll, listener, _signals: signals, mailbox, turn: 0 })
    }

    /// Accepts connections until a signal comes or a worker has failed. Then nobody listens any more.
    pub(crate) fn serve(mut self, shared: &Shared) -> io::Result<()> {
        let (mut events, mut timeout) = (Events::with_capacity(8), None);
        while !shared.is_draining() {
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            if events.iter().any(|event| event.token() == SIGNALS) {
                break;
            }
            let is_short = self.accept(shared);
            let is_full = self.mailbox.post();
            timeout = Some(SOON).filter(|_| is_short || is_full);
        }
        shared.drain();
        self.mailbox.wake_all();
        Ok(())
    }

    /// Accepts all connections that wait. True if the system has no descriptor for another: the poller
    /// will not report it again.
    fn accept(&mut self, shared: &Shared) -> bool {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) if shared.admit() => {
                    self.turn = (self.turn + 1) % shared.threads();
                    self.mailbox.send(self.turn, Message::Connection(stream));
                }
                Ok((mut stream, _)) => {
                    // The first worker does not count these, so the door does.
                    shared.stats[0].add(Figure::Refused, 1);
                    // The first bytes always fit; a client that has left needs none.
                    let _ = stream.write(b"-ERR max number of clients reached\r\n");
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return false,
                    // The client left before it was accepted, or a signal came.
                    ErrorKind::ConnectionAborted | ErrorKind::Interrupted => {}
                    _ => return true,
                },
            }
        }
    }
}

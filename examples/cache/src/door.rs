//! The door: the main thread accepts all connections, and hands each to a worker in turn.

use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};

use crate::mail::{Mailbox, Message};
use crate::shared::Shared;
use crate::stats::Figure;

/// When a connection found no descriptor, or a message no room, the door tries again after this.
const SOON: Duration = Duration::from_millis(1);

pub(crate) struct Door {
    poll: Poll,
    listener: TcpListener,
    mailbox: Mailbox,
    /// The worker that gets the next connection.
    turn: usize,
}

impl Door {
    pub(crate) fn new(poll: Poll, mut listener: TcpListener, mailbox: Mailbox) -> io::Result<Self> {
        poll.registry().register(&mut listener, Token(0), Interest::READABLE)?;
        Ok(Self { poll, listener, mailbox, turn: 0 })
    }

    /// Accepts connections until the server is to end. Then it listens no more.
    pub(crate) fn serve(mut self, shared: &Shared) -> io::Result<()> {
        let (mut events, mut timeout) = (Events::with_capacity(8), None);
        while !shared.is_draining() {
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    shared.drain();
                    self.mailbox.alarm()();
                    return Err(error);
                }
                _ => {}
            }
            let is_short = self.accept(shared);
            let is_full = self.mailbox.post();
            timeout = Some(SOON).filter(|_| is_short || is_full);
        }
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

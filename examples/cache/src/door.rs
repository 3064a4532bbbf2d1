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

/// Accepts connections until the server is to end. Then nothing listens any more.
pub(crate) fn serve(door: (Poll, Mailbox), mut listener: TcpListener, shared: &Shared) -> io::Result<()> {
    let (mut poll, mut mailbox) = door;
    poll.registry().register(&mut listener, Token(0), Interest::READABLE)?;
    let (mut events, mut timeout, mut turn) = (Events::with_capacity(8), None, 0);
    while !shared.is_draining() {
        if let Err(error) = poll.poll(&mut events, timeout)
            && error.kind() != ErrorKind::Interrupted
        {
            shared.drain();
            mailbox.alarm()();
            return Err(error);
        }
        let is_short = accept(&listener, shared, &mut mailbox, &mut turn);
        let is_full = mailbox.post();
        timeout = Some(SOON).filter(|_| is_short || is_full);
    }
    Ok(())
}

/// Accepts all connections that wait. `turn` counts them. True if the system has no descriptor for
/// another: the poller will not report it again.
fn accept(listener: &TcpListener, shared: &Shared, mailbox: &mut Mailbox, turn: &mut usize) -> bool {
    loop {
        match listener.accept().map_err(|error| error.kind()) {
            Ok((stream, _)) if shared.admit() => {
                mailbox.send(*turn % shared.threads(), Message::Connection(stream));
                *turn += 1;
            }
            Ok((mut stream, _)) => {
                // The first worker does not count these, so the door does.
                shared.stats[0].add(Figure::Refused, 1);
                // The first bytes always fit; a client that has left needs none.
                let _ = stream.write(b"-ERR max number of clients reached\r\n");
            }
            Err(ErrorKind::WouldBlock) => return false,
            // The client left before it was accepted, or a signal came.
            Err(ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
            Err(_) => return true,
        }
    }
}

//! The acceptor: the main thread accepts all connections, and hands each to a worker in turn.

use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use signal_hook_mio::v1_0::Signals;

use crate::mail::Mailbox;
use crate::session::{Session, SessionId};
use crate::shared::Shared;
use crate::stats::Figure;

/// If there was no descriptor for a connection, the acceptor tries again after this.
const SOON: Duration = Duration::from_millis(1);

/// Accepts until a signal comes, or a worker fails. Then nothing listens any more.
pub(crate) fn serve(
    (mut poll, mailbox): (Poll, Mailbox),
    mut listener: TcpListener,
    mut signals: Signals,
    shared: &Shared,
) -> io::Result<()> {
    poll.registry().register(&mut listener, Token(0), Interest::READABLE)?;
    poll.registry().register(&mut signals, Token(1), Interest::READABLE)?;
    let (mut events, mut timeout, mut last, mut ended) = (Events::with_capacity(8), None, 0, Ok(()));
    while !shared.is_draining() {
        ended = match poll.poll(&mut events, timeout) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        };
        let is_end = ended.is_err() || signals.pending().next().is_some();
        // Before the drain: a worker ends when the server drains and has no clients. After the look at the signals:
        // whoever has connected before a signal is served.
        timeout = accept(&listener, shared, &mailbox, &mut last).then_some(SOON);
        if is_end {
            shared.drain();
            mailbox.wake_all();
        }
    }
    ended
}

/// Accepts all connections that wait. `last` is the number of the last one. True if the system has no descriptor for
/// another: the poller will not report it again.
fn accept(listener: &TcpListener, shared: &Shared, mailbox: &Mailbox, last: &mut u64) -> bool {
    loop {
        match listener.accept().map_err(|error| error.kind()) {
            Ok((stream, _)) if shared.admit() => {
                *last += 1;
                let id = SessionId { number: *last, ..SessionId::default() };
                let session = Session { stream: Some(stream), id, ..Session::default() };
                let thread = *last as usize % shared.threads();
                shared.arrivals(thread).push_back(Box::new(session));
                mailbox.wake(thread);
            }
            Ok((mut stream, _)) => {
                // The first worker does not count these, so the acceptor does.
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

//! Accepting, reading, writing and closing. No socket blocks, so no signal interrupts a call.

use std::io::{Read, Write};
use std::sync::Arc;

use mio::Interest;

use super::*;
use crate::session::Session;

impl Worker {
    /// Registers the sockets of clients that have come in this round.
    pub(super) fn register(&mut self) -> io::Result<()> {
        for slot in std::mem::take(&mut self.desk.newcomers) {
            if let Some(stream) = &mut self.desk.sessions[slot].stream {
                // Without it, a small reply may wait for the client's acknowledgement of the one before.
                let _ = stream.set_nodelay(true);
                let either = Interest::READABLE | Interest::WRITABLE;
                self.poll.registry().register(stream, Token(slot), either)?;
            }
        }
        Ok(())
    }

    /// Reads what a client has sent, but not more than fits into the buffer: others wait, too. True if
    /// there may be more.
    pub(super) fn read(&mut self, slot: usize, is_last: bool) -> bool {
        let Some(session) = self.desk.sessions.get_mut(slot) else { return false };
        session.has_ended |= is_last;
        // What comes after an MGET that goes on may be the end.
        let is_busy = session.is_paused || session.has_requests || !session.rest.is_empty();
        if session.ending != Ending::Open || is_busy {
            return false;
        }
        let (has_ended, Some(stream)) = (session.has_ended, &mut session.stream) else { return false };
        let (has_more, ending) = match stream.read(&mut self.buffer).map_err(|error| error.kind()) {
            Ok(len @ 1..) => {
                self.desk.receive(slot, &self.buffer[..len]);
                // A read that does not fill the buffer has emptied the socket, except for its end.
                (has_ended || len == self.buffer.len(), None)
            }
            Err(ErrorKind::WouldBlock) => (false, None),
            // The client may still wait for replies.
            Ok(0) => (false, Some(Ending::WhenAnswered)),
            Err(_) => (false, Some(Ending::Now)),
        };
        if has_more {
            self.desk.resuming.push(slot);
        }
        if let Some(ending) = ending {
            self.desk.sessions[slot].ending = ending;
            self.desk.touch(slot);
        }
        has_more
    }

    /// Writes to all clients that are owed something; closes those that are to be closed, and sends others
    /// to the threads to which they move.
    pub(super) fn write_all(&mut self) {
        for slot in std::mem::take(&mut self.desk.dirty) {
            let Some(session) = self.desk.sessions.get_mut(slot) else { continue };
            session.is_dirty = false;
            let written = write(session);
            self.desk.stats.add(Figure::BytesOut, written);
            let to = if let Ending::MovesTo(it) = session.ending { Some(it) } else { None };
            // What a client has not read moves with it.
            let is_written = to.is_some() || session.replies.ready().is_empty();
            let is_served = session.ending != Ending::Open && session.replies.are_there() && is_written;
            if session.ending != Ending::Now && !is_served {
                self.desk.settle(slot);
                if written > 0 {
                    // A client that takes a long reply slowly is not idle.
                    self.desk.put_off(slot);
                    let session = &mut self.desk.sessions[slot];
                    session.behind_since = session.behind_since.map(|_| session.active);
                }
                continue;
            }
            let shared = Arc::clone(&self.desk.shared);
            let arrivals = to.map(|it| shared.arrivals(it));
            let mut session = self.desk.dismiss(slot);
            if let Some(stream) = &mut session.stream {
                // If it fails, the poller has lost the stream.
                let _ = self.poll.registry().deregister(stream);
            }
            if let Some((thread, mut arrivals)) = to.zip(arrivals) {
                arrivals.push_back(session);
                self.desk.mailbox.wake(thread);
            }
        }
    }
}

fn write(session: &mut Session) -> usize {
    let Session { stream: Some(stream), replies, ending, .. } = session else { return 0 };
    let mut written = 0;
    while !replies.ready().is_empty() && *ending != Ending::Now {
        match stream.write(replies.ready()).map_err(|error| error.kind()) {
            Ok(len @ 1..) => {
                replies.note_written(len);
                written += len;
            }
            Err(ErrorKind::WouldBlock) => break,
            Ok(0) | Err(_) => *ending = Ending::Now,
        }
    }
    written
}

//! Accepting, reading, writing and closing.

use std::io::{self, ErrorKind, Read, Write};

use mio::net::TcpStream;
use mio::{Interest, Token};

use crate::mail::Message;
use crate::session::{Ending, Kind, Session};
use crate::stats::Count;
use crate::worker::Worker;
use crate::worker::door::{METRICS, turn_away};

impl Worker {
    /// Accepts clients. Each thread gets one in turn.
    pub(super) fn open_door(&mut self, token: Token) -> io::Result<()> {
        let Some(door) = &mut self.door else { return Ok(()) };
        let accepted = door.accept(token);
        if accepted.try_again {
            self.knocking.push(token);
        }
        for stream in accepted.streams {
            if token == METRICS {
                self.welcome(stream, Kind::Metrics)?;
            } else if !self.desk.shared.admit(self.desk.settings.max_clients) {
                self.desk.stats.add(Count::Refused, 1);
                turn_away(stream);
            } else {
                self.assign(stream)?;
            }
        }
        Ok(())
    }

    fn assign(&mut self, stream: TcpStream) -> io::Result<()> {
        let threads = self.desk.shared.threads();
        let thread = self.door.as_mut().map_or(0, |door| door.next_thread(threads));
        if thread == self.desk.number {
            return self.welcome(stream, Kind::Client);
        }
        self.desk.mailbox.send(thread, Message::Connection(stream));
        Ok(())
    }

    /// Serves a connection from now on.
    pub(super) fn welcome(&mut self, stream: TcpStream, kind: Kind) -> io::Result<()> {
        // Without it, a small reply may wait for the client's acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let slot = self.desk.welcome(Session { stream: Some(stream), kind, ..Session::default() });
        let Some(stream) = self.desk.sessions.get_mut(slot).and_then(|it| it.stream.as_mut()) else {
            return Ok(());
        };
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.event_loop.registry().register(stream, Token(slot as usize), interest)
    }

    /// Reads what a client has sent, but not more than fits into the buffer: others wait, too.
    pub(super) fn read(&mut self, slot: u32, is_last: bool) {
        let Some(session) = self.desk.sessions.get_mut(slot) else { return };
        if session.ending != Ending::Open || session.is_paused {
            return;
        }
        let Some(stream) = &mut session.stream else { return };
        match stream.read(&mut self.buffer) {
            // The client may still wait for replies.
            Ok(0) => self.end(slot, Ending::WhenAnswered),
            Ok(len) => {
                self.desk.receive(slot, &self.buffer[..len]);
                // A read that does not fill the buffer has emptied the socket.
                if is_last || len == self.buffer.len() {
                    self.desk.resume_later(slot);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => self.desk.resume_later(slot),
            Err(_) => self.end(slot, Ending::Now),
        }
    }

    fn end(&mut self, slot: u32, ending: Ending) {
        if let Some(session) = self.desk.sessions.get_mut(slot) {
            session.ending = ending;
        }
        self.desk.touch(slot);
    }

    /// Writes to all clients that are owed something; closes those that are to be closed.
    pub(super) fn write_all(&mut self) {
        let dirty = self.desk.take_dirty();
        for &slot in &dirty {
            let Some(session) = self.desk.sessions.get_mut(slot) else { continue };
            session.is_dirty = false;
            let written = write(session);
            self.desk.stats.add(Count::BytesOut, written);
            let is_over = match session.ending {
                Ending::Open => false,
                Ending::WhenAnswered => session.replies.is_done(),
                Ending::Now => true,
            };
            if is_over { self.close(slot) } else { self.desk.settle(slot) }
        }
        self.desk.keep_dirty(dirty);
    }

    fn close(&mut self, slot: u32) {
        if let Some(mut stream) = self.desk.dismiss(slot).and_then(|session| session.stream) {
            // If it fails, the poller has lost the stream, which is closed either way.
            let _ = self.event_loop.registry().deregister(&mut stream);
        }
    }
}

/// Writes what the socket takes. Returns the number of bytes.
fn write(session: &mut Session) -> u64 {
    let Session { stream: Some(stream), replies, ending, .. } = session else { return 0 };
    let mut written = 0;
    while !replies.ready().is_empty() && *ending != Ending::Now {
        match stream.write(replies.ready()) {
            Ok(0) => *ending = Ending::Now,
            Ok(len) => {
                replies.note_written(len);
                written += len as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => *ending = Ending::Now,
        }
    }
    written
}

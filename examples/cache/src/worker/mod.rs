//! One thread: its event loop, its sockets, and its desk.
//!
//! A round sleeps, fires what is due, does what other threads ask for, reads from clients, sends what
//! it wants of other threads, and writes to clients. None of its steps waits, and none goes on for
//! as long as there is something to do: what is left comes in the next round, which does not sleep.

pub(crate) mod door;
pub(crate) mod event_loop;
mod sockets;

use std::io;
use std::time::Duration;

use mio::Token;
use mio::event::Event;

use crate::desk::Desk;
use crate::mail::{Message, WAKE};
use crate::session::{Ending, Kind};
use crate::stats::Count;
use door::{CLIENTS, Door, METRICS, SIGNALS};
use event_loop::EventLoop;

/// Timers that fire in one round.
const FIRE_AT_ONCE: usize = 1024;
/// Messages of one thread that are taken in one round.
const MESSAGES_AT_ONCE: usize = 64;
/// Bytes that are read from a client at once.
const READ_AT_ONCE: usize = 64 * 1024;
/// When a message found no room, or a connection no descriptor, the next round comes after this.
const SOON: Duration = Duration::from_millis(1);
/// Clients have so long to take what they are owed, once the server is to end.
const DRAIN_TICKS: u64 = 5_000;

pub(crate) struct Worker {
    event_loop: EventLoop,
    desk: Desk,
    /// The first thread's.
    door: Option<Door>,
    buffer: Vec<u8>,
    /// How long the next sleep may last.
    patience: Duration,
    /// Listeners whose clients may still wait.
    knocking: Vec<Token>,
    /// The tick at which a server that is to end does so, with or without its clients.
    ends_at: Option<u64>,
}

impl Worker {
    pub(crate) fn new(event_loop: EventLoop, desk: Desk, door: Option<Door>) -> Self {
        let (buffer, patience) = (vec![0; READ_AT_ONCE], Duration::MAX);
        Self { event_loop, desk, door, buffer, patience, knocking: Vec::new(), ends_at: None }
    }

    /// Serves until the server is drained. If the poller fails, the whole server is.
    pub(crate) fn run(mut self) -> io::Result<()> {
        while !self.is_over() {
            self.round().inspect_err(|_| {
                self.desk.shared.drain();
                self.desk.mailbox.wake_all();
            })?;
        }
        Ok(())
    }

    fn round(&mut self) -> io::Result<()> {
        let Self { event_loop, desk, patience, .. } = self;
        event_loop.sleep(&desk.mailbox, *patience)?;
        desk.wake();
        desk.stats.add(Count::Rounds, 1);
        let now = desk.keyspace.time.tick();
        let mut has_more = event_loop.fire(now, FIRE_AT_ONCE, |fired| desk.fired(fired));
        desk.publish_events();
        self.take_messages()?;
        self.serve_sockets()?;
        self.drain();
        has_more |= self.desk.keyspace.step();
        let must_wait = self.desk.mailbox.post() || !self.knocking.is_empty() || self.ends_at.is_some();
        self.write_all();
        has_more |= !self.desk.resuming.is_empty();
        self.desk.publish_memory();
        self.patience = match (has_more, must_wait) {
            (true, _) => Duration::ZERO,
            (false, true) => SOON,
            (false, false) => Duration::MAX,
        };
        Ok(())
    }

    fn take_messages(&mut self) -> io::Result<()> {
        for ring in 0..self.desk.mailbox.rings() {
            for _ in 0..MESSAGES_AT_ONCE {
                let Some((from, message)) = self.desk.mailbox.receive(ring) else { break };
                match message {
                    Message::Work(batch) => self.desk.work(from, batch),
                    Message::Done(batch) => self.desk.done(batch),
                    Message::Connection(stream) => self.welcome(stream, Kind::Client)?,
                }
            }
        }
        Ok(())
    }

    fn serve_sockets(&mut self) -> io::Result<()> {
        for token in std::mem::take(&mut self.knocking) {
            self.open_door(token)?;
        }
        for slot in std::mem::take(&mut self.desk.resuming) {
            self.desk.resume(slot);
            self.read(slot, false);
        }
        let events = self.event_loop.take_events();
        events.iter().try_for_each(|event| self.serve(event))?;
        self.event_loop.keep_events(events);
        Ok(())
    }

    fn serve(&mut self, event: &Event) -> io::Result<()> {
        match event.token() {
            WAKE => {}
            token @ (CLIENTS | METRICS) => return self.open_door(token),
            SIGNALS => {
                self.desk.shared.drain();
                self.desk.mailbox.wake_all();
            }
            Token(slot) => {
                let slot = slot as u32;
                // After what can be read comes the end.
                let is_last = event.is_read_closed() || event.is_error();
                if event.is_writable() && self.desk.sessions.get_mut(slot).is_some() {
                    self.desk.sessions.touch(slot);
                }
                if event.is_readable() || is_last {
                    self.read(slot, is_last);
                }
            }
        }
        Ok(())
    }

    // ---- the end --------------------------------------------------------------------------------

    /// Once the server is to end: no more connections; each client gets what it has asked for.
    fn drain(&mut self) {
        if !self.desk.shared.is_draining() {
            return;
        }
        self.door = None;
        self.knocking.clear();
        let now = self.desk.keyspace.time.tick();
        self.ends_at.get_or_insert(now + DRAIN_TICKS);
        for slot in self.desk.sessions.slots() {
            self.read(slot, false);
            let session = &mut self.desk.sessions[slot];
            if session.ending == Ending::Open && !session.is_paused {
                session.ending = Ending::WhenAnswered;
            }
            self.desk.sessions.touch(slot);
        }
    }

    fn is_over(&self) -> bool {
        let Some(ends_at) = self.ends_at else { return false };
        let is_empty = self.desk.shared.open_clients() == 0 && self.desk.sessions.iter().next().is_none();
        is_empty || self.desk.keyspace.time.tick() >= ends_at
    }
}

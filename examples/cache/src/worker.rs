//! One thread: its poller, its shard of timers, its sockets, and its desk.
//!
//! A round sleeps, fires what is due, does what other threads ask for, reads from clients, sends what
//! it wants of other threads, and writes to clients. Each step is bounded: what is left comes in the
//! next round, which does not sleep. The timeout of the poll is the shard's next expiration. Only the
//! thread itself schedules timers of its shard, so it sleeps through none.

mod sockets;
mod thrift;

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use shardwheel::{Advancer, Fired};

use crate::clock::CHECK;
use crate::desk::{Desk, FIRED_TOGETHER};
use crate::keyspace::Due;
use crate::mail::WAKE;
use crate::session::Ending;
use crate::stats::Figure;
use thrift::Thrift;

/// Readiness events per poll; further events wait for the next round.
const EVENTS: usize = 512;
/// A thread that would sleep for longer gives memory of its shard back after each such time.
const MAINTENANCE: Duration = Duration::from_millis(50);
const FIRE_AT_ONCE: usize = 256;
/// A message may be for hundreds of subscribers. After this time the next ones wait for the next round.
const MESSAGES_TIME: Duration = Duration::from_millis(1);
/// Bytes that are read from a client at once.
pub(crate) const READ_AT_ONCE: usize = 64 * 1024;
/// When a message found no room, or the server is to end, the next round comes after this.
const SOON: Duration = Duration::from_millis(1);
/// Clients have so long to take what they are owed, once the server is to end.
const DRAIN_TICKS: u64 = 5_000;

pub(crate) struct Worker {
    poll: Poll,
    events: Events,
    advancer: Advancer<Due>,
    desk: Desk,
    thrift: Thrift,
    buffer: Vec<u8>,
    /// The timers that have fired in this round.
    fired: Vec<Fired<Due>>,
    /// What is due waits for subscribers.
    is_held: bool,
    /// Whose messages come first in the next round.
    first_sender: usize,
    /// The tick at which a server that is to end does so, with or without its clients.
    ends_at: Option<u64>,
}

impl Worker {
    #[rustfmt::skip] // A line for each of these fields says nothing.
    pub(crate) fn new(poll: Poll, advancer: Advancer<Due>, desk: Desk, give_back: fn()) -> Self {
        let (events, buffer) = (Events::with_capacity(EVENTS), vec![0; READ_AT_ONCE]);
        let thrift = Thrift { give_back, most: 0, moved: 0, since: 0 };
        Self {
            poll, events, advancer, desk, buffer, thrift, fired: Vec::new(), is_held: false, first_sender: 0,
            ends_at: None,
        }
    }

    /// Serves until the server is drained. If the poller fails, the whole server is.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut patience = Duration::MAX;
        while !self.is_over() {
            patience = self.round(patience).inspect_err(|_| {
                self.desk.shared.drain();
                self.desk.mailbox.wake_all();
            })?;
        }
        Ok(())
    }

    /// Returns how long the next round may sleep.
    fn round(&mut self, patience: Duration) -> io::Result<Duration> {
        self.sleep(patience)?;
        self.desk.wake();
        let mut has_more = self.fire();
        self.take_messages();
        self.serve_sockets();
        self.drain();
        has_more |= self.desk.keyspace.step();
        self.register()?;
        let is_full = self.desk.post();
        self.write_all();
        self.thrift.look(&self.desk.stats, self.desk.keyspace.time.tick());
        let must_wait = is_full || self.ends_at.is_some() || self.is_held;
        has_more |= !self.desk.resuming.is_empty();
        let patience = if must_wait { SOON } else { Duration::MAX };
        Ok(if has_more { Duration::ZERO } else { patience })
    }

    /// Fires what is due, unless subscribers are behind. Those beyond stay due. True if there may be more.
    fn fire(&mut self) -> bool {
        let Self { advancer, desk, fired, is_held, .. } = self;
        let (mut due, mut left) = (advancer.advance(desk.keyspace.time.tick()), FIRE_AT_ONCE);
        loop {
            *is_held = desk.holds_timers();
            if *is_held || left == 0 {
                return !*is_held;
            }
            fired.extend(due.by_ref().take(FIRED_TOGETHER));
            if fired.is_empty() {
                return false;
            }
            desk.fired_all(fired);
            left -= FIRED_TOGETHER;
            fired.clear();
        }
    }

    /// Polls until a client is ready, a timer may be due, a message has come, or patience is over.
    fn sleep(&mut self, mut timeout: Duration) -> io::Result<()> {
        let Self { advancer, desk, thrift, is_held, .. } = self;
        let mut is_lull = false;
        if !timeout.is_zero() {
            let next = if *is_held { None } else { advancer.next_expiration() };
            timeout = timeout.min(next.map_or(Duration::MAX, |tick| desk.shared.clock.until(tick)));
            if timeout > CHECK && desk.stats.get(Figure::ExpiringKeys) > 0 {
                // The wall clock may be set while nothing else happens.
                timeout = CHECK;
            }
            if timeout > MAINTENANCE && advancer.needs_maintenance() {
                advancer.maintain();
                timeout = MAINTENANCE;
            }
            is_lull = timeout >= MAINTENANCE && thrift.has_cause(&desk.stats);
            if is_lull {
                timeout = MAINTENANCE;
            }
            if !desk.mailbox.lie_down(desk.number) || !desk.shared.arrivals(desk.number).is_empty() {
                timeout = Duration::ZERO;
            }
        }
        let result = self.poll.poll(&mut self.events, Some(timeout).filter(|&it| it < Duration::MAX));
        desk.mailbox.get_up(desk.number);
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {
            // A signal ended the poll: a round with nothing ready.
            return Ok(self.events.clear());
        }
        if is_lull && !timeout.is_zero() && self.events.is_empty() {
            thrift.give_back(&desk.stats);
        }
        result
    }

    fn take_messages(&mut self) {
        self.desk.welcome_all();
        let (start, senders) = (Instant::now(), self.desk.shared.threads());
        for from in (self.first_sender..senders).chain(0..self.first_sender) {
            while let Some(message) = self.desk.mailbox.receive(from) {
                self.desk.take(from, message);
                if start.elapsed() > MESSAGES_TIME {
                    self.first_sender = (from + 1) % senders;
                    return;
                }
            }
        }
    }

    fn serve_sockets(&mut self) {
        for slot in std::mem::take(&mut self.desk.resuming) {
            if self.desk.sessions.contains(slot) {
                self.desk.receive(slot, &[]);
                self.read(slot, false);
            }
        }
        let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        for event in events.iter().filter(|event| event.token() != WAKE) {
            let Token(slot) = event.token();
            // After what can be read comes the end.
            let is_last = event.is_read_closed() || event.is_error();
            if event.is_writable() && self.desk.sessions.contains(slot) {
                self.desk.touch(slot);
            }
            if event.is_readable() || is_last {
                self.read(slot, is_last);
            }
        }
        self.events = events;
    }

    /// Once the server is to end: no more connections; each client gets what it has asked for.
    fn drain(&mut self) {
        if !self.desk.shared.is_draining() {
            return;
        }
        let now = self.desk.keyspace.time.tick();
        self.ends_at.get_or_insert(now + DRAIN_TICKS);
        for slot in self.desk.slots() {
            let has_more = self.read(slot, false) || self.desk.resuming.contains(&slot);
            let session = &mut self.desk.sessions[slot];
            if session.ending == Ending::Open && !session.is_paused && !has_more {
                session.ending = Ending::WhenAnswered;
            }
            self.desk.touch(slot);
        }
    }

    fn is_over(&self) -> bool {
        let is_late = |ends_at| self.desk.keyspace.time.tick() >= ends_at;
        self.ends_at.is_some_and(|ends_at| self.desk.shared.clients() == 0 || is_late(ends_at))
    }
}

//! One client: what it does, and how it judges the server.
//!
//! A client uses its own times only. The server receives a packet after the client has sent it. So
//! a server that closes or reminds too early by the client's times does so by its own times as
//! well. When the server closes, it reports how many packets it had received, so a packet in flight
//! at that moment proves nothing.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{self, SocketAddr};
use std::time::Duration;

use fastrand::Rng;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::clock::Moment;
use super::wire::{Lines, Reply, Request};

/// A client that falls silent sends at most this many packets first.
const MAX_WORDS: u64 = 5;

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Pings until it leaves.
    Talker,
    /// Pings this many more times, and then falls silent.
    Silent { words: u64 },
    /// Asks for one reminder after the other, and pings while it waits.
    Asker,
}

/// How a client's connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server's timer closed it, as it should close a silent client.
    ClosedSilent,
    /// The server's timer closed it although it meant to talk: the client was late, so its pause
    /// was too long.
    ClosedLate,
    /// It left.
    Left,
    /// Closed without a message.
    Cut,
}

/// What the clients have observed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Packets that the server must have received.
    pub(crate) packets: u64,
    pub(crate) asked: u64,
    pub(crate) reminded: u64,
    /// Reminders that their client did not receive, because it was closed before.
    pub(crate) forgone: u64,
    /// Reminders without a request, repeated reminders, and lines that cannot be parsed.
    pub(crate) strays: u64,
    /// Reminders and closes that came before their time.
    pub(crate) early: u64,
}

pub(crate) struct Client {
    role: Role,
    stream: TcpStream,
    lines: Lines,
    idle_timeout: Duration,
    /// The time of the connect and of each packet, taken before the call.
    sent: Vec<Moment>,
    /// The pending reminders, and when each is due.
    awaited: HashMap<u64, Moment>,
    leaving: bool,
    /// The number of packets that the server had received when it closed.
    closed_after: Option<usize>,
}

impl Role {
    pub(crate) fn nth(index: usize, rng: &mut Rng) -> Self {
        match index % 3 {
            0 => Self::Talker,
            1 => Self::Silent { words: rng.u64(0..=MAX_WORDS) },
            _ => Self::Asker,
        }
    }
}

impl Client {
    pub(crate) fn connect(
        role: Role,
        address: SocketAddr,
        (registry, token): (&Registry, Token),
        idle_timeout: Duration,
        now: Moment,
    ) -> io::Result<Self> {
        let stream = net::TcpStream::connect(address)?;
        // Without this the system holds a packet back until the previous one is acknowledged, which
        // takes 40 ms or more.
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE)?;
        let (lines, sent, awaited) = (Lines::default(), vec![now], HashMap::new());
        Ok(Self { role, stream, lines, idle_timeout, sent, awaited, leaving: false, closed_after: None })
    }

    /// Sends what its role requires at `now`. Returns whether it will send more.
    pub(crate) fn speak(&mut self, now: Moment, rng: &mut Rng, seen: &mut Seen) -> bool {
        let request = match &mut self.role {
            Role::Silent { words: 0 } => return false,
            _ if self.leaving && self.awaited.is_empty() => return false,
            Role::Silent { words } => {
                *words -= 1;
                Request::Ping
            }
            Role::Asker if self.awaited.is_empty() => self.ask(now, rng, seen),
            Role::Talker | Role::Asker => Request::Ping,
        };
        self.sent.push(now);
        // If the write fails, the server has closed; the next read reports that.
        let _ = self.stream.write_all(format!("{request}\n").as_bytes());
        true
    }

    fn ask(&mut self, now: Moment, rng: &mut Rng, seen: &mut Seen) -> Request {
        let after = Duration::from_millis(rng.u64(0..=self.idle_timeout.as_millis() as u64));
        let id = seen.asked;
        seen.asked += 1;
        self.awaited.insert(id, now + after);
        Request::Remind { after, id }
    }

    /// Sends no more than it must, and then shuts its side down; the server closes after that. A
    /// silent client waits for the server's timer instead.
    pub(crate) fn leave(&mut self) {
        self.leaving = true;
        if self.awaited.is_empty() && !matches!(self.role, Role::Silent { .. }) {
            // If it fails, the server has closed.
            let _ = self.stream.shutdown(net::Shutdown::Write);
        }
    }

    /// Reads the server's messages; returns how the connection ended, if it did. `now` returns the
    /// time after the read.
    pub(crate) fn listen(&mut self, now: impl Fn() -> Moment, seen: &mut Seen) -> Option<Outcome> {
        let is_open = self.lines.fill(&mut self.stream);
        let now = now();
        while let Some(line) = self.lines.next_line() {
            match Reply::parse(&line) {
                Some(Reply::Reminder { id }) => self.be_reminded(id, now, seen),
                Some(Reply::Idle { packets }) => self.be_closed(packets, now, seen),
                None => seen.strays += 1,
            }
        }
        (!is_open).then(|| self.end(seen))
    }

    fn be_reminded(&mut self, id: u64, now: Moment, seen: &mut Seen) {
        let Some(due) = self.awaited.remove(&id) else {
            seen.strays += 1;
            return;
        };
        seen.reminded += 1;
        seen.early += u64::from(now < due);
        if self.leaving {
            self.leave();
        }
    }

    fn be_closed(&mut self, packets: usize, now: Moment, seen: &mut Seen) {
        self.closed_after = Some(packets);
        match self.sent.get(packets) {
            Some(&last_heard) => seen.early += u64::from(now < last_heard + self.idle_timeout),
            None => seen.strays += 1,
        }
    }

    /// Removes its socket from the poller.
    pub(crate) fn retire(mut self, registry: &Registry) {
        // If it fails, the poller has lost the stream, which is closed either way.
        let _ = registry.deregister(&mut self.stream);
    }

    fn end(&self, seen: &mut Seen) -> Outcome {
        let sent = self.sent.len() - 1;
        seen.packets += self.closed_after.unwrap_or(sent) as u64;
        seen.forgone += self.awaited.len() as u64;
        match (self.closed_after, self.role) {
            (Some(_), Role::Silent { .. }) => Outcome::ClosedSilent,
            (Some(_), _) => Outcome::ClosedLate,
            (None, _) if self.leaving => Outcome::Left,
            (None, _) => Outcome::Cut,
        }
    }
}

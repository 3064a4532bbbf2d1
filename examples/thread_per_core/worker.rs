//! One of the server's threads: its listener, its connections, and its timers.
//!
//! No other thread touches a connection. A thread that needs something from another thread
//! schedules a timer on that thread's shard:
//!
//! ```text
//! client       its own thread (home)            the next thread
//! remind  -->  schedule Remind ---------------> ... fires when it is due
//!         <--  Deliver fires at once <--------- send Deliver
//! ```

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use shardwheel::Key;

use super::clock::{Clock, Moment};
use super::event_loop::{EventLoop, Handle};
use super::tally::Tally;
use super::wire::{Lines, Reply, Request};

/// The poller's token of the listener; connections get the following numbers.
const LISTENER: Token = Token(0);

/// A timer that fires in a worker's thread.
#[derive(Debug)]
pub(crate) enum Timer {
    /// A connection of this thread has been silent for too long.
    Idle(Token),
    /// A reminder is due for a connection of another thread.
    Remind(Reminder),
    /// A reminder that has fired, for a connection of this thread.
    Deliver(Reminder),
}

#[derive(Debug)]
pub(crate) struct Reminder {
    id: u64,
    due: Moment,
    /// The number of the thread that has the connection.
    home: usize,
    connection: Token,
}

struct Connection {
    stream: TcpStream,
    lines: Lines,
    packets: usize,
    closes_at: Moment,
    /// The timer's present key; `None` while the timer is being fired.
    timer: Option<Key>,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Idle,
    Goodbye,
    Failed,
}

pub(crate) struct Worker {
    event_loop: EventLoop<Timer>,
    desk: Desk,
}

/// What all threads of a server share.
pub(crate) struct Setting {
    pub(crate) clock: Clock,
    pub(crate) idle_timeout: Duration,
    /// Each thread's handle, indexed by the thread's number.
    pub(crate) handles: Vec<Handle<Timer>>,
}

/// A worker without its event loop.
struct Desk {
    number: usize,
    setting: Arc<Setting>,
    listener: TcpListener,
    registry: Registry,
    connections: HashMap<Token, Connection>,
    last_token: Token,
    tally: Tally,
}

impl Worker {
    pub(crate) fn new(
        number: usize,
        event_loop: EventLoop<Timer>,
        mut listener: TcpListener,
        setting: Arc<Setting>,
    ) -> io::Result<Self> {
        let registry = event_loop.registry().try_clone()?;
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        let (connections, tally) = (HashMap::new(), Tally::default());
        let desk = Desk { number, setting, listener, registry, connections, last_token: LISTENER, tally };
        Ok(Self { event_loop, desk })
    }

    /// Serves until `stop` is set and the poll is woken.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> io::Result<Tally> {
        // Ordering: Acquire, pairs with the Release of the thread that stops the server: what that
        // thread did before is visible.
        while !stop.load(Ordering::Acquire) {
            self.round()?;
        }
        Ok(self.end())
    }

    fn round(&mut self) -> io::Result<()> {
        let Self { event_loop, desk } = self;
        event_loop.sleep()?;
        let fired = event_loop.fire(|fired| desk.fired(fired.payload));
        let mut ready = 0;
        for token in event_loop.ready() {
            ready += 1;
            if token == LISTENER { desk.accept()? } else { desk.hear(token) }
        }
        let (woken, wakeups) = (event_loop.was_woken(), &mut desk.tally.wakeups);
        wakeups.all += 1;
        wakeups.by_others += u64::from(woken);
        wakeups.for_nothing += u64::from(!woken && fired + ready == 0);
        Ok(())
    }

    fn end(self) -> Tally {
        let mut tally = self.desk.tally;
        tally.open = self.desk.connections.len() as u64;
        for timer in self.event_loop.end() {
            match timer {
                Timer::Idle(_) => {}
                Timer::Remind(_) => tally.reminders.unfired += 1,
                Timer::Deliver(_) => tally.reminders.undelivered += 1,
            }
        }
        tally
    }
}

impl Desk {
    /// This thread's own handle.
    fn own(&self) -> &Handle<Timer> {
        &self.setting.handles[self.number]
    }

    fn neighbour(&self) -> &Handle<Timer> {
        &self.setting.handles[(self.number + 1) % self.setting.handles.len()]
    }

    // ---- timers ---------------------------------------------------------------------------------

    fn fired(&mut self, timer: Timer) {
        match timer {
            Timer::Idle(token) => self.idle(token),
            Timer::Remind(reminder) => self.remind(reminder),
            Timer::Deliver(reminder) => self.deliver(&reminder),
        }
    }

    fn idle(&mut self, token: Token) {
        let now = self.setting.clock.now();
        let Some(connection) = self.connections.get_mut(&token) else {
            self.tally.strays += 1;
            return;
        };
        connection.timer = None;
        self.tally.firings.note(connection.closes_at, now);
        // A packet may have come while this thread was busy. Then the thread was late, not the
        // client.
        self.hear(token);
        let still = self.connections.get_mut(&token).filter(|connection| connection.timer.is_none());
        if let Some(silent) = still {
            let packets = silent.packets;
            let told = silent.say(Reply::Idle { packets });
            self.close(token, if told { End::Idle } else { End::Failed });
        }
    }

    /// Another thread's reminder: sends it back to the thread of its connection.
    fn remind(&mut self, reminder: Reminder) {
        self.tally.firings.note(reminder.due, self.setting.clock.now());
        self.tally.reminders.fired += 1;
        self.tally.reminders.across += u64::from(reminder.home != self.number);
        let sent = self.setting.handles[reminder.home].send(Timer::Deliver(reminder));
        self.tally.reminders.undelivered += u64::from(sent.is_err());
    }

    fn deliver(&mut self, reminder: &Reminder) {
        let connection = self.connections.get_mut(&reminder.connection);
        let told = connection.map(|connection| connection.say(Reply::Reminder { id: reminder.id }));
        if told == Some(true) {
            self.tally.reminders.delivered += 1;
            return;
        }
        self.tally.reminders.undelivered += 1;
        self.close(reminder.connection, End::Failed);
    }

    // ---- sockets --------------------------------------------------------------------------------

    /// Accepts all waiting clients, as an edge-triggered poller requires.
    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.welcome(stream)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client left before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn welcome(&mut self, mut stream: TcpStream) -> io::Result<()> {
        let token = Token(self.last_token.0 + 1);
        self.registry.register(&mut stream, token, Interest::READABLE)?;
        self.last_token = token;
        self.tally.connections += 1;
        let lines = Lines::default();
        let connection = Connection { stream, lines, packets: 0, closes_at: Moment::ZERO, timer: None };
        self.connections.insert(token, connection);
        self.put_off(token, self.setting.clock.now());
        Ok(())
    }

    fn hear(&mut self, token: Token) {
        // A timer of this round may have closed the connection.
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let (requests, end) = connection.hear();
        self.tally.packets += requests.len() as u64;
        let now = self.setting.clock.now();
        if !requests.is_empty() {
            self.put_off(token, now);
        }
        requests.into_iter().for_each(|request| self.answer(token, request, now));
        if let Some(end) = end {
            self.close(token, end);
        }
    }

    fn answer(&mut self, token: Token, request: Request, now: Moment) {
        let Request::Remind { after, id } = request else { return };
        let reminder = Reminder { id, due: now + after, home: self.number, connection: token };
        self.tally.reminders.asked += 1;
        let scheduled = self.neighbour().schedule(reminder.due, Timer::Remind(reminder));
        self.tally.reminders.unfired += u64::from(scheduled.is_err());
    }

    /// The client was active at `now`: restarts the connection's timer.
    fn put_off(&mut self, token: Token, now: Moment) {
        let closes_at = now + self.setting.idle_timeout;
        let own = &self.setting.handles[self.number];
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.closes_at = closes_at;
        // The old key is invalid from here on: `reschedule` or `schedule` gives the new key.
        let moved = connection.timer.and_then(|key| own.reschedule(key, closes_at));
        connection.timer = moved.or_else(|| own.schedule(closes_at, Timer::Idle(token)).ok());
        if connection.timer.is_none() {
            self.close(token, End::Failed);
        }
    }

    fn close(&mut self, token: Token, end: End) {
        let Some(mut connection) = self.connections.remove(&token) else { return };
        // If it fails, the poller has lost the stream, which is closed either way.
        let _ = self.registry.deregister(&mut connection.stream);
        if let Some(key) = connection.timer {
            // Only this thread fires the timer, and it has not fired it, so the cancel succeeds.
            self.tally.strays += u64::from(self.own().cancel(key).is_none());
        }
        *match end {
            End::Idle => &mut self.tally.idle_closes,
            End::Goodbye => &mut self.tally.goodbyes,
            End::Failed => &mut self.tally.failed,
        } += 1;
    }
}

impl Connection {
    /// The requests received, and the end of the connection, if it has ended.
    fn hear(&mut self) -> (Vec<Request>, Option<End>) {
        let is_open = self.lines.fill(&mut self.stream);
        let mut requests = Vec::new();
        while let Some(line) = self.lines.next_line() {
            let Some(request) = Request::parse(&line) else { return (requests, Some(End::Failed)) };
            self.packets += 1;
            requests.push(request);
        }
        (requests, (!is_open).then_some(End::Goodbye))
    }

    /// Sends a line. Returns false if the client has gone, or does not read.
    fn say(&mut self, reply: Reply) -> bool {
        self.stream.write_all(format!("{reply}\n").as_bytes()).is_ok()
    }
}

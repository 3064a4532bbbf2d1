//! A server without sockets, threads and time, for fuzzers and tests: its desks take turns, and time
//! passes by `Sandbox::pass`.

use std::sync::Arc;

use clap::Parser;
use shardwheel::Advancer;

use crate::commands::config::Settings;
use crate::desk::Desk;
use crate::keyspace::{Due, timers};
use crate::mail::Mailbox;
use crate::session::{Ending, Session, SessionId};
use crate::shared::Shared;

/// The whole server.
pub struct Sandbox {
    desks: Vec<(Desk, Advancer<Due>)>,
    /// The desk and the slot of each client; `None` once it has ended.
    clients: Vec<Option<(usize, usize)>>,
}

impl Sandbox {
    /// A server with this many threads and clients.
    pub fn new(threads: usize, clients: usize, password: Option<&str>) -> Self {
        let (schedulers, advancers): (Vec<_>, Vec<_>) = (0..threads).map(|_| timers()).unzip();
        let password = password.unwrap_or_default().as_bytes().into();
        let settings = Settings { password, max_clients: clients, ..Settings::parse_from([""]) };
        let shared = Arc::new(Shared::new(schedulers, settings));
        let mailboxes = Mailbox::all(threads).expect("wakers").into_iter().map(|(_, mailbox)| mailbox);
        let desks = mailboxes
            .zip(advancers)
            .enumerate()
            .map(|(number, (mailbox, advancer))| (Desk::new(number, &shared, mailbox), advancer));
        let mut sandbox = Self { desks: desks.collect(), clients: Vec::new() };
        for client in 0..clients {
            assert!(shared.admit());
            let desk = client % threads;
            let id = SessionId { number: client as u64 + 1, ..SessionId::default() };
            let place = sandbox.welcome(desk, Box::new(Session { id, ..Session::default() }));
            sandbox.clients.push(Some(place));
        }
        sandbox
    }

    /// A client comes to a desk. Returns its place.
    fn welcome(&mut self, number: usize, session: Box<Session>) -> (usize, usize) {
        let desk = &mut self.desks[number].0;
        desk.shared.arrivals(number).push_back(session);
        desk.welcome_all();
        (number, desk.newcomers.pop().expect("the client"))
    }

    /// A client sends bytes. Returns what it has been sent by then, and whether it is still there.
    pub fn send(&mut self, client: usize, bytes: &[u8]) -> (Vec<u8>, bool) {
        if let Some((desk, slot)) = self.clients[client] {
            self.desks[desk].0.receive(slot, bytes);
        }
        self.settle();
        self.take_output(client)
    }

    /// So many milliseconds pass.
    pub fn pass(&mut self, milliseconds: u64) {
        for (desk, advancer) in &mut self.desks {
            desk.keyspace.time.skip(milliseconds);
            let now = desk.keyspace.time.tick();
            desk.fired_all(&advancer.advance(now).collect::<Vec<_>>());
        }
        self.settle();
    }

    /// Panics if a desk's parts do not agree with each other.
    pub fn check(&mut self) {
        self.settle();
        self.desks.iter().for_each(|(desk, _)| desk.keyspace.check());
    }

    /// Lets the desks take turns until none has anything to do.
    fn settle(&mut self) {
        // What a desk sends in one pass, another one does in the next.
        let mut idle_passes = 0;
        while idle_passes < 2 {
            let is_busy = self.desks.iter_mut().fold(false, |is_busy, (desk, _)| turn(desk) || is_busy);
            idle_passes = if is_busy { 0 } else { idle_passes + 1 };
        }
    }

    /// What a client has been sent.
    fn take_output(&mut self, client: usize) -> (Vec<u8>, bool) {
        let Some((number, slot)) = self.clients[client] else { return (Vec::new(), false) };
        let desk = &mut self.desks[number].0;
        let session = &mut desk.sessions[slot];
        let mut output = Vec::new();
        while !session.replies.ready().is_empty() {
            let len = session.replies.ready().len();
            output.extend_from_slice(session.replies.ready());
            session.replies.note_written(len);
        }
        if let Ending::MovesTo(to) = session.ending
            && session.replies.are_there()
        {
            let session = desk.dismiss(slot);
            self.clients[client] = Some(self.welcome(to, session));
            self.settle();
            let (more, is_there) = self.take_output(client);
            output.extend(more);
            return (output, is_there);
        }
        if session.ending != Ending::Open && (session.ending == Ending::Now || session.replies.are_there()) {
            desk.dismiss(slot);
            self.clients[client] = None;
        } else {
            desk.settle(slot);
        }
        (output, self.clients[client].is_some())
    }
}

/// One desk's turn: a round without sockets and timers. True if it has done something.
fn turn(desk: &mut Desk) -> bool {
    let mut is_busy = false;
    for from in 0..desk.shared.threads() {
        while let Some(message) = desk.mailbox.receive(from) {
            is_busy = true;
            desk.take(from, message);
        }
    }
    for slot in std::mem::take(&mut desk.resuming) {
        is_busy = true;
        if desk.sessions.contains(slot) {
            desk.receive(slot, &[]);
        }
    }
    for slot in std::mem::take(&mut desk.dirty) {
        if let Some(session) = desk.sessions.get_mut(slot) {
            session.is_dirty = false;
            desk.settle(slot);
        }
    }
    let has_more = desk.keyspace.step();
    desk.post() || has_more || is_busy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sandbox: &mut Sandbox, client: usize, line: &str) -> String {
        let (output, _) = sandbox.send(client, format!("{line}\r\n").as_bytes());
        String::from_utf8(output).expect("text")
    }

    #[test]
    fn keys_of_all_desks_expire_when_time_passes() {
        let mut sandbox = Sandbox::new(3, 2, None);
        for key in 0..100 {
            assert_eq!(text(&mut sandbox, 0, &format!("SET k{key} v PX {}", 1_000 + key)), "+OK\r\n");
            assert_eq!(text(&mut sandbox, 1, &format!("GET k{key}")), "$1\r\nv\r\n");
        }
        sandbox.pass(1_000);
        assert_eq!(text(&mut sandbox, 1, "DBSIZE"), ":100\r\n");
        sandbox.pass(50);
        assert_eq!(text(&mut sandbox, 1, "DBSIZE"), ":50\r\n");
        assert_eq!(text(&mut sandbox, 0, "EXPIRE k99 1000 GT"), ":1\r\n");
        sandbox.pass(50);
        assert_eq!(text(&mut sandbox, 0, "KEYS *"), "*1\r\n$3\r\nk99\r\n");
        sandbox.check();
        assert_eq!(text(&mut sandbox, 0, "FLUSHALL"), "+OK\r\n");
        sandbox.check();
    }

    /// A thread that does not keep up makes the clients of those that work for it wait.
    #[test]
    fn messages_for_a_slow_desk_are_bounded() {
        let mut sandbox = Sandbox::new(3, 3, None);
        text(&mut sandbox, 0, "CONFIG SET notify-keyspace-events KE$");
        text(&mut sandbox, 1, "SUBSCRIBE __keyevent@0__:set");
        let requests = b"SET a 1\r\nSET b 1\r\nSET c 1\r\nSET d 1\r\nSET e 1\r\nSET f 1\r\n".repeat(5_000);
        let mut rounds = 0;
        // The desk with the subscriber takes no turns.
        while !sandbox.desks.iter().any(|(desk, _)| desk.sessions.iter().any(|(_, it)| it.is_paused)) {
            sandbox.desks[0].0.receive(0, &requests[..64 * 1024]);
            for desk in [0, 2] {
                turn(&mut sandbox.desks[desk].0);
            }
            rounds += 1;
            assert!(rounds < 1_000, "it has room for any number of events");
        }
        sandbox.settle();
        let [written, published] =
            [0, 1].map(|client| String::from_utf8(sandbox.take_output(client).0).expect("text"));
        let sets = rounds * (64 * 1024 / "SET a 1\r\n".len());
        assert!(written.len() / "+OK\r\n".len() >= sets - rounds, "{} of {sets}", written.len());
        assert_eq!(published.matches("message").count(), written.matches("OK").count());
    }

    /// A client moves once no reply is missing: not before other threads have run what it is not replied.
    #[test]
    fn what_is_muted_is_waited_for() {
        let mut sandbox = Sandbox::new(2, 1, None);
        let sets: String = (0..20).map(|key| format!("SET key{key} v\r\n")).collect();
        sandbox.desks[0].0.receive(0, format!("CLIENT REPLY OFF\r\n{sets}").as_bytes());
        assert!(!sandbox.desks[0].0.sessions[0].replies.are_there());
        sandbox.settle();
        assert!(sandbox.desks[0].0.sessions[0].replies.are_there());
        assert_eq!(sandbox.take_output(0), (Vec::new(), true));
        assert_eq!(text(&mut sandbox, 0, "CLIENT REPLY ON"), "+OK\r\n");
        assert_eq!(text(&mut sandbox, 0, "DBSIZE"), ":20\r\n");
    }

    #[test]
    fn a_client_that_breaks_the_protocol_goes() {
        let mut sandbox = Sandbox::new(2, 1, Some("secret"));
        assert_eq!(text(&mut sandbox, 0, "GET a"), "-NOAUTH Authentication required.\r\n");
        let (output, is_there) = sandbox.send(0, b"*1\r\n$x\r\nPING\r\n");
        assert_eq!((&output[..], is_there), (&b"-ERR Protocol error: invalid bulk length\r\n"[..], false));
    }
    /// A long argument comes in pieces: there is room for all of it, and it was not made for each.
    #[test]
    fn room_for_a_long_argument_is_made_a_few_times() {
        let mut sandbox = Sandbox::new(1, 1, None);
        let (pieces, piece) = (512, vec![b'x'; 64 * 1024]);
        let head = format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n${}\r\n", pieces * piece.len());
        sandbox.send(0, head.as_bytes());
        let mut rooms = Vec::new();
        for _ in 0..pieces {
            assert_eq!(sandbox.send(0, &piece), (Vec::new(), true));
            rooms.push(sandbox.desks[0].0.sessions[0].input.capacity());
        }
        assert_eq!(rooms.last(), Some(&(head.len() + pieces * piece.len() + 2 + 64)));
        rooms.dedup();
        assert!(rooms.len() < 10, "{rooms:?}");
        assert_eq!(sandbox.send(0, b"\r\n").0, b"+OK\r\n");
    }
}

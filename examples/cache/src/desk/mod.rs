//! What a thread works on: its keys, its clients, and its messages. It touches no socket, so tests
//! and fuzzers drive it as the event loop does.

mod dispatch;
mod input;
mod messages;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shardwheel::{Fired, Scheduler};
use slab::Slab;

use crate::clock::Time;
use crate::commands::config::Settings;
use crate::commands::pubsub::{self, Channels, PUBLISH};
use crate::commands::table::Lookup;
use crate::keyspace::{Due, Keyspace};
use crate::mail::Mailbox;
use crate::session::{Ending, Kind, Session, SessionId};
use crate::shared::Shared;
use crate::stats::{Count, Stats};

/// Bytes that may wait for one client of a thread.
const ALLOWANCE: usize = 64 * 1024 * 1024;
/// If the thread's clients together take this, each has the small allowance.
const CROWDED: usize = 64 * 1024 * 1024;
const SMALL_ALLOWANCE: usize = 1024 * 1024;

/// Keys that expire together: their memory is loaded at the same time.
const FIRED_TOGETHER: usize = 32;

pub(crate) struct Desk {
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) keyspace: Keyspace,
    /// Sessions end only at the end of a round: one that the thread works on is there.
    pub(crate) sessions: Slab<Box<Session>>,
    /// Clients that may have something to be written, or are to be closed, in this round.
    pub(crate) dirty: Vec<usize>,
    pub(crate) channels: Channels,
    pub(crate) settings: Settings,
    pub(crate) stats: Stats,
    pub(crate) mailbox: Mailbox,
    pub(crate) timers: Scheduler<Due>,
    /// Clients from which more can be taken in the next round: their sockets were not emptied, or
    /// they were owed too much before.
    pub(crate) resuming: Vec<usize>,
    /// Memory of the clients' buffers.
    pub(crate) buffer_bytes: usize,
    lookup: Lookup,
    /// The number of the command PUBLISH.
    publish: u16,
    /// For replies that are made before they are put into their place.
    scratch: Vec<u8>,
    seed: u64,
}

impl Desk {
    pub(crate) fn new(
        number: usize,
        shared: Arc<Shared>,
        settings: Settings,
        mailbox: Mailbox,
        timers: Scheduler<Due>,
    ) -> Self {
        let mut keyspace = Keyspace::new(Time::new(shared.clock), timers.clone(), shared.placement.clone());
        keyspace.events.wanted = settings.events;
        let lookup = Lookup::new();
        let publish = lookup.named(PUBLISH.as_bytes()).unwrap_or_default();
        let (sessions, dirty, channels, stats) = Default::default();
        let (resuming, buffer_bytes, scratch, seed) = Default::default();
        #[rustfmt::skip] // A line for each of sixteen fields says nothing.
        return Self {
            number, shared, keyspace, sessions, dirty, channels, settings, stats, mailbox, timers,
            resuming, buffer_bytes, lookup, publish, scratch, seed,
        };
    }

    // ---- clients --------------------------------------------------------------------------------

    /// Takes a client on. It has been counted.
    pub(crate) fn welcome(&mut self, mut session: Session) -> usize {
        session.is_authenticated = self.settings.password.is_empty();
        self.stats.add(Count::Connections, 1);
        let slot = self.sessions.vacant_key();
        // Ordering: Relaxed, only the number matters.
        session.id = SessionId { slot, number: self.shared.next_id.fetch_add(1, Ordering::Relaxed) };
        self.sessions.insert(Box::new(session));
        self.put_off(slot);
        slot
    }

    /// Lets a client go.
    pub(crate) fn dismiss(&mut self, slot: usize) -> Box<Session> {
        pubsub::leave_all(self, slot);
        let session = self.sessions.remove(slot);
        if let Some(timer) = session.idle {
            self.timers.cancel(timer);
        }
        self.buffer_bytes -= session.counted;
        if session.kind == Kind::Client && self.shared.dismiss() && self.shared.is_draining() {
            self.mailbox.wake_all();
        }
        session
    }

    /// Notes that a client is to be written to, or closed, in this round.
    pub(crate) fn touch(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.sessions[slot].is_dirty, true) {
            self.dirty.push(slot);
        }
    }

    /// The slots of all clients.
    pub(crate) fn slots(&self) -> Vec<usize> {
        self.sessions.iter().map(|(slot, _)| slot).collect()
    }

    /// How many bytes may wait for a client that does not read, before it is not listened to either.
    /// Many clients send all their requests before they read the first reply, so it is much, unless
    /// there are many such clients.
    pub(crate) fn allowance(&self) -> usize {
        if self.buffer_bytes > CROWDED { SMALL_ALLOWANCE } else { ALLOWANCE }
    }

    /// Takes note of what a client's buffers take, and whether it can be listened to again.
    pub(crate) fn settle(&mut self, slot: usize) {
        let allowance = self.allowance();
        let session = &mut self.sessions[slot];
        let bytes = session.bytes();
        self.buffer_bytes = self.buffer_bytes + bytes - session.counted;
        session.counted = bytes;
        if session.is_paused && !session.is_owed_too_much(allowance) {
            session.is_paused = false;
            self.resuming.push(slot);
        }
    }

    // ---- time -----------------------------------------------------------------------------------

    /// Reads the clocks, at the start of a round.
    pub(crate) fn wake(&mut self) {
        if self.keyspace.time.refresh() {
            self.keyspace.clock_was_set();
        }
    }

    /// Timers of this thread's shard have fired.
    pub(crate) fn fired_all(&mut self, all: &[Fired<Due>]) {
        for some in all.chunks(FIRED_TOGETHER) {
            self.keyspace.warm(some.iter().filter_map(|fired| match fired.payload {
                Due::Key(place) => Some(place),
                Due::Idle(_) => None,
            }));
            some.iter().for_each(|fired| self.fired(fired));
        }
        self.publish_events();
    }

    fn fired(&mut self, fired: &Fired<Due>) {
        match fired.payload {
            Due::Key(place) => self.keyspace.fired(fired.key, place),
            Due::Idle(slot) => {
                let slot = slot as usize;
                let Some(session) = self.sessions.get_mut(slot) else { return };
                if session.idle.take_if(|timer| *timer == fired.key).is_none() {
                    return;
                }
                if session.has_subscribed() {
                    return self.put_off(slot);
                }
                session.ending = Ending::Now;
                self.stats.add(Count::IdleClosed, 1);
                self.touch(slot);
            }
        }
    }

    /// A client has been active: its idle timer moves, in place.
    pub(crate) fn put_off(&mut self, slot: usize) {
        let timeout = self.settings.idle_timeout.as_millis() as u64;
        let due = self.keyspace.time.tick().saturating_add(timeout).saturating_add(1);
        let session = &mut self.sessions[slot];
        if timeout == 0 || session.idle.is_some() && session.idle_at == due {
            return;
        }
        session.idle_at = due;
        let moved = session.idle.and_then(|timer| self.timers.reschedule(timer, due));
        session.idle = moved.or_else(|| self.timers.schedule(due, Due::Idle(slot as u32)).ok());
    }

    // ---- settings and counts --------------------------------------------------------------------

    /// Takes over settings. A new idle timeout counts from now, for all clients.
    pub(crate) fn apply(&mut self, settings: Settings) {
        self.keyspace.events.wanted = settings.events;
        let is_same = settings.idle_timeout == self.settings.idle_timeout;
        self.settings = settings;
        for slot in self.slots().into_iter().filter(|_| !is_same) {
            let idle = self.sessions[slot].idle.take();
            idle.and_then(|timer| self.timers.cancel(timer));
            self.put_off(slot);
        }
    }

    /// Publishes the memory that this thread uses; at the end of a round.
    pub(crate) fn publish_memory(&self) {
        let bytes = self.keyspace.store.bytes + self.buffer_bytes;
        // Ordering: Relaxed, an estimate for the other threads.
        self.shared.memory[self.number].store(bytes as u64, Ordering::Relaxed);
    }

    /// A number that cannot be foreseen without the secret of the hash of keys.
    pub(crate) fn chance(&mut self) -> u64 {
        self.seed = self.shared.placement.hash(&self.seed.to_le_bytes());
        self.seed
    }
}

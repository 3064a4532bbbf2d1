//! What a thread works on: its keys, its clients, and its messages. It touches no socket, so tests
//! and fuzzers drive it as the event loop does.

mod dispatch;
mod input;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shardwheel::Fired;
use slab::Slab;

use crate::clock::Time;
use crate::commands::config::Settings;
use crate::commands::pubsub::{self, Channels};
use crate::commands::table::{self, COMMANDS};
use crate::commands::{Command, Flags, Run, wrong_arity};
use crate::keyspace::{Due, Keyspace};
use crate::mail::batch::Batch;
use crate::mail::{Mailbox, Message};
use crate::protocol::parser::Parser;
use crate::protocol::{Failure, Outcome, Reply, Request};
use crate::session::gather::{Fold, Gather};
use crate::session::{Address, Ending, Session, SessionId};
use crate::shared::Shared;
use crate::stats::{Figure, Of, Stats};

/// Bytes that may wait for one client of a thread.
const ALLOWANCE: usize = 64 * 1024 * 1024;
/// If the thread's clients together take this, each has the small allowance.
const CROWDED: usize = 64 * 1024 * 1024;
const SMALL_ALLOWANCE: usize = 1024 * 1024;

/// Keys that expire together: their memory is loaded at the same time.
pub(crate) const FIRED_TOGETHER: usize = 32;
/// A subscriber that takes nothing for so long is not waited for any longer.
const PATIENCE_TICKS: u64 = 10_000;

pub(crate) struct Desk {
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) keyspace: Keyspace,
    /// Sessions end only at the end of a round: one that the thread works on is there.
    pub(crate) sessions: Slab<Box<Session>>,
    /// Clients that may have something to be written, or are to be closed, in this round.
    pub(crate) dirty: Vec<usize>,
    /// Clients from which more can be taken in the next round: their sockets were not emptied, or
    /// they were owed too much before.
    pub(crate) resuming: Vec<usize>,
    /// Clients that have come in this round: their sockets are to be registered.
    pub(crate) newcomers: Vec<usize>,
    pub(crate) channels: Channels,
    /// Clients with `behind_since`.
    pub(crate) behind: Vec<SessionId>,
    /// How many of them are waited for.
    slow_subscribers: usize,
    pub(crate) settings: Arc<Settings>,
    pub(crate) mailbox: Mailbox,
    /// What the other threads' keys and buffers take, as of the start of the round.
    memory_of_others: usize,
}

impl Desk {
    #[rustfmt::skip] // A line for each of these fields says nothing.
    pub(crate) fn new(number: usize, shared: &Arc<Shared>, mailbox: Mailbox) -> Self {
        let (shared, stats) = (shared.clone(), shared.stats[number].clone());
        let keyspace = Keyspace::new(Time::new(shared.clock), shared.timers[number].clone(), stats.clone());
        let (sessions, dirty, resuming, newcomers, channels, behind) = Default::default();
        let settings = shared.settings.load_full();
        Self {
            number, shared, stats, keyspace, sessions, dirty, resuming, newcomers, channels, behind,
            settings, mailbox, memory_of_others: 0, slow_subscribers: 0,
        }
    }

    /// A client is to move, and what it asks for now is asked for there.
    pub(crate) fn move_to(&mut self, slot: usize, thread: usize) {
        let session = &mut self.sessions[slot];
        session.skips_next = session.replies.is_muted;
        session.ending = Ending::MovesTo(thread);
    }

    /// Takes on the clients that have come: new ones, and those from other threads with what they have sent there.
    pub(crate) fn welcome_all(&mut self) {
        let arrivals = std::mem::take(&mut *self.shared.arrivals(self.number));
        for mut session in arrivals {
            let slot = self.sessions.vacant_key();
            if session.ending == Ending::Open {
                self.stats.add(Figure::Connections, 1);
                session.is_authenticated = self.settings.password.is_empty();
            } else {
                session.ending = Ending::Open;
                self.resuming.push(slot);
            }
            self.stats.add(Figure::Clients, 1);
            session.id.slot = slot;
            self.sessions.insert(session);
            self.put_off(slot);
            self.newcomers.push(slot);
        }
    }

    /// Lets a client go, to another thread or for good.
    pub(crate) fn dismiss(&mut self, slot: usize) -> Box<Session> {
        pubsub::leave_all(self, slot);
        let mut session = self.sessions.remove(slot);
        session.idle.take().and_then(|timer| self.keyspace.timers.cancel(timer));
        self.stats.sub(Figure::BufferBytes, std::mem::take(&mut session.counted));
        self.stats.sub(Figure::Clients, 1);
        if !matches!(session.ending, Ending::MovesTo(_)) && self.shared.dismiss() && self.shared.is_draining()
        {
            self.mailbox.wake_all();
        }
        session
    }

    /// Whether a client has authenticated, or need not.
    fn trusts(&self, slot: usize) -> bool {
        self.sessions[slot].is_authenticated || self.settings.password.is_empty()
    }

    /// Notes that a client is to be written to, or closed, in this round.
    pub(crate) fn touch(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.sessions[slot].is_dirty, true) {
            self.dirty.push(slot);
        }
    }

    pub(crate) fn slots(&self) -> Vec<usize> {
        self.sessions.iter().map(|(slot, _)| slot).collect()
    }

    /// How many bytes may wait for a client that does not read. It is much, because many clients send
    /// all their requests before they read the first reply.
    fn allowance(&self) -> usize {
        if self.stats.get(Figure::BufferBytes) > CROWDED { SMALL_ALLOWANCE } else { ALLOWANCE }
    }

    /// Takes note of what a client takes, and whether it can be listened to again.
    pub(crate) fn settle(&mut self, slot: usize) {
        let allowance = self.allowance();
        let session = &mut self.sessions[slot];
        self.stats.sub(Figure::BufferBytes, session.counted);
        session.counted = session.memory();
        self.stats.add(Figure::BufferBytes, session.counted);
        if session.is_paused && !session.replies.are_too_many(allowance) && !self.mailbox.is_clogged {
            session.is_paused = false;
            self.resuming.push(slot);
        }
    }

    /// Sends what other threads are to get. True if there is more.
    pub(crate) fn post(&mut self) -> bool {
        let was_clogged = self.mailbox.is_clogged;
        let is_full = self.mailbox.post();
        if was_clogged && !self.mailbox.is_clogged {
            self.slots().into_iter().for_each(|slot| self.settle(slot));
        }
        is_full
    }

    /// Reads the clocks, and what other threads have, at the start of a round.
    pub(crate) fn wake(&mut self) {
        self.keyspace.wake();
        if self.settings.max_memory > 0 {
            let all: usize = self.shared.stats.iter().map(|stats| stats.memory()).sum();
            self.memory_of_others = all - self.stats.memory();
        }
    }

    /// Whether keys that are due wait: for a subscriber of events, of any thread, that is behind but takes them, or for
    /// events on their way to other threads. So it is never cut off because many keys are due at once.
    pub(crate) fn holds_timers(&mut self) -> bool {
        let (now, sessions) = (self.keyspace.time.tick(), &mut self.sessions);
        let mut are_read = 0;
        self.behind.retain(|id| {
            let Some(session) = sessions.get_mut(id.slot).filter(|it| it.id == *id) else { return false };
            session.behind_since = session.behind_since.filter(|_| session.waiting() > pubsub::PORTION);
            let is_read = |since| now.saturating_sub(since) < PATIENCE_TICKS && session.ending != Ending::Now;
            are_read += usize::from(session.behind_since.is_some_and(is_read));
            session.behind_since.is_some()
        });
        // Ordering: see `Shared`. What all threads read in each round is written only if it changes.
        let before = std::mem::replace(&mut self.slow_subscribers, are_read);
        if are_read != before {
            let more = are_read.wrapping_sub(before);
            self.shared.slow_subscribers.fetch_add(more, Ordering::Relaxed);
        }
        self.mailbox.is_clogged
            || self.shared.events_underway.load(Ordering::Relaxed) > pubsub::PORTION
            || self.shared.slow_subscribers.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn fired_all(&mut self, all: &[Fired<Due>]) {
        for some in all.chunks(FIRED_TOGETHER) {
            self.keyspace.warm(some.iter().filter_map(|fired| match fired.payload {
                Due::Key(hash) => Some((fired.key, hash)),
                Due::Idle(_) => None,
            }));
            some.iter().for_each(|fired| self.fired(fired));
        }
        self.publish_events();
    }

    fn fired(&mut self, fired: &Fired<Due>) {
        match fired.payload {
            Due::Key(hash) => self.keyspace.fired(fired.key, hash),
            Due::Idle(slot) => {
                let (slot, timer) = (slot as usize, Some(fired.key));
                let Some(session) = self.sessions.get_mut(slot).filter(|it| it.idle == timer) else { return };
                if session.subscriptions() > 0 {
                    return self.put_off(slot);
                }
                session.ending = Ending::Now;
                self.stats.add(Figure::IdleClosed, 1);
                self.touch(slot);
            }
        }
    }

    /// A client has been active: its idle timer moves, in place.
    pub(crate) fn put_off(&mut self, slot: usize) {
        let timeout = self.settings.idle_timeout.as_millis() as u64;
        let due = self.keyspace.time.tick().saturating_add(timeout).saturating_add(1);
        let session = &mut self.sessions[slot];
        session.active = self.keyspace.time.tick();
        if timeout > 0 {
            let moved = session.idle.and_then(|timer| self.keyspace.timers.reschedule(timer, due));
            session.idle = moved.or_else(|| self.keyspace.timers.schedule(due, Due::Idle(slot as u32)).ok());
        }
    }

    /// Takes over the shared settings. A new idle timeout counts from now, for all clients.
    pub(crate) fn apply(&mut self) {
        let settings = self.shared.settings.load_full();
        self.keyspace.events.wanted = settings.events;
        let is_same = settings.idle_timeout == self.settings.idle_timeout;
        self.settings = settings;
        for slot in self.slots().into_iter().filter(|_| !is_same) {
            let idle = self.sessions[slot].idle.take();
            idle.and_then(|timer| self.keyspace.timers.cancel(timer));
            self.put_off(slot);
        }
    }
}

//! A client's side of the server: what it has sent, what it is owed, and its settings.
//!
//! Only the thread that serves a client touches its session.

pub(crate) mod gather;
pub(crate) mod replies;

use std::ops::{Index, IndexMut};

use mio::net::TcpStream;
use shardwheel::Key;
use slab::Slab;

use crate::protocol::parser::Parser;
use replies::Replies;

/// Where the reply to a part of a command goes: a session, a reply of it, and a part of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) session: SessionId,
    pub(crate) reply: u64,
    pub(crate) part: u32,
}

/// Names a session of a thread for ever: slots are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionId {
    pub(crate) slot: u32,
    id: u64,
}

/// What a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Client,
    /// HTTP, for one request for metrics.
    Metrics,
}

/// Whether a connection is to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Open,
    /// As soon as it has got all that it is owed. It is not listened to any more.
    WhenAnswered,
    /// At once.
    Now,
}

#[derive(Debug, Default)]
pub(crate) struct Session {
    /// `None` for a client within the process: a fuzzer's.
    pub(crate) stream: Option<TcpStream>,
    pub(crate) kind: Kind,
    /// The client's number, as CLIENT ID says it.
    pub(crate) id: u64,
    pub(crate) parser: Parser,
    /// What has been received and not yet parsed.
    pub(crate) input: Vec<u8>,
    pub(crate) replies: Replies,
    pub(crate) is_resp3: bool,
    pub(crate) is_authenticated: bool,
    pub(crate) name: Vec<u8>,
    pub(crate) channels: Vec<Box<[u8]>>,
    pub(crate) ending: Ending,
    /// The idle timer, and the tick for which it was last put off.
    pub(crate) idle: Option<Key>,
    pub(crate) idle_at: u64,
    /// Whether the thread has noted to write to it.
    pub(crate) is_dirty: bool,
    /// Whether it is not listened to until it has been written more.
    pub(crate) is_paused: bool,
    /// The memory of its buffers that has been counted.
    pub(crate) counted: usize,
}

/// A client is not listened to while so many of its replies are missing, or so many bytes of them:
/// other threads work on them, so it goes on soon.
const MAX_MISSING: (usize, usize) = (1024, 1024 * 1024);

impl Session {
    pub(crate) fn has_subscribed(&self) -> bool {
        !self.channels.is_empty()
    }

    /// Whether the client has to wait for what it is owed, or to read it, before it is listened to
    /// again. `allowance` is how many bytes may wait until it reads.
    pub(crate) fn is_owed_too_much(&self, allowance: usize) -> bool {
        let missing = (self.replies.outstanding(), self.replies.missing_bytes());
        self.replies.waiting() > allowance || missing.0 > MAX_MISSING.0 || missing.1 > MAX_MISSING.1
    }

    /// Memory that it takes for buffers.
    pub(crate) fn bytes(&self) -> usize {
        self.input.capacity() + self.replies.bytes()
    }
}

/// All sessions of a thread.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Slab<Box<Session>>,
    /// The sessions that may have something to be written, or are to be closed, in this round.
    pub(crate) dirty: Vec<u32>,
}

/// A session that its thread is working on is there: sessions end only at the end of a round.
impl Index<u32> for Sessions {
    type Output = Session;

    fn index(&self, slot: u32) -> &Session {
        &self.all[slot as usize]
    }
}

impl IndexMut<u32> for Sessions {
    fn index_mut(&mut self, slot: u32) -> &mut Session {
        &mut self.all[slot as usize]
    }
}

impl Sessions {
    pub(crate) fn insert(&mut self, session: Session) -> u32 {
        self.all.insert(Box::new(session)) as u32
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Session {
        *self.all.remove(slot as usize)
    }

    /// The session in a slot, if it has not ended.
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Session> {
        self.all.get_mut(slot as usize).map(|session| &mut **session)
    }

    /// The session of this name, if it has not ended.
    pub(crate) fn named(&mut self, name: SessionId) -> Option<&mut Session> {
        self.get_mut(name.slot).filter(|session| session.id == name.id)
    }

    /// The name of the session in a slot.
    pub(crate) fn name(&self, slot: u32) -> SessionId {
        SessionId { slot, id: self[slot].id }
    }

    /// Notes that a session is to be written to, or closed, in this round.
    pub(crate) fn touch(&mut self, slot: u32) {
        if !std::mem::replace(&mut self[slot].is_dirty, true) {
            self.dirty.push(slot);
        }
    }

    /// The slots in use.
    pub(crate) fn slots(&self) -> Vec<u32> {
        self.all.iter().map(|(slot, _)| slot as u32).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.all.iter().map(|(_, session)| &**session)
    }
}

//! A client's side of the server: what it has sent, what it is owed, and its settings.
//!
//! Only the thread that serves a client touches its session.

pub(crate) mod gather;
pub(crate) mod replies;

use std::collections::{HashSet, VecDeque};

use mio::net::TcpStream;
use shardwheel::{Key, Tick};

use crate::keyspace::Hash;
use crate::mail::batch::Batch;
use crate::protocol::Reply;
use crate::protocol::parser::Parser;
use replies::Replies;

/// Where the reply to a part of a command goes: a session, a reply of it, and a part of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) session: SessionId,
    pub(crate) reply: u64,
    pub(crate) part: u32,
}

/// Names a session of a thread for ever, although slots are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionId {
    pub(crate) slot: usize,
    /// The client's number, as CLIENT ID replies it.
    pub(crate) number: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Open,
    /// As soon as it has got all that it is owed. It is not listened to any more.
    WhenAnswered,
    /// As soon as no reply is missing. Then another thread takes it on, with what it has not been written yet.
    MovesTo(usize),
    Now,
}

type Versions = Vec<(Hash, u64)>;

#[derive(Default)]
pub(crate) struct Session {
    /// `None` for a client within the process: a fuzzer's.
    pub(crate) stream: Option<TcpStream>,
    pub(crate) id: SessionId,
    pub(crate) parser: Parser,
    pub(crate) input: Vec<u8>,
    pub(crate) replies: Replies,
    pub(crate) is_resp3: bool,
    pub(crate) is_authenticated: bool,
    pub(crate) name: Vec<u8>,
    /// Those it has subscribed to, and the patterns.
    pub(crate) channels: [HashSet<Box<[u8]>>; 2],
    /// What they take, here and in the thread's list.
    pub(crate) channel_bytes: usize,
    /// What it has sent since MULTI.
    pub(crate) queued: Option<Box<Batch>>,
    /// One of these commands was refused: EXEC runs none.
    pub(crate) is_refused: bool,
    /// The keys that it watches, with their versions. They belong to its thread.
    pub(crate) watched: Versions,
    /// The slot of these keys.
    pub(crate) slot: u64,
    /// The keys of an MGET that have not been looked up. It is not listened to before they are.
    pub(crate) rest: VecDeque<Box<[u8]>>,
    /// Messages while EXEC or MGET reserves the places of its replies: no message may come between them.
    pub(crate) held: Option<Vec<u8>>,
    /// CLIENT REPLY OFF and SKIP: no request is replied, or the next one is not.
    pub(crate) is_silent: bool,
    pub(crate) skips_next: bool,
    pub(crate) ending: Ending,
    /// The client will send nothing more: the poller says so once, but there may be more to read before.
    pub(crate) has_ended: bool,
    pub(crate) idle: Option<Key>,
    /// The tick at which it has been active.
    pub(crate) active: Tick,
    pub(crate) is_dirty: bool,
    /// Events of keys wait for it, much of them. Since this tick, it has taken nothing.
    pub(crate) behind_since: Option<Tick>,
    /// Whether it is not listened to until it has been written more.
    pub(crate) is_paused: bool,
    /// Whether a step has ended before its requests: the rest comes in the next round, before more is read.
    pub(crate) has_requests: bool,
    /// The memory that has been counted.
    pub(crate) counted: usize,
}

impl Session {
    pub(crate) fn memory(&self) -> usize {
        let buffers = self.input.capacity() + self.replies.bytes() + self.parser.bytes();
        let queued = self.queued.as_ref().map_or(0, |it| it.memory()) + size_of_val(&self.watched[..]);
        let rest = self.rest.capacity() * size_of::<Box<[u8]>>() + self.held_bytes();
        buffers + queued + rest + self.name.capacity() + self.channel_bytes
    }

    /// Bytes that wait for it.
    pub(crate) fn waiting(&self) -> usize {
        self.replies.waiting() + self.held_bytes()
    }

    fn held_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, Vec::len)
    }

    pub(crate) fn subscriptions(&self) -> usize {
        self.channels.iter().map(HashSet::len).sum()
    }

    /// Ends a transaction: what is queued for it, and watched.
    pub(crate) fn end_transaction(&mut self) -> Option<(Box<Batch>, Versions)> {
        Some((self.queued.take()?, std::mem::take(&mut self.watched)))
    }

    /// The next request begins: CLIENT REPLY says whether it is replied.
    pub(crate) fn begin(&mut self) {
        self.replies.is_muted = std::mem::take(&mut self.skips_next) || self.is_silent;
    }

    /// Appends a reply, or several, after all that the client has asked for before.
    pub(crate) fn reply(&mut self, write: impl FnOnce(&mut Reply<'_>)) {
        if !self.replies.is_muted {
            self.append(write);
        }
    }

    /// Appends what comes although replies are muted.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Reply<'_>)) {
        let mut out = self.replies.open();
        write(&mut Reply { out: &mut out, is_resp3: self.is_resp3 });
        self.replies.close(out);
    }

    /// Appends a message, which answers no request.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Reply<'_>)) {
        match &mut self.held {
            Some(out) => write(&mut Reply { out, is_resp3: self.is_resp3 }),
            None => self.append(write),
        }
    }
}

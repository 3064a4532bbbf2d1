//! A client's side of the server: what it has sent, what it is owed, and its settings.
//!
//! Only the thread that serves a client touches its session.

pub(crate) mod gather;
pub(crate) mod replies;

use std::collections::HashSet;

use mio::net::TcpStream;
use shardwheel::Key;

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
    Now,
}

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
    /// Messages while EXEC reserves the places of its replies: no message may come between them.
    pub(crate) held: Option<Vec<u8>>,
    pub(crate) ending: Ending,
    /// The client will send nothing more: the poller says so once, but there may be more to read before.
    pub(crate) has_ended: bool,
    pub(crate) idle: Option<Key>,
    pub(crate) is_dirty: bool,
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
        let queued = self.queued.as_ref().map_or(0, |it| it.memory()) + self.held_bytes();
        buffers + queued + self.name.capacity() + self.channel_bytes
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

    /// Appends a reply, or several, after all that the client has asked for before.
    pub(crate) fn reply(&mut self, write: impl FnOnce(&mut Reply<'_>)) {
        let mut out = self.replies.open();
        write(&mut Reply { out: &mut out, is_resp3: self.is_resp3 });
        self.replies.close(out);
    }

    /// Appends a message, which answers no request.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Reply<'_>)) {
        match &mut self.held {
            Some(out) => write(&mut Reply { out, is_resp3: self.is_resp3 }),
            None => self.reply(write),
        }
    }
}

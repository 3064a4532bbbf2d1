//! Replies in the order of the requests, although other threads answer some of them later.
//!
//! `out` holds what can be written to the client. While a reply is missing, the ones after it wait:
//! each request since then has a slot, in which the finished reply of a later request stands.

use std::collections::VecDeque;

use crate::session::gather::Gather;

/// Buffers with more room than this are given back when they are empty.
const KEPT_BYTES: usize = 4 * 1024;

enum Slot {
    Staged(Vec<u8>),
    /// Another thread answers, or several threads answer parts of it. If it is muted, the answer only says that the
    /// command has run: a client does not move before.
    Missing {
        gather: Option<Box<Gather>>,
        is_muted: bool,
    },
}

#[derive(Default)]
pub(crate) struct Replies {
    out: Vec<u8>,
    written: usize,
    /// The bytes of all that is staged.
    staged: usize,
    slots: VecDeque<Slot>,
    first: u64,
    /// The length of other threads' recent replies, on average; `None` before the first.
    usual: Option<usize>,
    /// What is asked for now is not replied.
    pub(crate) is_muted: bool,
}

/// A client is not listened to while this many of its replies are missing, or this many bytes of them,
/// if replies are as long as usual: other threads work on them, so it goes on soon.
const MAX_MISSING: usize = 1024;
const MAX_MISSING_BYTES: usize = 1024 * 1024;
const UNKNOWN_LENGTH: usize = 64 * 1024;
/// An average forgets a reply after about this many further replies.
const REMEMBERED: usize = 8;

impl Replies {
    /// Takes the buffer to which the next reply is appended, or several. `close` takes it back.
    pub(crate) fn open(&mut self) -> Vec<u8> {
        if self.slots.is_empty() { std::mem::take(&mut self.out) } else { Vec::new() }
    }

    pub(crate) fn close(&mut self, buffer: Vec<u8>) {
        if self.slots.is_empty() {
            self.out = buffer;
        } else {
            self.staged += buffer.len();
            self.slots.push_back(Slot::Staged(buffer));
        }
    }

    /// Reserves the next place for a reply that others give. Returns its number.
    pub(crate) fn expect(&mut self, gather: Option<Gather>) -> u64 {
        let (gather, is_muted) = (gather.map(Box::new), self.is_muted);
        self.slots.push_back(Slot::Missing { gather, is_muted });
        self.first + self.slots.len() as u64 - 1
    }

    pub(crate) fn add(&mut self, number: u64, part: u32, reply: &[u8]) {
        let usual = self.usual.unwrap_or(reply.len());
        self.usual = Some(usual - usual / REMEMBERED + reply.len() / REMEMBERED);
        let Some(slot) = self.slots.get_mut(number.wrapping_sub(self.first) as usize) else { return };
        let Slot::Missing { gather, is_muted } = slot else { return };
        if let Some(gather) = gather
            && !gather.add(part, reply)
        {
            return;
        }
        let (gather, is_muted) = (gather.take(), *is_muted);
        let mut staged = Vec::new();
        let buffer = if number == self.first { &mut self.out } else { &mut staged };
        match gather {
            _ if is_muted => {}
            Some(gather) => gather.write(buffer),
            None => buffer.extend_from_slice(reply),
        }
        self.staged += staged.len();
        *slot = Slot::Staged(staged);
        self.move_up();
    }

    fn move_up(&mut self) {
        while let Some(Slot::Staged(reply)) = self.slots.front_mut() {
            let reply = std::mem::take(reply);
            self.slots.pop_front();
            self.first += 1;
            self.staged -= reply.len();
            if self.out.is_empty() && reply.len() > KEPT_BYTES {
                self.out = reply;
            } else {
                self.out.extend_from_slice(&reply);
            }
        }
    }

    pub(crate) fn ready(&self) -> &[u8] {
        &self.out[self.written..]
    }

    pub(crate) fn note_written(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written == self.out.len() {
            self.written = 0;
            self.out.clear();
            self.out.shrink_to(KEPT_BYTES);
        } else if self.written > self.out.len() / 2 {
            self.out.drain(..self.written);
            self.written = 0;
        }
    }

    /// Whether the client is not listened to until less is missing, or less waits than `allowance`.
    pub(crate) fn are_too_many(&self, allowance: usize) -> bool {
        let missing = self.slots.len() * self.usual.unwrap_or(UNKNOWN_LENGTH);
        self.waiting() > allowance || self.slots.len() > MAX_MISSING || missing > MAX_MISSING_BYTES
    }

    pub(crate) fn waiting(&self) -> usize {
        self.out.len() - self.written + self.staged
    }

    pub(crate) fn bytes(&self) -> usize {
        self.out.capacity() + self.staged
    }

    /// Whether none is missing.
    pub(crate) fn are_there(&self) -> bool {
        self.slots.is_empty()
    }
}

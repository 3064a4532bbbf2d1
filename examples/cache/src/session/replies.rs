//! Replies in the order of the requests, although other threads answer some of them later.
//!
//! `out` holds what can be written to the client. While a reply is missing, the ones after it wait:
//! each request since then has a slot, and finished replies of later requests stand in `staged`.

use std::collections::VecDeque;
use std::ops::Range;

use crate::session::gather::Gather;

/// Buffers with more room than this are given back when they are empty.
const KEPT_BYTES: usize = 4 * 1024;

#[derive(Debug)]
enum Slot {
    /// The reply stands here in `staged`.
    Staged(Range<usize>),
    /// Another thread answers, or several threads answer parts of it.
    Missing(Option<Box<Gather>>),
}

#[derive(Debug, Default)]
pub(crate) struct Replies {
    out: Vec<u8>,
    /// How much of `out` has been written.
    written: usize,
    staged: Vec<u8>,
    slots: VecDeque<Slot>,
    /// The number of the reply in the first slot.
    first: u64,
    /// The length of other threads' recent replies, on average; `None` before the first.
    usual: Option<usize>,
}

/// The length that is expected of another thread's reply before there has been one.
const UNKNOWN_LENGTH: usize = 64 * 1024;
/// An average forgets a reply after about this many further replies.
const REMEMBERED: usize = 8;

impl Replies {
    /// Lets `write` append a reply, or several, after all that were asked for before.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.slots.is_empty() {
            return write(&mut self.out);
        }
        let start = self.staged.len();
        write(&mut self.staged);
        self.slots.push_back(Slot::Staged(start..self.staged.len()));
    }

    /// Reserves the next place for a reply that others give, in parts if it is gathered. Returns its
    /// number.
    pub(crate) fn expect(&mut self, gather: Option<Gather>) -> u64 {
        self.slots.push_back(Slot::Missing(gather.map(Box::new)));
        self.first + self.slots.len() as u64 - 1
    }

    /// A reply, or a part of it, has come. Returns the whole if it was the last part.
    pub(crate) fn add(&mut self, number: u64, part: u32, reply: &[u8]) -> Option<Box<Gather>> {
        let usual = self.usual.unwrap_or(reply.len());
        self.usual = Some(usual - usual / REMEMBERED + reply.len() / REMEMBERED);
        match self.slots.get_mut(number.checked_sub(self.first)? as usize)? {
            Slot::Missing(None) => self.fill(number, reply),
            Slot::Missing(gather) => return gather.take_if(|gather| gather.add(part, reply)),
            Slot::Staged(_) => {}
        }
        None
    }

    /// Puts a reply into its place.
    pub(crate) fn fill(&mut self, number: u64, reply: &[u8]) {
        if number == self.first {
            self.out.extend_from_slice(reply);
            self.slots.pop_front();
            self.first += 1;
            return self.move_up();
        }
        let start = self.staged.len();
        self.staged.extend_from_slice(reply);
        self.slots[(number - self.first) as usize] = Slot::Staged(start..self.staged.len());
    }

    /// Moves the replies that miss nothing before them.
    fn move_up(&mut self) {
        while let Some(Slot::Staged(range)) = self.slots.front() {
            self.out.extend_from_slice(&self.staged[range.clone()]);
            self.slots.pop_front();
            self.first += 1;
        }
        if self.slots.is_empty() {
            self.staged.clear();
            self.staged.shrink_to(KEPT_BYTES);
        }
    }

    /// What can be written now.
    pub(crate) fn ready(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// So many bytes of it have been written.
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

    /// How many replies are missing, or wait for one that is.
    pub(crate) fn outstanding(&self) -> usize {
        self.slots.len()
    }

    /// How many bytes wait for the client or for other replies.
    pub(crate) fn waiting(&self) -> usize {
        self.out.len() - self.written + self.staged.len()
    }

    /// How many bytes are missing, if replies are as long as usual.
    pub(crate) fn missing_bytes(&self) -> usize {
        self.slots.len() * self.usual.unwrap_or(UNKNOWN_LENGTH)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.out.capacity() + self.staged.capacity()
    }

    /// Whether the client has been written all that it asked for.
    pub(crate) fn is_done(&self) -> bool {
        self.slots.is_empty() && self.ready().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::gather::Fold;

    fn say(replies: &mut Replies, text: &str) {
        replies.append(|out| out.extend_from_slice(text.as_bytes()));
    }

    #[test]
    fn replies_keep_the_order_of_requests() {
        let mut replies = Replies::default();
        say(&mut replies, "a");
        let b = replies.expect(None);
        say(&mut replies, "c");
        let d = replies.expect(None);
        let e = replies.expect(Some(Gather::new(Fold::Sum, 2, false)));
        say(&mut replies, "f");
        assert_eq!((replies.ready(), replies.outstanding()), (&b"a"[..], 5));
        assert!(replies.add(d, 0, b"d").is_none());
        assert!(replies.add(e, 1, b":1\r\n").is_none());
        assert_eq!(replies.ready(), b"a");
        assert!(replies.add(b, 0, b"b").is_none());
        assert_eq!(replies.ready(), b"abcd");
        replies.note_written(3);
        assert!(replies.add(e, 0, b":2\r\n").is_some());
        replies.fill(e, b"e");
        assert_eq!((replies.ready(), replies.outstanding()), (&b"def"[..], 0));
        replies.note_written(3);
        assert!(replies.is_done());
        say(&mut replies, "g");
        assert_eq!(replies.ready(), b"g");
    }
}

//! Work for another thread: commands with their arguments, and the replies on the way back.
//!
//! A thread collects in one batch all that it wants of another in one round. So messages, and the
//! wake-ups that they cost, are fewer than commands, the more so the busier the threads are.

use crate::protocol::{Reply, Request, Span};
use crate::session::Address;

/// A batch that has held more bytes than this is not kept.
const KEPT_BYTES: usize = 1024 * 1024;

/// One command, or the part of a command that concerns one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// Where the reply goes; `None` if no reply is wanted.
    pub(crate) home: Option<Address>,
    /// The number of the command in the table.
    pub(crate) command: u16,
    pub(crate) is_resp3: bool,
    pub(crate) hash: u64,
    /// The end of its arguments among the spans, and of its reply among the replies.
    spans_end: u32,
    reply_end: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Batch {
    items: Vec<Item>,
    spans: Vec<Span>,
    bytes: Vec<u8>,
    replies: Vec<u8>,
}

impl Batch {
    /// Adds a command with these arguments.
    pub(crate) fn add<'a>(
        &mut self,
        home: Option<Address>,
        (command, is_resp3, hash): (u16, bool, u64),
        args: impl Iterator<Item = &'a [u8]>,
    ) {
        for arg in args {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(arg);
            self.spans.push(Span::new(start, self.bytes.len()));
        }
        let spans_end = self.spans.len() as u32;
        self.items.push(Item { home, command, is_resp3, hash, spans_end, reply_end: 0 });
    }

    /// Passes each command to `run`, which writes the reply. True if a reply is wanted.
    pub(crate) fn run(&mut self, mut run: impl FnMut(&Item, &Request<'_>, &mut Reply<'_>)) -> bool {
        let (mut start, mut is_wanted) = (0, false);
        for item in &mut self.items {
            let end = item.spans_end as usize;
            let request = Request { bytes: &self.bytes, spans: &self.spans[start..end], hash: item.hash };
            run(item, &request, &mut Reply { out: &mut self.replies, is_resp3: item.is_resp3 });
            item.reply_end = self.replies.len();
            is_wanted |= item.home.is_some();
            start = end;
        }
        self.bytes.clear();
        is_wanted
    }

    /// Each command whose reply is wanted, with the reply.
    pub(crate) fn replies(&self) -> impl Iterator<Item = (Address, &Item, &[u8])> {
        let mut start = 0;
        self.items.iter().filter_map(move |item| {
            let reply = &self.replies[start..item.reply_end];
            start = item.reply_end;
            Some((item.home?, item, reply))
        })
    }

    /// The bytes of all arguments.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        if self.bytes.capacity() + self.replies.capacity() > KEPT_BYTES {
            *self = Self::default();
        }
        self.items.clear();
        self.spans.clear();
        self.bytes.clear();
        self.replies.clear();
    }
}

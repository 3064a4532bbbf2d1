//! Work for another thread: commands with their arguments, and the replies on the way back.
//!
//! A thread collects in one batch all that it wants of another in one round. So messages, and the
//! wake-ups that they cost, are fewer than commands, the more so the busier the threads are.

use crate::keyspace::Hash;
use crate::protocol::{Reply, Request, Span};
use crate::session::Address;

#[derive(Clone, Copy, Debug)]
struct Item {
    home: Option<Address>,
    command: u16,
    is_resp3: bool,
    hash: Hash,
    /// The end of its arguments among the spans, and of its reply among the replies.
    spans_end: u32,
    reply_end: usize,
}

#[derive(Default)]
pub(crate) struct Batch {
    items: Vec<Item>,
    spans: Vec<Span>,
    pub(super) bytes: Vec<u8>,
    replies: Vec<u8>,
}

impl Batch {
    /// Adds a command, whose reply goes to `home` if it is wanted.
    pub(crate) fn add(&mut self, home: Option<Address>, request: &Request<'_>) {
        for arg in request.from(0) {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(arg);
            self.spans.push(Span::new(start, self.bytes.len()));
        }
        let &Request { command, is_resp3, hash, .. } = request;
        let spans_end = self.spans.len() as u32;
        self.items.push(Item { home, command, is_resp3, hash, spans_end, reply_end: 0 });
    }

    /// Passes each command to `run`, which writes the reply. True if a reply is wanted.
    pub(crate) fn run(&mut self, mut run: impl FnMut(&Request<'_>, &mut Reply<'_>)) -> bool {
        let (mut start, mut is_wanted) = (0, false);
        for item in &mut self.items {
            let &mut Item { home, command, is_resp3, hash, spans_end, .. } = item;
            let spans = &self.spans[start..spans_end as usize];
            let request = Request { bytes: &self.bytes, spans, command, is_resp3, hash, client: 0 };
            run(&request, &mut Reply { out: &mut self.replies, is_resp3 });
            item.reply_end = self.replies.len();
            is_wanted |= home.is_some();
            start = spans_end as usize;
        }
        self.bytes.clear();
        is_wanted
    }

    pub(crate) fn replies(&self) -> impl Iterator<Item = (Address, &[u8])> {
        let mut start = 0;
        self.items.iter().filter_map(move |item| {
            let reply = &self.replies[start..item.reply_end];
            start = item.reply_end;
            Some((item.home?, reply))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

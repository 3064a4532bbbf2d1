//! Work for another thread: commands with their arguments, and the replies on the way back.
//!
//! A thread collects in one batch all that it wants of another in one round. So messages, and the
//! wake-ups that they cost, are fewer than commands, the more so the busier the threads are.

use crate::clock::Step;
use crate::commands::Command;
use crate::commands::table::COMMANDS;
use crate::keyspace::Hash;
use crate::protocol::{Reply, Request, Span};
use crate::session::Address;

/// The slot of a client in a thread that is not its own.
const NOWHERE: usize = usize::MAX;

#[derive(Clone, Copy, Debug)]
struct Item {
    home: Option<Address>,
    command: u16,
    is_resp3: bool,
    is_joined: bool,
    hash: Hash,
    /// The end of its arguments among the spans, and of its reply among the replies.
    spans_end: u32,
    reply_end: usize,
}

#[derive(Default)]
pub(crate) struct Batch {
    items: Vec<Item>,
    /// The first span of the first item.
    start: usize,
    spans: Vec<Span>,
    pub(super) bytes: Vec<u8>,
    replies: Vec<u8>,
    /// Bytes of what nobody waits for: events.
    pub(crate) events: usize,
}

impl Batch {
    /// Adds a command, whose reply goes to `home` if it is wanted.
    pub(crate) fn add(&mut self, home: Option<Address>, request: &Request<'_>) {
        for arg in request.from(0) {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(arg);
            self.spans.push(Span::new(start, self.bytes.len()));
        }
        self.events += if home.is_none() { request.args_len() } else { 0 };
        let &Request { command, is_resp3, is_joined, hash, .. } = request;
        let spans_end = self.spans.len() as u32;
        self.items.push(Item { home, command, is_resp3, is_joined, hash, spans_end, reply_end: 0 });
    }

    /// Passes each command to `run`, which writes the reply. If the replies are longer than `max`, or with a `max` a step
    /// is over, it stops at the end of a transaction, and returns the rest.
    pub(crate) fn run(
        &mut self,
        max: usize,
        mut run: impl FnMut(Option<Address>, &Request<'_>, &mut Reply<'_>),
    ) -> Option<Self> {
        let (mut start, mut done, step) = (self.start, 0, Step::begin());
        let is_bounded = max < usize::MAX;
        for item in &mut self.items {
            let is_enough = self.replies.len() > max || is_bounded && done > 0 && step.is_over();
            if is_enough && !item.is_joined {
                break;
            }
            let &mut Item { command, is_resp3, is_joined, hash, spans_end, .. } = item;
            let (bytes, spans) = (&self.bytes[..], &self.spans[start..spans_end as usize]);
            let known = Request { command, is_resp3, is_joined, hash, ..Request::default() };
            let request = Request { bytes, spans, client: NOWHERE, ..known };
            run(item.home, &request, &mut Reply { out: &mut self.replies, is_resp3 });
            item.reply_end = self.replies.len();
            (start, done) = (spans_end as usize, done + 1);
        }
        if done == self.items.len() {
            self.bytes.clear();
            return None;
        }
        let (spans, bytes) = (std::mem::take(&mut self.spans), std::mem::take(&mut self.bytes));
        let (items, events) = (self.items.split_off(done), std::mem::take(&mut self.events));
        Some(Self { items, start, spans, bytes, replies: Vec::new(), events })
    }

    /// Whether a reply is wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.items.iter().any(|item| item.home.is_some())
    }

    pub(crate) fn replies(&self) -> impl Iterator<Item = (Address, &[u8])> {
        let mut start = 0;
        self.items.iter().filter_map(move |item| {
            let reply = &self.replies[start..item.reply_end];
            start = item.reply_end;
            Some((item.home?, reply))
        })
    }

    pub(crate) fn replies_len(&self) -> usize {
        self.replies.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn commands(&self) -> impl Iterator<Item = &'static Command> {
        self.items.iter().map(|item| &COMMANDS[usize::from(item.command)])
    }

    pub(crate) fn memory(&self) -> usize {
        size_of_val(&self.items[..]) + size_of_val(&self.spans[..]) + self.bytes.capacity()
    }
}

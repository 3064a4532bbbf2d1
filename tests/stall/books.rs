//! One outcome for each timer.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many payloads there have been, and what became of them.
#[derive(Default)]
pub(crate) struct Books {
    made: AtomicUsize,
    ended: AtomicUsize,
    dropped: AtomicUsize,
}

/// Stands for a timer in the books.
pub(crate) struct Ticket {
    has_ended: bool,
    books: Arc<Books>,
}

/// A payload, large so that a segment is soon full.
pub(crate) struct Load {
    tag: u64,
    ticket: Ticket,
    _room: [MaybeUninit<u8>; 440],
}

impl Books {
    pub(crate) fn ticket(self: &Arc<Self>) -> Ticket {
        self.made.fetch_add(1, Ordering::Relaxed);
        Ticket { has_ended: false, books: Arc::clone(self) }
    }

    pub(crate) fn load(self: &Arc<Self>, tag: u64) -> Load {
        Load { tag, ticket: self.ticket(), _room: [MaybeUninit::uninit(); _] }
    }

    /// How many were dropped where they lay: no caller had them. None if one has two outcomes, or none yet.
    pub(crate) fn dropped(&self) -> Option<usize> {
        let [made, ended, dropped] =
            [&self.made, &self.ended, &self.dropped].map(|count| count.load(Ordering::Relaxed));
        (made == ended + dropped).then_some(dropped)
    }
}

impl Load {
    /// The caller has it, by whichever way.
    pub(crate) fn end(mut self) -> u64 {
        self.ticket.end();
        self.tag
    }
}

impl Ticket {
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let count = if self.has_ended { &self.books.ended } else { &self.books.dropped };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

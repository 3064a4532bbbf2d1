//! A large payload of the ledger.

use std::mem::MaybeUninit;

use crate::support::ledger::{End, Ledger, Payload};

/// A payload, large so that a few timers fill a segment.
pub(crate) struct Load {
    tag: u64,
    payload: Payload,
    _room: [MaybeUninit<u8>; 440],
}

impl Load {
    pub(crate) fn new(ledger: &Ledger, tag: u64) -> Self {
        Self { tag, payload: ledger.payload(), _room: [MaybeUninit::uninit(); _] }
    }

    /// Notes how the caller got the payload, and returns the tag.
    pub(crate) fn end(self, end: End) -> u64 {
        self.payload.end(end);
        self.tag
    }
}

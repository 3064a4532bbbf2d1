//! What goes over a connection: requests in, replies out.
//!
//! Nothing here knows what a command means.

pub(crate) mod inline;
pub(crate) mod parser;
mod reply;

use crate::keyspace::Hash;

pub(crate) use reply::{Failure, NOT_AN_INTEGER, Outcome, Reply, SYNTAX};

/// The place of an argument in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The span from `start` to `end`. Buffers end long before 4 GiB (`parser::MAX_REQUEST`).
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

/// One command with its arguments; the first argument is its name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) spans: &'a [Span],
    /// The number of the command in the table, once it is known.
    pub(crate) command: u16,
    pub(crate) is_resp3: bool,
    /// The client's slot, if a command runs in the thread of its client.
    pub(crate) client: usize,
    /// It runs in one piece with the command before it for the same thread: both are of one transaction.
    pub(crate) is_joined: bool,
    /// The hash of the key, if the command is for one key.
    pub(crate) hash: Hash,
}

impl<'a> Request<'a> {
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// An argument. Commands read only as many as their arity promises, or look at `len`.
    pub(crate) fn arg(&self, index: usize) -> &'a [u8] {
        self.spans[index].of(self.bytes)
    }

    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.spans.get(index..).unwrap_or_default().iter().map(move |span| span.of(bytes))
    }

    /// The bytes of all arguments.
    pub(crate) fn args_len(&self) -> usize {
        self.from(0).map(<[u8]>::len).sum()
    }

    /// Whether an argument is this word, in any case.
    pub(crate) fn is(&self, index: usize, word: &str) -> bool {
        self.arg(index).eq_ignore_ascii_case(word.as_bytes())
    }
}

/// Reads a decimal integer of 64 bits. No sign but a minus, no space, no leading zero.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let (sign, digits) = text.strip_prefix(b"-").map_or((1, text), |digits| (-1, digits));
    if !matches!(digits, [b'1'..=b'9', ..]) {
        return (text == b"0").then_some(0);
    }
    digits.iter().try_fold(0_i64, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit <= 9)?;
        value.checked_mul(10)?.checked_add(sign * i64::from(digit))
    })
}

//! Keyspace notifications: what happens to keys, as messages to subscribers.

use crate::commands::table::PUBLISH;
use crate::mail::batch::Batch;
use crate::protocol::{Request, Span};

/// A class of events, and what `notify-keyspace-events` allows: a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class(u16);

/// The letters of the classes, a bit each, in the order in which Redis writes them. The letters of
/// types that this cache does not have are accepted and kept.
const LETTERS: &[u8] = b"g$lshzxetdnKEm";
/// `A` stands for these classes; with them, Redis does not write the `n` after them.
const ALL: u16 = 0b11_1111_1111;
const HIDDEN_BY_ALL: usize = 11;

impl Class {
    pub(crate) const GENERIC: Self = Self(1);
    pub(crate) const STRING: Self = Self(1 << 1);
    pub(crate) const EXPIRED: Self = Self(1 << 6);
    pub(crate) const NEW: Self = Self(1 << 10);
    const KEYSPACE: Self = Self(1 << 11);
    const KEYEVENT: Self = Self(1 << 12);
    pub(crate) const MISS: Self = Self(1 << 13);

    pub(crate) fn parse(letters: &[u8]) -> Option<Self> {
        letters.iter().try_fold(Self::default(), |classes, &letter| {
            let place = || LETTERS.iter().position(|&known| known == letter);
            Some(Self(classes.0 | if letter == b'A' { ALL } else { 1 << place()? }))
        })
    }

    pub(crate) fn letters(self) -> String {
        let (all, hidden) = if self.0 & ALL == ALL { ("A", HIDDEN_BY_ALL) } else { ("", 0) };
        let letters = LETTERS.iter().enumerate().skip(hidden).filter(|(bit, _)| self.0 >> bit & 1 == 1);
        all.chars().chain(letters.map(|(_, &letter)| char::from(letter))).collect()
    }

    fn has(self, class: Self) -> bool {
        self.0 & class.0 != 0
    }
}

/// What has happened to keys since the last publication, as requests to publish it.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) wanted: Class,
    pub(crate) pending: Batch,
}

impl Events {
    pub(crate) fn add(&mut self, class: Class, name: &str, key: &[u8]) {
        if !self.wanted.has(class) {
            return;
        }
        let mut publish = |prefix: &[u8], of: &[u8], text: &[u8]| {
            let (bytes, end) = ([prefix, of, text].concat(), prefix.len() + of.len());
            let spans = [Span::new(0, 0), Span::new(0, end), Span::new(end, bytes.len())];
            let request = Request { bytes: &bytes, spans: &spans, command: PUBLISH, ..Request::default() };
            self.pending.add(None, &request);
        };
        if self.wanted.has(Class::KEYSPACE) {
            publish(b"__keyspace@0__:", key, name.as_bytes());
        }
        if self.wanted.has(Class::KEYEVENT) {
            publish(b"__keyevent@0__:", name.as_bytes(), key);
        }
    }
}

//! Keyspace notifications: what happens to keys, for those who have subscribed to it.

/// A class of events, and what `notify-keyspace-events` allows: a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class(u16);

/// The letters of the classes, in the order in which Redis writes them. The letters of types that
/// this cache does not have are accepted and kept.
const LETTERS: &[u8] = b"g$lshzxetdKEmn";
/// The classes that `A` stands for: the first ten.
const ALL: u16 = 0b11_1111_1111;

impl Class {
    pub(crate) const GENERIC: Self = Self::of(b'g');
    pub(crate) const STRING: Self = Self::of(b'$');
    pub(crate) const EXPIRED: Self = Self::of(b'x');
    const KEYSPACE: Self = Self::of(b'K');
    const KEYEVENT: Self = Self::of(b'E');
    const MISS: Self = Self::of(b'm');
    const NEW: Self = Self::of(b'n');

    const fn of(letter: u8) -> Self {
        let mut bit = 0;
        while LETTERS[bit] != letter {
            bit += 1;
        }
        Self(1 << bit)
    }

    /// Reads letters. `None` if one of them means nothing.
    pub(crate) fn parse(letters: &[u8]) -> Option<Self> {
        letters.iter().try_fold(Self::default(), |classes, &letter| {
            let bits = match letter {
                b'A' => ALL,
                _ => 1 << LETTERS.iter().position(|&known| known == letter)?,
            };
            Some(Self(classes.0 | bits))
        })
    }

    /// The letters, in the order of Redis: the classes, then where events go, then misses.
    pub(crate) fn letters(self) -> String {
        let is_all = self.0 & ALL == ALL;
        let classes = LETTERS[..10].iter().filter(|_| !is_all);
        let new = [b'n'].into_iter().filter(|_| !is_all);
        let rest = classes.copied().chain(new).chain(*b"KEm");
        let letters = rest.filter(|&letter| self.has(Self::of(letter))).map(char::from);
        if is_all { Some('A').into_iter().chain(letters).collect() } else { letters.collect() }
    }

    fn has(self, class: Self) -> bool {
        self.0 & class.0 != 0
    }
}

/// Something happened to a key.
#[derive(Debug)]
pub(crate) struct Event {
    name: &'static str,
    key: Box<[u8]>,
}

/// The events that are to be published.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) wanted: Class,
    pending: Vec<Event>,
}

impl Events {
    /// Notes an event, if anybody may want it.
    pub(crate) fn add(&mut self, class: Class, name: &'static str, key: &[u8]) {
        if self.wanted.has(class) {
            self.pending.push(Event { name, key: key.into() });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Takes what is pending: as messages, each a channel and a text.
    pub(crate) fn take_messages(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (wanted, mut messages) = (self.wanted, Vec::with_capacity(self.pending.len()));
        for Event { name, key } in self.pending.drain(..) {
            if wanted.has(Class::KEYSPACE) {
                messages.push(([b"__keyspace@0__:", &key[..]].concat(), name.as_bytes().to_vec()));
            }
            if wanted.has(Class::KEYEVENT) {
                messages.push(([b"__keyevent@0__:", name.as_bytes()].concat(), key.into_vec()));
            }
        }
        messages
    }

    /// Notes that a key was not found, and that a key is new: Redis's two classes outside of `A`.
    pub(crate) fn add_miss(&mut self, key: &[u8]) {
        self.add(Class::MISS, "keymiss", key);
    }

    pub(crate) fn add_new(&mut self, key: &[u8]) {
        self.add(Class::NEW, "new", key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_and_written_as_redis_does() {
        let cases =
            [("", ""), ("Ex", "xE"), ("KEA", "AKE"), ("g$xe", "g$xe"), ("AKEmn", "AKEm"), ("mKnx", "xnKm")];
        for (given, kept) in cases {
            assert_eq!(Class::parse(given.as_bytes()).map(Class::letters).as_deref(), Some(kept), "{given}");
        }
        assert_eq!(Class::parse(b"KEq"), None);
    }

    #[test]
    fn an_event_goes_where_it_is_wanted() {
        let mut events = Events::default();
        events.add(Class::EXPIRED, "expired", b"k");
        assert!(events.is_empty());
        events.wanted = Class::parse(b"KEx").unwrap();
        events.add(Class::GENERIC, "del", b"k");
        events.add(Class::EXPIRED, "expired", b"k");
        let expected = [("__keyspace@0__:k", "expired"), ("__keyevent@0__:expired", "k")];
        let expected =
            expected.map(|(channel, text)| (channel.as_bytes().to_vec(), text.as_bytes().to_vec()));
        assert_eq!(events.take_messages(), expected);
        assert!(events.is_empty());
    }
}

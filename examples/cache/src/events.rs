//! Keyspace notifications: what happens to keys, as messages to subscribers.

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
    pub(crate) const MISS: Self = Self::of(b'm');
    pub(crate) const NEW: Self = Self::of(b'n');

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
        let (all, classes) = if is_all { ("A", &b""[..]) } else { ("", &b"g$lshzxetdn"[..]) };
        let letters = classes.iter().chain(b"KEm").filter(|&&letter| self.has(Self::of(letter)));
        all.chars().chain(letters.map(|&letter| char::from(letter))).collect()
    }

    fn has(self, class: Self) -> bool {
        self.0 & class.0 != 0
    }
}

/// Events that are to be published: their names, and where their keys end in `keys`.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    names: Vec<(&'static str, usize)>,
    keys: Vec<u8>,
}

/// What has happened to keys since the last publication, and what is wanted of it.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) wanted: Class,
    pub(crate) pending: Pending,
}

/// Room for keys that is kept between publications.
const KEPT_BYTES: usize = 64 * 1024;

impl Events {
    /// Notes an event, if its class is wanted.
    pub(crate) fn add(&mut self, class: Class, name: &'static str, key: &[u8]) {
        if self.wanted.has(class) {
            self.pending.keys.extend_from_slice(key);
            self.pending.names.push((name, self.pending.keys.len()));
        }
    }
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Passes each event to `publish`, as messages: a channel and a text.
    pub(crate) fn messages(&self, wanted: Class, mut publish: impl FnMut(&[u8], &[u8])) {
        let (mut start, mut channel) = (0, Vec::new());
        let mut send = |parts: [&[u8]; 2], text: &[u8]| {
            channel.clear();
            parts.iter().for_each(|part| channel.extend_from_slice(part));
            publish(&channel, text);
        };
        for &(name, end) in &self.names {
            let (name, key) = (name.as_bytes(), &self.keys[start..end]);
            if wanted.has(Class::KEYSPACE) {
                send([b"__keyspace@0__:", key], name);
            }
            if wanted.has(Class::KEYEVENT) {
                send([b"__keyevent@0__:", name], key);
            }
            start = end;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.keys.clear();
        self.keys.shrink_to(KEPT_BYTES);
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
        assert!(events.pending.is_empty());
        events.wanted = Class::parse(b"KEx").unwrap();
        events.add(Class::GENERIC, "del", b"k");
        events.add(Class::EXPIRED, "expired", b"k");
        events.add(Class::EXPIRED, "expired", b"l");
        let mut messages = Vec::new();
        events.pending.messages(events.wanted, |channel, text| {
            messages.push([channel, text].map(|it| String::from_utf8(it.to_vec()).unwrap()));
        });
        let keyevent = "__keyevent@0__:expired";
        let expected = [
            ["__keyspace@0__:k", "expired"],
            [keyevent, "k"],
            ["__keyspace@0__:l", "expired"],
            [keyevent, "l"],
        ];
        assert_eq!(messages, expected);
        events.pending.clear();
        assert!(events.pending.is_empty());
    }
}

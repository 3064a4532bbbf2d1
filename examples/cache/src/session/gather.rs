//! A reply that is made of several: one for each key of the request, or one for each thread.

use crate::protocol::reply::{Reply, as_integer, is_error};

/// How the parts become one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// There is one part, which is the whole.
    Same,
    /// All say OK.
    Ok,
    /// Integers are added.
    Sum,
    /// The parts are the elements, in their order.
    List,
    /// Each part begins with the number of its elements.
    Elements,
    /// Each part is a thread's number of keys and one of them.
    Random,
    /// Each part is what a thread has counted: a text for INFO, or for a metrics request.
    Info,
    Metrics,
}

#[derive(Debug)]
pub(crate) struct Gather {
    pub(crate) fold: Fold,
    pub(crate) is_resp3: bool,
    missing: usize,
    pub(crate) parts: Vec<Vec<u8>>,
    /// What INFO is asked for.
    pub(crate) about: Vec<Vec<u8>>,
}

/// The bytes of the number that some parts begin with.
const NUMBER: usize = size_of::<u64>();

/// Writes the number that a part begins with.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Reads the number that a part begins with, and returns the rest.
pub(crate) fn take_number(part: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = part.split_first_chunk::<NUMBER>()?;
    Some((u64::from_le_bytes(*number), rest))
}

impl Gather {
    pub(crate) fn new(fold: Fold, parts: usize, is_resp3: bool) -> Self {
        Self { fold, is_resp3, missing: parts, parts: vec![Vec::new(); parts], about: Vec::new() }
    }

    /// Adds a part. True if it was the last.
    pub(crate) fn add(&mut self, part: u32, reply: &[u8]) -> bool {
        if let Some(place) = self.parts.get_mut(part as usize) {
            *place = reply.to_vec();
        }
        self.missing = self.missing.saturating_sub(1);
        self.missing == 0
    }

    /// Writes the whole, for the folds that need nothing but the parts. `chance` chooses a key.
    pub(crate) fn write(&self, out: &mut Vec<u8>, chance: u64) {
        if let Some(error) = self.parts.iter().find(|part| is_error(part)) {
            return out.extend_from_slice(error);
        }
        let mut reply = Reply { out, is_resp3: self.is_resp3 };
        match self.fold {
            Fold::Same => self.parts.iter().for_each(|part| reply.out.extend_from_slice(part)),
            Fold::Ok => reply.ok(),
            Fold::Sum => reply.integer(self.parts.iter().filter_map(|part| as_integer(part)).sum()),
            Fold::List => {
                reply.array(self.parts.len());
                self.parts.iter().for_each(|part| reply.out.extend_from_slice(part));
            }
            Fold::Elements => {
                let parts = || self.parts.iter().filter_map(|part| take_number(part));
                reply.array(parts().map(|(number, _)| number as usize).sum());
                parts().for_each(|(_, elements)| reply.out.extend_from_slice(elements));
            }
            Fold::Random => self.write_random(&mut reply, chance),
            Fold::Info | Fold::Metrics => {}
        }
    }

    /// Chooses among the threads by the number of their keys.
    fn write_random(&self, reply: &mut Reply<'_>, chance: u64) {
        let parts = || self.parts.iter().filter_map(|part| take_number(part)).filter(|(keys, _)| *keys > 0);
        let all: u64 = parts().map(|(keys, _)| keys).sum();
        let mut place = chance.checked_rem(all).unwrap_or(0);
        for (keys, key) in parts() {
            if place < keys {
                return reply.bulk(key);
            }
            place -= keys;
        }
        reply.null();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(fold: Fold, parts: &[&[u8]]) -> String {
        let (mut gather, mut out) = (Gather::new(fold, parts.len(), false), Vec::new());
        for (part, reply) in parts.iter().enumerate().rev() {
            assert_eq!(gather.add(part as u32, reply), part == 0);
        }
        gather.write(&mut out, 5);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn parts_become_one_reply() {
        assert_eq!(whole(Fold::Ok, &[b"+OK\r\n", b"+OK\r\n"]), "+OK\r\n");
        assert_eq!(whole(Fold::Sum, &[b":1\r\n", b":41\r\n"]), ":42\r\n");
        assert_eq!(whole(Fold::Sum, &[b":1\r\n", b"-ERR x\r\n"]), "-ERR x\r\n");
        assert_eq!(whole(Fold::List, &[b":1\r\n", b"$-1\r\n"]), "*2\r\n:1\r\n$-1\r\n");
        let numbered = |number: u64, rest: &str| [&number.to_le_bytes(), rest.as_bytes()].concat();
        let (one, two) = (numbered(1, ":1\r\n"), numbered(2, ":2\r\n:3\r\n"));
        assert_eq!(whole(Fold::Elements, &[&one, &two]), "*3\r\n:1\r\n:2\r\n:3\r\n");
        let (none, few, many) = (numbered(0, ""), numbered(5, "a"), numbered(9, "b"));
        assert_eq!(whole(Fold::Random, &[&none, &few, &many]), "$1\r\nb\r\n");
        assert_eq!(whole(Fold::Random, &[&none, &none]), "$-1\r\n");
    }
}

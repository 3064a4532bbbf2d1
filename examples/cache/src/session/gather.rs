//! A reply that is made of several: one for each key of the request, or one for each thread.

use crate::protocol::{Reply, parse_i64};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// All parts say the same, or there is only one.
    Same,
    /// Each part is a number.
    Sum,
    /// Each part is an element of an array.
    List,
    /// Each part is an array, whose elements are elements of the whole.
    Elements,
}

pub(crate) struct Gather {
    fold: Fold,
    is_resp3: bool,
    missing: usize,
    parts: Vec<Vec<u8>>,
}

impl Gather {
    pub(crate) fn new(fold: Fold, parts: usize, is_resp3: bool) -> Self {
        Self { fold, is_resp3, missing: parts, parts: vec![Vec::new(); parts] }
    }

    /// True if it was the last part.
    pub(crate) fn add(&mut self, part: u32, reply: &[u8]) -> bool {
        self.parts[part as usize] = reply.to_vec();
        self.missing -= 1;
        self.missing == 0
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut reply = Reply { out, is_resp3: self.is_resp3 };
        let numbers = || self.parts.iter().filter_map(|part| number(part));
        match self.fold {
            Fold::Same => reply.out.extend_from_slice(&self.parts[0]),
            Fold::Sum => reply.integer(numbers().map(|(number, _)| number).sum()),
            Fold::List => {
                reply.array(self.parts.len());
                self.parts.iter().for_each(|part| reply.out.extend_from_slice(part));
            }
            Fold::Elements => {
                reply.array(numbers().map(|(len, _)| len as usize).sum());
                numbers().for_each(|(_, elements)| reply.out.extend_from_slice(elements));
            }
        }
    }
}

/// The number in the first line of a reply, an integer or the length of an array, and what follows it.
fn number(reply: &[u8]) -> Option<(i64, &[u8])> {
    let end = memchr::memchr(b'\r', reply)?;
    Some((parse_i64(&reply[1..end])?, &reply[end + 2..]))
}

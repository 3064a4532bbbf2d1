//! A reply that is made of several: one for each key of the request, or one for each thread.

use std::collections::BTreeSet;

use crate::protocol::parser::Parser;
use crate::protocol::{Reply, parse_i64};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// All parts say the same, or there is only one.
    Same,
    /// One of those that are not null, nor errors, by chance.
    Any,
    /// If the parts are no numbers, as `Any`.
    Sum,
    /// None: each part is a reply, and they follow the header of an array.
    List,
    /// Each part is an array, whose elements are elements of the whole.
    Elements,
    /// Each part is an array of strings. The whole is an array of them, each once.
    Distinct,
    /// The same, of which the whole is the number.
    Count,
    /// Each part is an array of names, the same in all parts, and numbers, which are added up.
    Pairs,
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
        match self.fold {
            Fold::Same | Fold::List => reply.out.extend_from_slice(&self.parts[0]),
            Fold::Sum if number(&self.parts[0]).is_some() => reply
                .integer(self.parts.iter().filter_map(|part| number(part)).map(|(number, _)| number).sum()),
            Fold::Any | Fold::Sum => {
                let is_null = |part: &[u8]| matches!(part, b"_\r\n" | b"$-1\r\n" | [b'-', ..]);
                let found: Vec<_> = self.parts.iter().filter(|part| !is_null(part)).collect();
                reply.out.extend_from_slice(fastrand::choice(found).unwrap_or(&self.parts[0]));
            }
            Fold::Distinct | Fold::Count => {
                let all: BTreeSet<_> = self.parts.iter().flat_map(|part| strings(part)).collect();
                if self.fold == Fold::Count {
                    return reply.integer(all.len() as i64);
                }
                reply.bulks(&Vec::from_iter(all));
            }
            Fold::Pairs => {
                let parts: Vec<_> = self.parts.iter().map(|part| strings(part)).collect();
                reply.array(parts[0].len());
                for at in (0..parts[0].len()).step_by(2) {
                    reply.bulk(&parts[0][at]);
                    reply.integer(parts.iter().filter_map(|part| parse_i64(&part[at + 1])).sum());
                }
            }
            Fold::Elements => {
                let arrays: Vec<_> = self.parts.iter().filter_map(|part| number(part)).collect();
                reply.array(arrays.iter().map(|&(len, _)| len as usize).sum());
                arrays.iter().for_each(|(_, elements)| reply.out.extend_from_slice(elements));
            }
        }
    }
}

/// The strings of an array: a request is one, too.
fn strings(array: &[u8]) -> Vec<Vec<u8>> {
    let mut parser = Parser::default();
    let _ = parser.parse(array, true);
    parser.request(array).from(0).map(<[u8]>::to_vec).collect()
}

/// The number in the first line of a reply, an integer or the length of an array, and what follows it.
fn number(reply: &[u8]) -> Option<(i64, &[u8])> {
    let end = memchr::memchr(b'\r', reply)?;
    Some((parse_i64(&reply[1..end])?, &reply[end + 2..]))
}

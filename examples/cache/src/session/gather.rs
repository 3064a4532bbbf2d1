//! A reply that is made of several: one for each key of the request, or one for each thread.

use crate::protocol::{Reply, parse_i64};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// All parts say the same, or there is only one.
    Same,
    /// One of those that are not null, by chance.
    Any,
    Sum,
    /// None: each part is a reply, and they follow the header of an array.
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
        match self.fold {
            Fold::Same | Fold::List => reply.out.extend_from_slice(&self.parts[0]),
            Fold::Any => {
                let is_null = |part: &[u8]| matches!(part, b"_\r\n" | b"$-1\r\n");
                let found: Vec<_> = self.parts.iter().filter(|part| !is_null(part)).collect();
                reply.out.extend_from_slice(fastrand::choice(found).unwrap_or(&self.parts[0]));
            }
            Fold::Sum => reply
                .integer(self.parts.iter().filter_map(|part| number(part)).map(|(number, _)| number).sum()),
            Fold::Elements => {
                let arrays: Vec<_> = self.parts.iter().filter_map(|part| number(part)).collect();
                reply.array(arrays.iter().map(|&(len, _)| len as usize).sum());
                arrays.iter().for_each(|(_, elements)| reply.out.extend_from_slice(elements));
            }
        }
    }
}

/// The number in the first line of a reply, an integer or the length of an array, and what follows it.
fn number(reply: &[u8]) -> Option<(i64, &[u8])> {
    let end = memchr::memchr(b'\r', reply)?;
    Some((parse_i64(&reply[1..end])?, &reply[end + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(fold: Fold, parts: &[&[u8]]) -> String {
        let (mut gather, mut out) = (Gather::new(fold, parts.len(), false), Vec::new());
        for (part, reply) in parts.iter().enumerate().rev() {
            assert_eq!(gather.add(part as u32, reply), part == 0);
        }
        gather.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn parts_become_one_reply() {
        assert_eq!(whole(Fold::Same, &[b"+OK\r\n", b"+OK\r\n"]), "+OK\r\n");
        assert_eq!(whole(Fold::Sum, &[b":1\r\n", b":41\r\n"]), ":42\r\n");
        let arrays: [&[u8]; 3] = [b"*1\r\n:1\r\n", b"*0\r\n", b"*2\r\n:2\r\n:3\r\n"];
        assert_eq!(whole(Fold::Elements, &arrays), "*3\r\n:1\r\n:2\r\n:3\r\n");
    }
}

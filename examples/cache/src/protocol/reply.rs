//! Replies: RESP2, and RESP3 for those that asked for it.

use crate::protocol::number;

/// Not an integer, or one that is too large.
pub(crate) const NOT_AN_INTEGER: &str = "value is not an integer or out of range";
/// Options that do not fit together.
pub(crate) const SYNTAX: &str = "syntax error";

/// Writes one reply to the end of a buffer.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) is_resp3: bool,
}

impl Reply<'_> {
    pub(crate) fn ok(&mut self) {
        self.simple("OK");
    }

    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error with the usual code.
    pub(crate) fn error(&mut self, text: impl AsRef<[u8]>) {
        self.coded_error("ERR", text);
    }

    /// An error with a code of its own. Control characters become spaces: an error is one line.
    pub(crate) fn coded_error(&mut self, code: &str, text: impl AsRef<[u8]>) {
        self.out.push(b'-');
        self.out.extend_from_slice(code.as_bytes());
        self.out.push(b' ');
        let one_line =
            text.as_ref().iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte });
        self.out.extend(one_line);
        self.out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn integer(&mut self, value: i64) {
        self.header(b':', value);
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.out.reserve(bytes.len() + 16);
        self.header(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Some bulk strings.
    pub(crate) fn bulks(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.bulk(text.as_bytes()));
    }

    /// An integer as a bulk string.
    pub(crate) fn bulk_integer(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A text: verbatim in RESP3.
    pub(crate) fn text(&mut self, text: &str) {
        if !self.is_resp3 {
            return self.bulk(text.as_bytes());
        }
        self.header(b'=', (text.len() + "txt:".len()) as i64);
        self.line_end_after(b"txt:", text.as_bytes());
    }

    pub(crate) fn null(&mut self) {
        self.out.extend_from_slice(if self.is_resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    pub(crate) fn array(&mut self, len: usize) {
        self.header(b'*', len as i64);
    }

    /// A map of so many pairs: in RESP2 an array.
    pub(crate) fn map(&mut self, pairs: usize) {
        if self.is_resp3 { self.header(b'%', pairs as i64) } else { self.array(pairs * 2) }
    }

    /// A set: in RESP2 an array.
    pub(crate) fn set(&mut self, len: usize) {
        self.header(if self.is_resp3 { b'~' } else { b'*' }, len as i64);
    }

    /// A message that answers no request: in RESP2 an array.
    pub(crate) fn push(&mut self, len: usize) {
        self.header(if self.is_resp3 { b'>' } else { b'*' }, len as i64);
    }

    fn header(&mut self, kind: u8, value: i64) {
        self.out.push(kind);
        number::write(self.out, value);
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.line_end_after(&[kind], text);
    }

    fn line_end_after(&mut self, first: &[u8], second: &[u8]) {
        self.out.extend_from_slice(first);
        self.out.extend_from_slice(second);
        self.out.extend_from_slice(b"\r\n");
    }
}

/// The integer of an integer's reply; `None` for any other reply.
pub(crate) fn as_integer(reply: &[u8]) -> Option<i64> {
    number::parse_i64(reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?)
}

/// Whether a reply is an error.
pub(crate) fn is_error(reply: &[u8]) -> bool {
    reply.first() == Some(&b'-')
}

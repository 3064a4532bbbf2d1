//! Replies: RESP2, and RESP3 for clients that have asked for it.

use std::borrow::Cow;

pub(crate) const NOT_AN_INTEGER: &str = "value is not an integer or out of range";
pub(crate) const SYNTAX: &str = "syntax error";

/// An error: its code and its text. A text alone has the code `ERR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) &'static str, pub(crate) Cow<'static, str>);

impl<T: Into<Cow<'static, str>>> From<T> for Failure {
    fn from(text: T) -> Self {
        Self("ERR", text.into())
    }
}

/// What a command returns. It writes its reply itself, but not its error.
pub(crate) type Outcome = Result<(), Failure>;

pub(crate) struct Reply<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) is_resp3: bool,
}

impl Reply<'_> {
    /// Writes an error, a byte for each character. An error is one line: control characters at its end
    /// are left out, and others become spaces.
    pub(crate) fn error(&mut self, Failure(code, text): &Failure) {
        let text = text.trim_end_matches(['\r', '\n']).replace(['\r', '\n'], " ");
        let text: Vec<_> = text.chars().map(|character| character as u8).collect();
        self.parts(&[b"-", code.as_bytes(), b" ", &text, b"\r\n"]);
    }

    pub(crate) fn ok(&mut self) {
        self.simple("OK");
    }

    pub(crate) fn simple(&mut self, text: &str) {
        self.parts(&[b"+", text.as_bytes(), b"\r\n"]);
    }

    pub(crate) fn integer(&mut self, value: i64) {
        self.header(b':', value);
    }

    pub(crate) fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.out.reserve(bytes.len() + 16);
        self.header(b'$', bytes.len() as i64);
        self.parts(&[bytes, b"\r\n"]);
    }

    pub(crate) fn bulk_integer(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value));
    }

    /// A text: verbatim in RESP3.
    pub(crate) fn text(&mut self, text: &str) {
        if !self.is_resp3 {
            return self.bulk(text);
        }
        self.header(b'=', (text.len() + "txt:".len()) as i64);
        self.parts(&[b"txt:", text.as_bytes(), b"\r\n"]);
    }

    pub(crate) fn null(&mut self) {
        self.parts(&[if self.is_resp3 { b"_\r\n" } else { b"$-1\r\n" }]);
    }

    /// A null where there would be an array.
    pub(crate) fn null_array(&mut self) {
        self.parts(&[if self.is_resp3 { b"_\r\n" } else { b"*-1\r\n" }]);
    }

    pub(crate) fn bulk_or_null(&mut self, bytes: Option<impl AsRef<[u8]>>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    pub(crate) fn array(&mut self, len: usize) {
        self.header(b'*', len as i64);
    }

    pub(crate) fn bulks(&mut self, all: &[impl AsRef<[u8]>]) {
        self.array(all.len());
        all.iter().for_each(|bytes| self.bulk(bytes));
    }

    /// The header of a map of this many pairs: in RESP2 an array.
    pub(crate) fn map(&mut self, pairs: usize) {
        if self.is_resp3 { self.header(b'%', pairs as i64) } else { self.array(pairs * 2) }
    }

    /// The header of a set (`~`) or of a message that answers no request (`>`): in RESP2 an array.
    pub(crate) fn list(&mut self, kind: u8, len: usize) {
        self.header(if self.is_resp3 { kind } else { b'*' }, len as i64);
    }

    fn header(&mut self, kind: u8, value: i64) {
        self.out.push(kind);
        self.parts(&[itoa::Buffer::new().format(value).as_bytes(), b"\r\n"]);
    }

    fn parts(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
    }
}

//! The parser of requests: arrays of bulk strings, and inline commands.
//!
//! It keeps its place when a request is not complete, so it looks at each byte once. Arguments are
//! spans of the caller's buffer, which begins with the request until the request is complete.

use crate::protocol::{Failure, Request, Span, inline, parse_i64};

const MAX_LINE: usize = 64 * 1024;
pub(crate) const MAX_BULK: usize = 512 * 1024 * 1024;
pub(crate) const MAX_REQUEST: usize = 1024 * 1024 * 1024;
/// The number of arguments, and their bytes, that a client may send before it has authenticated.
const MAX_UNAUTHENTICATED: (i64, i64) = (10, 16 * 1024);
const KEPT_SPANS: usize = 16;

/// The error for what a client did that ends its connection.
fn violation<T>(text: &str) -> Result<T, Failure> {
    Err(format!("Protocol error: {text}").into())
}

#[derive(Default)]
pub(crate) struct Parser {
    /// The first byte that has not been parsed; 0 before a request.
    at: usize,
    left: usize,
    /// The length of the next one, once it is known.
    bulk: Option<usize>,
    spans: Vec<Span>,
    /// The arguments of an inline request, without quotes and escapes: then the spans are of this.
    unquoted: Vec<u8>,
}

impl Parser {
    /// Parses on, and returns the length of the request in the buffer. `None` means that it is not
    /// complete; the next call needs the same buffer with more bytes at its end. A complete request
    /// may have no arguments at all.
    pub(crate) fn parse(&mut self, buffer: &[u8], is_trusted: bool) -> Result<Option<usize>, Failure> {
        if self.at == 0 {
            self.spans.clear();
            self.unquoted.clear();
            if buffer.first().is_some_and(|&first| first != b'*') {
                return self.parse_inline(buffer);
            }
            let Some(len) = self.line(buffer, "too big mbulk count string")? else { return Ok(None) };
            match parse_i64(len).filter(|&len| len <= i64::from(i32::MAX)) {
                None => return violation("invalid multibulk length"),
                Some(len) if len > MAX_UNAUTHENTICATED.0 && !is_trusted => {
                    return violation("unauthenticated multibulk length");
                }
                Some(len) => self.left = len.max(0) as usize,
            }
        }
        while self.left > 0 {
            if self.bulk.is_none() {
                self.bulk = self.bulk_length(buffer, is_trusted)?;
            }
            let Some(end) = self.bulk.map(|len| self.at + len).filter(|end| buffer.len() >= end + 2) else {
                return Ok(None);
            };
            self.spans.push(Span::new(self.at, end));
            (self.at, self.bulk) = (end + 2, None);
            self.left -= 1;
        }
        Ok(Some(std::mem::take(&mut self.at)))
    }

    fn bulk_length(&mut self, buffer: &[u8], is_trusted: bool) -> Result<Option<usize>, Failure> {
        let start = self.at;
        let Some(len) = self.line(buffer, "too big bulk count string")? else { return Ok(None) };
        if buffer[start] != b'$' {
            return violation(&format!("expected '$', got '{}'", char::from(buffer[start])));
        }
        match parse_i64(len).filter(|&len| (0..=MAX_BULK as i64).contains(&len)) {
            Some(len) if len > MAX_UNAUTHENTICATED.1 && !is_trusted => {
                violation("unauthenticated bulk length")
            }
            Some(len) if self.at + len as usize > MAX_REQUEST => violation("too big request"),
            Some(len) => Ok(Some(len as usize)),
            None => violation("invalid bulk length"),
        }
    }

    /// The line at the parser's place, without its first byte and its end. `None` if the line has
    /// no end yet; the parser then stays where it is.
    fn line<'b>(&mut self, buffer: &'b [u8], too_long: &str) -> Result<Option<&'b [u8]>, Failure> {
        let rest = &buffer[self.at..];
        let Some(len) = memchr::memchr(b'\r', rest) else {
            return if rest.len() > MAX_LINE { violation(too_long) } else { Ok(None) };
        };
        if rest.len() < len + 2 {
            return Ok(None);
        }
        self.at += len + 2;
        Ok(Some(rest.get(1..len).unwrap_or_default()))
    }

    fn parse_inline(&mut self, buffer: &[u8]) -> Result<Option<usize>, Failure> {
        let end = memchr::memchr(b'\n', buffer);
        if end.unwrap_or(buffer.len()) > MAX_LINE {
            return violation("too big inline request");
        }
        let Some(len) = end else { return Ok(None) };
        let line = buffer[..len].strip_suffix(b"\r").unwrap_or(&buffer[..len]);
        if !inline::split(line, &mut self.unquoted, &mut self.spans) {
            return violation("unbalanced quotes in request");
        }
        Ok(Some(len + 1))
    }

    /// The complete request at the start of a buffer.
    pub(crate) fn request<'a>(&'a self, buffer: &'a [u8]) -> Request<'a> {
        let bytes = if self.unquoted.is_empty() { buffer } else { &self.unquoted };
        Request { bytes, spans: &self.spans, ..Request::default() }
    }

    /// How many more bytes the current argument needs, given the length of the buffer.
    pub(crate) fn wants(&self, buffered: usize) -> usize {
        self.bulk.map_or(0, |len| (self.at + len + 2).saturating_sub(buffered))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.unquoted.capacity()
    }

    /// Gives back memory that an unusual request has needed.
    pub(crate) fn shrink(&mut self) {
        if self.at == 0 {
            self.spans.clear();
            self.spans.shrink_to(KEPT_SPANS);
            self.unquoted = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests;

//! Inline requests: a line of words, as a person types them. Words may be quoted.

use crate::protocol::Span;

/// What ends a word: not all spaces do.
const ENDS: &[u8] = b" \t\r\n\0";

/// Splits a line into words. Appends their bytes to `bytes`, and their places there to `spans`.
/// False if a quote is not closed, or not followed by a space.
pub(crate) fn split(mut rest: &[u8], bytes: &mut Vec<u8>, spans: &mut Vec<Span>) -> bool {
    while let Some(word) = rest.iter().position(|byte| !is_space(byte)) {
        let start = bytes.len();
        rest = &rest[word..];
        while let Some((&byte, after)) = rest.split_first().filter(|(byte, _)| !ENDS.contains(byte)) {
            if !matches!(byte, b'"' | b'\'') {
                bytes.push(byte);
                rest = after;
                continue;
            }
            let Some(after) = quoted(byte, after, bytes) else { return false };
            rest = after;
            if rest.first().is_some_and(|byte| !is_space(byte)) {
                return false;
            }
            break;
        }
        spans.push(Span::new(start, bytes.len()));
    }
    true
}

/// Appends what stands before the closing quote, and returns what follows the quote.
fn quoted<'a>(quote: u8, mut rest: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, after) = match *rest {
            [] => return None,
            [byte, ref after @ ..] if byte == quote => return Some(after),
            [b'\\', b'\'', ref after @ ..] if quote == b'\'' => (b'\'', after),
            [b'\\', ref escape @ ..] if quote == b'"' && !escape.is_empty() => unescape(escape),
            [byte, ref after @ ..] => (byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
}

/// The byte that an escape stands for, and what follows the escape.
fn unescape(escape: &[u8]) -> (u8, &[u8]) {
    let hex = |digit: u8| char::from(digit).to_digit(16);
    if let [b'x', high, low, after @ ..] = escape
        && let (Some(high), Some(low)) = (hex(*high), hex(*low))
    {
        return ((high << 4 | low) as u8, after);
    }
    let names = [(b'n', b'\n'), (b'r', b'\r'), (b't', b'\t'), (b'b', 0x08), (b'a', 0x07)];
    let named = names.iter().find(|(name, _)| *name == escape[0]);
    (named.map_or(escape[0], |&(_, byte)| byte), &escape[1..])
}

fn is_space(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0x0b | 0)
}

//! What goes over a connection: requests in, replies out.
//!
//! Nothing here knows what a command means.

pub(crate) mod inline;
pub(crate) mod parser;
mod reply;
mod request;

pub(crate) use reply::{Failure, NOT_AN_INTEGER, Outcome, Reply, SYNTAX, as_integer, is_error};
pub(crate) use request::{Request, Span};

/// Reads a decimal integer of 64 bits. No sign but a minus, no space, no leading zero.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_canonical = text == b"0" || matches!(digits, [b'1'..=b'9', ..]);
    if is_canonical { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_of_an_integer_is_accepted() {
        let extremes = [i64::MIN, i64::MIN + 1, -1, 0, 1, 10, i64::MAX - 1, i64::MAX];
        for value in extremes {
            assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
        }
        let bad = ["", "-", "-0", "00", "01", "+1", " 1", "1 ", "1.0", "0x1", "--1", "-+1", "\u{ff11}"];
        let too_large = ["9223372036854775808", "-9223372036854775809", "184467440737095516160"];
        for text in bad.iter().chain(&too_large) {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse_i64(b"1\xff"), None);
    }
}

//! Integers as the protocol writes them.

/// Reads a decimal integer of 64 bits. No sign but a minus, no space, no leading zero.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= MAX_DIGITS => {}
        _ => return None,
    }
    let magnitude = digits.iter().try_fold(0_u64, |sum, &digit| {
        let value = digit.wrapping_sub(b'0');
        (value <= 9).then(|| sum.checked_mul(10)?.checked_add(u64::from(value)))?
    })?;
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// The digits of the greatest 64-bit integer.
const MAX_DIGITS: usize = 20;

/// Reads an unsigned decimal integer, as a cursor is one.
pub(crate) fn parse_u64(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Appends an integer in decimal.
pub(crate) fn write(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
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
        let bad = [
            "",
            "-",
            "-0",
            "00",
            "01",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "0x1",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "184467440737095516160",
        ];
        for text in bad {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
        }
    }
}

//! Numbers of timers as people write them: `10k`, `1M`, `10M`.

const THOUSAND: usize = 1_000;
const MILLION: usize = 1_000_000;

/// Writes a size in the shortest form that loses nothing.
#[must_use]
pub fn label(size: usize) -> String {
    match size {
        0 => "0".to_owned(),
        _ if size.is_multiple_of(MILLION) => format!("{}M", size / MILLION),
        _ if size.is_multiple_of(THOUSAND) => format!("{}k", size / THOUSAND),
        _ => size.to_string(),
    }
}

/// Reads a size: digits, and `k` or `M` where wanted. `None` where the text is no number above 0, or one
/// that a `u32` cannot hold.
#[must_use]
pub fn parse_size(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], THOUSAND),
        b'm' | b'M' => (&text[..text.len() - 1], MILLION),
        _ => (text, 1),
    };
    let size = digits.parse::<usize>().ok()?.checked_mul(unit)?;
    (size > 0 && u32::try_from(size).is_ok()).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_they_are_written() {
        for size in [1, 999, 1_000, 1_500, 10_000, 1_000_000, 1_500_000, 10_000_000] {
            assert_eq!(parse_size(&label(size)), Some(size));
        }
        assert_eq!(parse_size("10K"), Some(10_000));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "k", "0", "0M", "-1", "1.5M", "5000M", "99999999999999999999M", "1G", "é"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}

//! Patterns of keys: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a character that means itself.

/// Whether a pattern matches a whole text. As in Redis, stars do not match an empty one.
///
/// It takes O(pattern x text): of the stars, only the last one that has been met is tried again.
pub(crate) fn matches(mut pattern: &[u8], mut text: &[u8]) -> bool {
    // The pattern after the last star, and the text that is left to try it on.
    let mut last_star: Option<(&[u8], &[u8])> = None;
    if text.is_empty() {
        return pattern.is_empty();
    }
    loop {
        if let [b'*', rest @ ..] = pattern {
            (pattern, last_star) = (rest, Some((rest, text)));
        } else if let Some((rest, text_rest)) = match_one(pattern, text) {
            (pattern, text) = (rest, text_rest);
        } else if pattern.is_empty() && text.is_empty() {
            return true;
        } else if let Some((after_star, [_, rest @ ..])) = last_star {
            (pattern, text, last_star) = (after_star, rest, Some((after_star, rest)));
        } else {
            return false;
        }
    }
}

fn match_one<'p, 't>(pattern: &'p [u8], text: &'t [u8]) -> Option<(&'p [u8], &'t [u8])> {
    let (&byte, text) = text.split_first()?;
    match pattern {
        [b'?', rest @ ..] => Some((rest, text)),
        [b'[', class @ ..] => {
            let (is_in, rest) = match_class(class, byte);
            is_in.then_some((rest, text))
        }
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (*literal == byte).then_some((rest, text)),
        [] => None,
    }
}

/// Whether a byte is in a class, and the pattern after the class. A class without an end goes to the
/// end of the pattern.
fn match_class(class: &[u8], byte: u8) -> (bool, &[u8]) {
    let (is_negated, mut rest) = class.strip_prefix(b"^").map_or((false, class), |rest| (true, rest));
    let mut is_in = false;
    loop {
        let (low, high, after) = match rest {
            [] => return (is_in != is_negated, rest),
            [b']', after @ ..] => return (is_in != is_negated, after),
            [b'\\', literal, after @ ..] => (literal, literal, after),
            [first, b'-', last, after @ ..] => (first.min(last), first.max(last), after),
            [literal, after @ ..] => (literal, literal, after),
        };
        is_in |= (low..=high).contains(&&byte);
        rest = after;
    }
}

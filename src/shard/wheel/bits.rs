//! Looking for set bits in a ring of words.

/// The first set bit from `from` on, going round `words` words of 64 bits (a power of two), which `load` reads:
/// in the word of `from` and the `steps` after it.
#[inline]
pub(in crate::shard) fn next_set(
    words: usize,
    from: usize,
    steps: usize,
    load: impl Fn(usize) -> u64,
) -> Option<usize> {
    let first = from / 64;
    let mut bits = load(first) & (u64::MAX << (from % 64));
    let mut step = 0;
    while bits == 0 {
        if step == steps {
            return None;
        }
        step += 1;
        bits = load((first + step) & (words - 1));
    }
    Some(((first + step) & (words - 1)) * 64 + bits.trailing_zeros() as usize)
}

//! The tick of a window that most other windows share.

use crate::tick::Tick;

/// The number within `first..=last` that is a multiple of the greatest power of two.
///
/// Let `k` be the highest bit in which `first - 1` and `last` differ. Then `last` with all bits
/// below `k` cleared is within the range, and no multiple of a higher power of two is.
pub(in crate::timer) fn roundest(first: Tick, last: Tick) -> Tick {
    let Some(before) = first.checked_sub(1) else { return 0 };
    let highest = (before ^ last).checked_ilog2().unwrap_or(0);
    last >> highest << highest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roundest_number_is_found() {
        let power = |n: Tick| if n == 0 { Tick::BITS } else { n.trailing_zeros() };
        for first in 0..130 {
            for last in first..140 {
                let found = roundest(first, last);
                let best = (first..=last).map(power).max();
                assert!((first..=last).contains(&found), "{first}..={last}: {found}");
                assert_eq!(Some(power(found)), best, "{first}..={last}: {found}");
            }
        }
        assert_eq!(roundest(Tick::MAX, Tick::MAX), Tick::MAX);
        assert_eq!(roundest(1, Tick::MAX), 1 << 63);
    }
}

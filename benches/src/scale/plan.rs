//! What happens to each timer, computed from its number.
//!
//! A timer's payload is its number, and its deadline is computed from that and a seed, so no memory
//! holds it. Every second timer is cancelled; only the keys of those are kept.

use crate::checksum::Checksum;
use crate::workload::THIRTY_MINUTES;

/// A number of timers, which is even, and a seed for their deadlines.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) timers: usize,
    pub(super) seed: u64,
}

impl Plan {
    #[inline]
    pub(super) fn is_cancelled(payload: u64) -> bool {
        payload.is_multiple_of(2)
    }

    /// Returns a timer's deadline: uniform over 30 minutes. It is SplitMix64 with random access.
    #[inline]
    pub(super) fn deadline(&self, payload: u64) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = (self.seed << 40).wrapping_add(payload).wrapping_mul(GOLDEN);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        1 + ((u128::from(bits) * u128::from(THIRTY_MINUTES)) >> 64) as u64
    }

    /// The timers to cancel: the places of their keys, in steps of about the golden section of their
    /// number, an order that no cache or prefetcher can use. The payload is twice the place.
    pub(super) fn cancelled(&self) -> impl Iterator<Item = usize> {
        let keys = self.timers / 2;
        let first = (keys as f64 * 0.618_033_988_749_895) as usize;
        let step = (first.max(1)..).find(|&step| greatest_common_divisor(step, keys) == 1).unwrap_or(1);
        (0..keys).map(move |nth| nth * step % keys)
    }

    /// Returns what has to fire.
    pub(super) fn expected(&self) -> Checksum {
        let mut sum = Checksum::default();
        let left = (0..self.timers as u64).filter(|&payload| !Self::is_cancelled(payload));
        left.for_each(|payload| sum.expect(self.deadline(payload), payload));
        sum
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_timer_is_cancelled_once_and_deadlines_are_spread() {
        let plan = Plan { timers: 20_000, seed: 7 };
        let mut cancelled = plan.cancelled().collect::<Vec<_>>();
        assert!(!cancelled.is_sorted());
        cancelled.sort_unstable();
        assert!(cancelled.into_iter().eq(0..10_000) && plan.expected().count() == 10_000);
        let deadlines = (0..20_000).map(|payload| plan.deadline(payload)).collect::<Vec<_>>();
        assert!(deadlines.iter().all(|deadline| (1..=THIRTY_MINUTES).contains(deadline)));
        let early = deadlines.iter().filter(|&&deadline| deadline <= THIRTY_MINUTES / 4).count();
        assert!((4_500..5_500).contains(&early), "{early}");
    }
}

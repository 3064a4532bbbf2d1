//! Seeded sets of delays, made before a measurement starts.

use crate::checksum::Checksum;

/// Ticks in 30 minutes; a tick is 1 ms.
pub(crate) const THIRTY_MINUTES: u64 = 30 * 60 * ONE_SECOND;

const ONE_SECOND: u64 = 1000;

/// How deadlines are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Uniform over 30 minutes, in random order.
    ThirtyMinutes,
    /// All timers have a delay of 30 minutes and are placed within 1 s, so deadlines rise.
    PlacedInOneSecond,
}

impl Spread {
    fn delay(self, nth: usize, size: usize, rng: &mut fastrand::Rng) -> u64 {
        match self {
            Self::ThirtyMinutes => rng.u64(1..=THIRTY_MINUTES),
            Self::PlacedInOneSecond => THIRTY_MINUTES + nth as u64 * ONE_SECOND / size as u64,
        }
    }
}

/// Delays of timers whose payloads are 0, 1, 2 and so on.
pub(crate) struct Workload {
    pub(crate) delays: Vec<u64>,
    /// The longest delay: all timers have fired by then.
    pub(crate) span: u64,
}

impl Workload {
    /// Makes `size` delays; the same arguments give the same delays.
    pub(crate) fn new(spread: Spread, size: usize, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let delays = (0..size).map(|nth| spread.delay(nth, size, &mut rng)).collect::<Vec<_>>();
        let span = delays.iter().copied().max().unwrap_or(0);
        Self { delays, span }
    }

    /// Returns what fires if `copies` producers each schedule the workload at tick `base`.
    pub(crate) fn expected(&self, base: u64, copies: usize) -> Checksum {
        let mut sum = Checksum::default();
        for _ in 0..copies {
            self.delays.iter().zip(0..).for_each(|(delay, payload)| sum.expect(base + delay, payload));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_seeded_and_within_their_spread() {
        let [a, b, c] = [1, 1, 2].map(|seed| Workload::new(Spread::ThirtyMinutes, 100, seed));
        assert!(a.delays == b.delays && a.delays != c.delays);
        let work = Workload::new(Spread::PlacedInOneSecond, 5000, 1);
        assert!(work.span - work.delays.iter().min().unwrap() < ONE_SECOND && work.delays.is_sorted());
    }
}

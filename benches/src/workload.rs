//! Seeded sets of delays, made before anything is timed.

use crate::Checksum;

/// Ticks in half an hour, a tick being one millisecond.
pub const THIRTY_MINUTES: u64 = 30 * 60 * ONE_SECOND;

const ONE_SECOND: u64 = 1000;

/// How the deadlines of a workload lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Uniform over the next half hour, in random order.
    ThirtyMinutes,
    /// Half an hour after they were placed, all being placed within one second: the deadlines rise in
    /// the order of placing and take up one second.
    PlacedInOneSecond,
    /// Uniform over the one second that ends in half an hour, in random order.
    DueInOneSecond,
}

impl Spread {
    fn delay(self, nth: usize, size: usize, rng: &mut fastrand::Rng) -> u64 {
        match self {
            Self::ThirtyMinutes => rng.u64(1..=THIRTY_MINUTES),
            Self::PlacedInOneSecond => THIRTY_MINUTES + nth as u64 * ONE_SECOND / size as u64,
            Self::DueInOneSecond => THIRTY_MINUTES + rng.u64(0..ONE_SECOND),
        }
    }
}

/// Delays for timers whose payloads are 0, 1, 2 and so on.
pub struct Workload {
    delays: Vec<u64>,
    span: u64,
}

impl Workload {
    /// `size` delays; the same arguments give the same delays.
    #[must_use]
    pub fn new(spread: Spread, size: usize, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        Self::from_delays((0..size).map(|nth| spread.delay(nth, size, &mut rng)).collect())
    }

    fn from_delays(delays: Vec<u64>) -> Self {
        let span = delays.iter().copied().max().unwrap_or(0);
        Self { delays, span }
    }

    /// The delays, in the order in which the timers are scheduled.
    #[must_use]
    pub fn delays(&self) -> &[u64] {
        &self.delays
    }

    /// The longest delay: by then all have fired.
    #[must_use]
    pub fn span(&self) -> u64 {
        self.span
    }

    /// What must have fired when `copies` producers each scheduled the workload at tick `base`.
    #[must_use]
    pub fn expected(&self, base: u64, copies: usize) -> Checksum {
        let mut sum = Checksum::default();
        for _ in 0..copies {
            self.delays.iter().zip(0..).for_each(|(delay, payload)| sum.expect(base + delay, payload));
        }
        sum
    }
}

/// Each delay made longer by up to half an hour: the deadlines that the timers of `work` are extended to.
#[must_use]
pub fn later(work: &Workload, seed: u64) -> Workload {
    let mut rng = fastrand::Rng::with_seed(seed);
    Workload::from_delays(work.delays.iter().map(|delay| delay + rng.u64(1..=THIRTY_MINUTES)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_delays() {
        let [a, b, c] = [1, 1, 2].map(|seed| Workload::new(Spread::ThirtyMinutes, 100, seed));
        assert_eq!(a.delays(), b.delays());
        assert_ne!(a.delays(), c.delays());
    }

    #[test]
    fn a_second_is_a_second() {
        for spread in [Spread::PlacedInOneSecond, Spread::DueInOneSecond] {
            let work = Workload::new(spread, 5000, 1);
            let earliest = work.delays().iter().min().unwrap();
            assert!(work.span() - earliest < ONE_SECOND, "{spread:?}");
        }
        assert!(Workload::new(Spread::PlacedInOneSecond, 5000, 1).delays().is_sorted());
    }

    #[test]
    fn extended_deadlines_are_later() {
        let work = Workload::new(Spread::ThirtyMinutes, 1000, 1);
        let extended = later(&work, 2);
        assert!(work.delays().iter().zip(extended.delays()).all(|(old, new)| old < new));
    }
}

//! A sum over the timers that fired. It does not depend on the order of timers of the same tick.

/// Two sums are equal if the same pairs of deadline and payload went in and, in both, no deadline
/// came after a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checksum {
    count: u64,
    sum: u64,
    xor: u64,
    out_of_order: u64,
    /// The deadline that was added last.
    pub(crate) last: u64,
}

impl Checksum {
    /// Adds a timer that fired.
    #[inline]
    pub(crate) fn add(&mut self, deadline: u64, payload: u64) {
        self.out_of_order += u64::from(deadline < self.last);
        self.last = deadline;
        self.add_unordered(deadline, payload);
    }

    /// Adds a timer that has to fire, in any order; the last deadline becomes the latest of all.
    pub(crate) fn expect(&mut self, deadline: u64, payload: u64) {
        self.last = self.last.max(deadline);
        self.add_unordered(deadline, payload);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum as one number, which processes can compare.
    pub(crate) fn digest(&self) -> u64 {
        [self.sum, self.xor, self.out_of_order, self.last].into_iter().fold(self.count, mix)
    }

    /// Panics if `self`, from the engine of this name, is not `expected`.
    pub(crate) fn verify(&self, expected: &Self, engine: &str) {
        assert_eq!(self, expected, "{engine} did not fire what was scheduled");
    }

    #[inline]
    fn add_unordered(&mut self, deadline: u64, payload: u64) {
        let mixed = mix(deadline, payload);
        self.count += 1;
        self.sum = self.sum.wrapping_add(mixed);
        self.xor ^= mixed;
    }
}

/// Binds a deadline to its payload, so that two timers that swap them change the sum.
#[inline]
fn mix(deadline: u64, payload: u64) -> u64 {
    const ODD: u64 = 0xd6e8_feb8_6659_fd93;
    (deadline.rotate_left(32) ^ payload).wrapping_mul(ODD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_changes_the_sum_and_the_order_within_a_tick_does_not() {
        let fired = |timers: &[(u64, u64)]| {
            let mut sum = Checksum::default();
            timers.iter().for_each(|&(deadline, payload)| sum.add(deadline, payload));
            sum.digest()
        };
        let right = fired(&[(1, 10), (2, 11), (3, 12)]);
        assert_ne!(right, fired(&[(1, 10), (2, 11)]));
        assert_ne!(right, fired(&[(1, 10), (2, 11), (3, 12), (3, 12)]));
        assert_ne!(right, fired(&[(1, 10), (3, 12), (2, 11)]));
        assert_ne!(right, fired(&[(1, 11), (2, 10), (3, 12)]));
        assert_eq!(fired(&[(1, 10), (1, 11), (2, 12)]), fired(&[(1, 11), (1, 10), (2, 12)]));
    }
}

//! A timer's time: nanoseconds since the timer's start, and ticks.
//!
//! A deadline is rounded up to a tick and the clock is rounded down, so nothing fires early. Both
//! come from the same [`Clock`]. Nanoseconds are `u64`, which reaches 584 years. Later times
//! saturate, and a deadline there never comes.
//!
//! A [`Time`] does not change after its start. Each shard of a timer has a copy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::clock::{Clock, FastClock};
use crate::unwind::DropQuietly;
use crate::{MonotonicClock, Tick};

/// Nanoseconds since a timer's start.
pub(crate) type Nanos = u64;

/// A deadline that never comes.
pub(crate) const NEVER: Nanos = Nanos::MAX;

#[derive(Clone)]
pub(crate) struct Time {
    source: Source,
    pub(super) start: Instant,
    /// The nanoseconds in a tick.
    tick: Divisor,
    /// For deadlines: a faster way to read the default clock, a little ahead of it.
    fast: Option<FastClock>,
}

/// The shortest tick, in nanoseconds, for which the fast clock is used. It is ahead by
/// microseconds, which does not matter for such ticks.
const LEAST_FAST_TICK: Nanos = 100_000;

/// The default clock has its own variant, so that reading it costs no indirect call.
#[derive(Clone)]
enum Source {
    Monotonic,
    Given(DropQuietly<Arc<dyn Clock>>),
}

impl Time {
    /// Starts the timer's time now.
    pub(crate) fn start(clock: Option<DropQuietly<Arc<dyn Clock>>>, tick: Duration) -> Self {
        let tick = nanos(tick);
        let fast = if clock.is_none() && tick >= LEAST_FAST_TICK { FastClock::start() } else { None };
        let source = clock.map_or(Source::Monotonic, Source::Given);
        let (fast, start) = fast.map_or_else(|| (None, source.now()), |(fast, start)| (Some(fast), start));
        Self { source, start, tick: Divisor::new(tick), fast }
    }

    /// The time now.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.since_start(self.source.now())
    }

    /// The time now, or a little later; `None` if there is no fast clock, or not yet.
    #[inline]
    pub(crate) fn fast_now(&self) -> Option<Nanos> {
        self.fast.and_then(FastClock::now_or_later)
    }

    /// Whether the clock is the user's, so that reading it runs user code.
    pub(crate) fn is_users(&self) -> bool {
        matches!(self.source, Source::Given(_))
    }

    /// The nanoseconds in a tick.
    pub(crate) fn tick(&self) -> Nanos {
        self.tick.value
    }

    pub(crate) fn now_instant(&self) -> Instant {
        self.source.now()
    }

    #[inline]
    pub(crate) fn since_start(&self, at: Instant) -> Nanos {
        nanos(at.saturating_duration_since(self.start))
    }

    /// The `Instant` of a time; `None` if the system cannot represent it.
    pub(crate) fn instant(&self, at: Nanos) -> Option<Instant> {
        if at == NEVER { None } else { self.start.checked_add(Duration::from_nanos(at)) }
    }

    /// The tick for a deadline: the first tick that begins at or after it.
    #[inline]
    pub(crate) fn tick_for(&self, deadline: Nanos) -> Tick {
        if deadline == NEVER { Tick::MAX } else { self.tick.divide_up(deadline) }
    }

    /// The tick for the clock: the last tick that has begun. It never reaches the last tick of all,
    /// for which timers are scheduled that never fire.
    #[inline]
    pub(crate) fn tick_at(&self, now: Nanos) -> Tick {
        self.tick.divide(now).min(Tick::MAX - 1)
    }

    /// When a tick begins.
    pub(crate) fn start_of(&self, tick: Tick) -> Nanos {
        tick.saturating_mul(self.tick.value)
    }
}

/// Divides by a constant through multiplication: a division takes longer than the rest of a
/// deadline's arithmetic.
///
/// For `n < 2^62` and a divisor `d` of `b` bits, let `m = ceil(2^(62 + b) / d)`. Then
/// `n / d = (n * m) >> (62 + b)`, rounded down.
///
/// Proof: `m` exceeds the exact quotient by less than 1, so the product exceeds the exact product
/// by less than `n`. After the shift that is less than `1 / d`, too little to reach the next whole
/// number (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994).
#[derive(Clone, Copy)]
struct Divisor {
    value: u64,
    multiplier: u64,
    /// The rest of the shift, after the low 64 bits of the product are dropped.
    shift: u32,
    /// Smaller numbers are divided by multiplication. 0 for a divisor of one bit: the shift is 63
    /// bits then, less than the 64 of the product's low half.
    quick: u64,
}

/// Numbers of up to this many bits are divided by multiplication: 146 years in nanoseconds.
const QUICK_BITS: u32 = 62;

impl Divisor {
    fn new(value: u64) -> Self {
        let shift = QUICK_BITS + value.ilog2() + 1;
        let multiplier = (1_u128 << shift).div_ceil(u128::from(value));
        // At most 2^63, as the divisor is at least half of the power of two above it.
        let multiplier = u64::try_from(multiplier).unwrap_or(u64::MAX);
        match shift.checked_sub(u64::BITS) {
            Some(shift) => Self { value, multiplier, shift, quick: 1 << QUICK_BITS },
            None => Self { value, multiplier, shift: 0, quick: 0 },
        }
    }

    #[inline]
    fn divide(self, n: u64) -> u64 {
        if n < self.quick {
            ((u128::from(n) * u128::from(self.multiplier)) >> u64::BITS) as u64 >> self.shift
        } else {
            n / self.value
        }
    }

    /// Rounded up.
    #[inline]
    fn divide_up(self, n: u64) -> u64 {
        let down = self.divide(n);
        down + u64::from(down * self.value < n)
    }
}

impl Source {
    #[inline]
    fn now(&self) -> Instant {
        match self {
            Self::Monotonic => MonotonicClock.now(),
            Self::Given(clock) => clock.now(),
        }
    }
}

/// The nanoseconds of a duration; saturates.
#[inline]
pub(crate) fn nanos(duration: Duration) -> Nanos {
    const PER_SECOND: Nanos = 1_000_000_000;
    let seconds = duration.as_secs().checked_mul(PER_SECOND);
    let whole = seconds.and_then(|whole| whole.checked_add(Nanos::from(duration.subsec_nanos())));
    whole.unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    fn millis() -> Time {
        Time::start(Some(DropQuietly::new(Arc::new(ManualClock::new()))), Duration::from_millis(1))
    }

    #[test]
    fn deadlines_round_up_and_the_clock_down() {
        let time = millis();
        for (nanos, up, down) in [(0, 0, 0), (1, 1, 0), (999_999, 1, 0), (1_000_000, 1, 1), (1_000_001, 2, 1)]
        {
            assert_eq!((time.tick_for(nanos), time.tick_at(nanos)), (up, down), "{nanos} ns");
        }
    }

    #[test]
    fn divisions_are_exact() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut number = || random.u64(..) >> random.u32(..64);
        let near = |centre: u64| (0..5).map(move |off| centre.wrapping_add(off).wrapping_sub(2));
        let powers = (0..64).flat_map(|bits| near(1 << bits));
        let divisors: Vec<_> =
            powers.chain([999_999, 1_000_000, 100_000, 10_000_000]).filter(|&d| d > 0).collect();
        for &value in &divisors {
            let divisor = Divisor::new(value);
            let multiples = near(value.wrapping_mul(number()));
            for n in multiples.chain(near(1 << 62)).chain(near(0)).chain((0..50).map(|_| number())) {
                assert_eq!(divisor.divide(n), n / value, "{n} / {value}");
                assert_eq!(divisor.divide_up(n), n.div_ceil(value), "{n} / {value}");
            }
        }
    }

    #[test]
    fn what_is_out_of_range_never_comes() {
        let time = millis();
        assert_eq!(nanos(Duration::MAX), NEVER);
        assert_eq!(time.tick_for(NEVER), Tick::MAX);
        assert_eq!(time.instant(NEVER), None);
        assert_eq!(time.start_of(Tick::MAX), NEVER);
    }

    #[test]
    fn a_moment_before_the_start_counts_as_the_start() {
        let earlier = Instant::now();
        assert_eq!(millis().since_start(earlier), 0);
    }
}

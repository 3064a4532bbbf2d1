//! A `Timer`'s time: nanoseconds since the `Timer`'s start, and ticks.
//!
//! A deadline is rounded up to a tick and the clock is rounded down, so nothing fires early. Both
//! come from the same [`Clock`]. A `Timer` with slack rounds its deadlines up further, to the
//! roundest tick of a window, here and nowhere else: all that ask for a deadline's tick get the
//! same. Nanoseconds are `u64`, which reaches 584 years. Later times saturate, and a deadline there
//! never comes.
//!
//! A [`Time`] does not change after its start. Each shard of a `Timer` has a copy.

use std::sync::Arc;

use super::roundest::roundest;
use crate::clock::{Clock, FastClock};
use crate::tick::Tick;
use crate::time::{Duration, Instant};
use crate::timer::guard::PanicGuard;
use crate::unwind::DropQuietly;

/// Nanoseconds since a timer's start.
pub(crate) type Nanos = u64;

/// A deadline that never comes.
pub(crate) const NEVER: Nanos = Nanos::MAX;

#[derive(Clone)]
pub(crate) struct Time {
    /// The user's clock. Reading the default clock instead costs no indirect call.
    clock: Option<DropQuietly<Arc<dyn Clock>>>,
    pub(in crate::timer) start: Instant,
    /// The nanoseconds in a tick.
    tick: Divisor,
    /// How long after its deadline a timer may be due, unless it has a slack of its own.
    pub(crate) slack: Nanos,
    /// For deadlines: a faster way to read the default clock, a little ahead of it.
    fast: Option<FastClock>,
}

/// The shortest tick, in nanoseconds, for which the fast clock is used. The clock is ahead by some
/// 20 us at most, less than half of such a tick.
const LEAST_FAST_TICK: Nanos = 50_000;

impl Time {
    /// Starts the timer's time now.
    pub(crate) fn start(clock: Option<DropQuietly<Arc<dyn Clock>>>, tick: Duration) -> Self {
        let tick = nanos(tick);
        let fast = if clock.is_none() && tick >= LEAST_FAST_TICK { FastClock::start() } else { None };
        let (fast, start) = fast.unzip();
        let start = start.unwrap_or_else(|| read(clock.as_ref()));
        Self { clock, start, tick: Divisor::new(tick), slack: 0, fast }
    }

    /// The time now.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.since_start(read(self.clock.as_ref()))
    }

    /// The time now, or a little later; `None` if there is no fast clock, or not yet.
    #[inline]
    pub(crate) fn fast_now(&self) -> Option<Nanos> {
        self.fast.and_then(FastClock::now_or_later)
    }

    /// The time now, for deadlines; at least that of tick `own`, which the shard has reached, if a
    /// user's clock has been set back.
    pub(crate) fn now_since(&self, own: impl FnOnce() -> Tick) -> Nanos {
        let now = self.now();
        if self.is_users() { now.max(self.start_of(own())) } else { now }
    }

    /// The time now, or that of tick `own` if the user's clock panics.
    pub(crate) fn present(&self, guard: &PanicGuard, own: impl FnOnce() -> Tick) -> Nanos {
        let read = || self.now();
        let shown = if self.is_users() { guard.run(None, read) } else { Some(read()) };
        shown.unwrap_or_else(|| self.start_of(own()))
    }

    /// As [`present`](Self::present), and at least the time of tick `own`.
    pub(crate) fn present_instant(&self, guard: &PanicGuard, own: impl FnOnce() -> Tick) -> Instant {
        self.instant_shown(if self.is_users() {
            let own = own();
            self.present(guard, || own).max(self.start_of(own))
        } else {
            self.now()
        })
    }

    /// Whether the clock is the user's, so that reading it runs user code.
    pub(crate) fn is_users(&self) -> bool {
        self.clock.is_some()
    }

    /// Whether both go by one clock, as far as that can be found out.
    pub(crate) fn has_clock_of(&self, other: &Self) -> bool {
        match (&self.clock, &other.clock) {
            (None, None) => true,
            (Some(own), Some(other)) => {
                let manual = own.as_manual().zip(other.as_manual());
                Arc::ptr_eq(own, other) || manual.is_some_and(|(own, other)| own.is(other))
            }
            _ => false,
        }
    }

    /// The nanoseconds in a tick.
    pub(crate) fn tick(&self) -> Nanos {
        self.tick.value
    }

    #[inline]
    pub(crate) fn since_start(&self, at: Instant) -> Nanos {
        nanos(at.saturating_duration_since(self.start))
    }

    /// The `Instant` of a time; `None` if the system cannot represent it.
    pub(crate) fn instant(&self, at: Nanos) -> Option<Instant> {
        if at == NEVER { None } else { self.start.checked_add(Duration::from_nanos(at)) }
    }

    /// The `Instant` of a time that the clock has shown.
    pub(crate) fn instant_shown(&self, at: Nanos) -> Instant {
        self.start.checked_add(Duration::from_nanos(at)).unwrap_or(self.start)
    }

    /// The tick for a deadline, within the timer's slack.
    #[inline]
    pub(crate) fn tick_for(&self, deadline: Nanos) -> Tick {
        self.tick_within(deadline, self.slack, 0)
    }

    /// The tick for a timer that is due at `start` or up to `slack` later: the roundest that begins
    /// then, but none before `least`. If there is none, the first after `start`, or `least`.
    #[inline]
    pub(crate) fn tick_within(&self, start: Nanos, slack: Nanos, least: Tick) -> Tick {
        let first = if start == NEVER { Tick::MAX } else { self.tick.divide_up(start).max(least) };
        if slack == 0 { first } else { roundest(first, self.tick_at(start.saturating_add(slack)).max(first)) }
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
/// For a divisor `d` let `m = (2^64 - 1) / d`, rounded down. It is less than the exact `2^64 / d`
/// by at most 1. So `n * m / 2^64` is less than `n / d` by less than 1, as `n < 2^64`. Rounded
/// down, it is the quotient or one less, and the remainder shows which.
#[derive(Clone, Copy)]
struct Divisor {
    value: u64,
    multiplier: u64,
}

impl Divisor {
    fn new(value: u64) -> Self {
        Self { value, multiplier: u64::MAX / value }
    }

    #[inline]
    fn divide(self, n: u64) -> u64 {
        let quotient = ((u128::from(n) * u128::from(self.multiplier)) >> u64::BITS) as u64;
        quotient + u64::from(n - quotient * self.value >= self.value)
    }

    /// Rounded up.
    #[inline]
    fn divide_up(self, n: u64) -> u64 {
        let down = self.divide(n);
        down + u64::from(down * self.value < n)
    }
}

#[inline]
fn read(clock: Option<&DropQuietly<Arc<dyn Clock>>>) -> Instant {
    clock.map_or_else(crate::sync::now, |clock| clock.now())
}

/// The nanoseconds of a duration; saturates.
#[inline]
pub(crate) fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(NEVER)
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

    #[cfg(not(any(shardwheel_loom, fuzzing)))]
    #[test]
    fn vectors_of_divisors() {
        use crate::vectors::{numbers, show};
        for value in numbers(1, 20).into_iter().filter(|&value| value > 0) {
            let divisor = Divisor::new(value);
            for n in numbers(value, 4) {
                show("divisor", &[value, n], &[divisor.divide(n), divisor.divide_up(n)]);
            }
        }
    }

    /// The fast clock is ahead of the clock that says what is due.
    #[test]
    fn the_fast_clock_reads_deadlines_of_long_ticks_alone() {
        let has_fast = |tick| Time::start(None, Duration::from_nanos(tick)).fast.is_some();
        assert_eq!([1, LEAST_FAST_TICK - 1].map(has_fast), [false; 2]);
        assert_eq!([LEAST_FAST_TICK, NEVER].map(has_fast), [true; 2]);
    }

    #[test]
    fn what_is_out_of_range_never_comes() {
        let time = millis();
        assert_eq!(nanos(Duration::MAX), NEVER);
        assert_eq!(time.tick_for(NEVER), Tick::MAX);
        assert_eq!(time.instant(NEVER), None);
        assert_eq!(time.start_of(Tick::MAX), NEVER);
    }
}

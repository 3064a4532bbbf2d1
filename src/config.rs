//! The settings of a shard: the tick, the wheel size, the bound on pending timers, the clock's
//! start.
//!
//! [`ConfigBuilder::build`] validates a [`Config`] once; all other code relies on it.

use std::time::Duration;

use crate::error::ConfigError;
use crate::tick::Tick;

/// The smallest number of buckets in a wheel: a wheel of one bucket cannot turn.
pub const MIN_WHEEL_SIZE: usize = 2;

/// The largest number of buckets in a wheel. A wheel costs up to about 256 bytes a bucket, so a
/// wheel of this size costs 8 MiB.
pub const MAX_WHEEL_SIZE: usize = 1 << 15;

/// The default number of buckets in a wheel.
///
/// At a tick of 1 ms, two wheels of this size reach 70 minutes, so a timer of half an hour is moved
/// once before it fires. A wheel takes 256 KiB, and another 256 KiB for the timers that the
/// advancer has moved there: it stays within a core's second-level cache.
///
/// In a browser, with the feature `web`, it is 256: a wheel takes 32 KiB, and two wheels reach 65
/// seconds.
pub const DEFAULT_WHEEL_SIZE: usize = match (cfg!(miri), cfg!(all(feature = "web", target_os = "unknown"))) {
    (true, _) => 64,
    (_, true) => 256,
    _ => 2048,
};

const DEFAULT_TICK: Duration = Duration::from_millis(1);
const NANOS_PER_SEC: u128 = 1_000_000_000;

/// The settings of one shard.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::Config;
///
/// let config = Config::builder()
///     .tick(Duration::from_millis(10))
///     .wheel_size(512)
///     .max_pending(1_000_000)
///     .build()?;
/// assert_eq!(config.ticks_ceil(Duration::from_millis(25)), 3); // never early: rounded up
/// # Ok::<(), shardwheel::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    tick: Duration,
    wheel_size: usize,
    max_pending: usize,
    start: Tick,
}

impl Config {
    /// Makes a builder with the defaults: a tick of 1 ms, [`DEFAULT_WHEEL_SIZE`] buckets, no bound
    /// on the number of pending timers, a clock that starts at 0.
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }

    /// Returns the length of one tick.
    #[must_use]
    pub fn tick(&self) -> Duration {
        self.tick
    }

    /// Returns the number of buckets in a wheel: a power of two.
    #[must_use]
    pub fn wheel_size(&self) -> usize {
        self.wheel_size
    }

    /// Returns the largest number of timers that may be pending at once; `usize::MAX` means no
    /// bound.
    #[must_use]
    pub fn max_pending(&self) -> usize {
        self.max_pending
    }

    /// Returns the tick at which the shard's clock starts.
    #[must_use]
    pub fn start(&self) -> Tick {
        self.start
    }

    /// Converts a duration to ticks, rounded up, as a deadline must be so that no timer fires
    /// early. Exact; saturates at `u64::MAX`.
    #[must_use]
    pub fn ticks_ceil(&self, duration: Duration) -> Tick {
        saturate(duration.as_nanos().div_ceil(self.tick.as_nanos()))
    }

    /// Converts a duration to whole ticks, rounded down, as a clock must be so that no timer fires
    /// early. Exact; saturates at `u64::MAX`.
    #[must_use]
    pub fn ticks_floor(&self, duration: Duration) -> Tick {
        saturate(duration.as_nanos() / self.tick.as_nanos())
    }

    /// Converts ticks to a duration. Exact; saturates at [`Duration::MAX`].
    #[must_use]
    pub fn duration_of(&self, ticks: Tick) -> Duration {
        let Some(nanos) = self.tick.as_nanos().checked_mul(u128::from(ticks)) else { return Duration::MAX };
        match u64::try_from(nanos / NANOS_PER_SEC) {
            Ok(secs) => Duration::new(secs, (nanos % NANOS_PER_SEC) as u32),
            Err(_) => Duration::MAX,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { tick: DEFAULT_TICK, wheel_size: DEFAULT_WHEEL_SIZE, max_pending: usize::MAX, start: 0 }
    }
}

fn saturate(ticks: u128) -> Tick {
    Tick::try_from(ticks).unwrap_or(Tick::MAX)
}

/// Builds a [`Config`]; made by [`Config::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ConfigBuilder {
    config: Config,
}

impl ConfigBuilder {
    /// Sets the length of one tick: the resolution of every deadline. Default: 1 ms.
    ///
    /// A shard counts in ticks and never reads a clock. The length serves the conversions
    /// [`Config::ticks_ceil`] and [`Config::ticks_floor`].
    pub fn tick(mut self, tick: Duration) -> Self {
        self.config.tick = tick;
        self
    }

    /// Sets the number of buckets in a wheel: a power of two from [`MIN_WHEEL_SIZE`] to
    /// [`MAX_WHEEL_SIZE`]. Default: [`DEFAULT_WHEEL_SIZE`].
    ///
    /// In a larger wheel, a far timer is moved fewer times before it fires. Each bucket costs up to
    /// about 256 bytes.
    pub fn wheel_size(mut self, wheel_size: usize) -> Self {
        self.config.wheel_size = wheel_size;
        self
    }

    /// Sets the largest number of timers that may be pending at once, at least 1. Default:
    /// `usize::MAX`, no bound.
    ///
    /// A bound costs each schedule, and each end of a timer, one operation on a counter that all
    /// threads share.
    pub fn max_pending(mut self, max_pending: usize) -> Self {
        self.config.max_pending = max_pending;
        self
    }

    /// Sets the tick at which the shard's clock starts. Default: 0.
    pub fn start(mut self, start: Tick) -> Self {
        self.config.start = start;
        self
    }

    /// Validates the settings.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], which names the setting, its value and what would be valid.
    pub fn build(self) -> Result<Config, ConfigError> {
        let Config { tick, wheel_size, max_pending, .. } = self.config;
        if tick.is_zero() {
            return Err(ConfigError::ZeroTick);
        }
        if !(MIN_WHEEL_SIZE..=MAX_WHEEL_SIZE).contains(&wheel_size) {
            return Err(ConfigError::WheelSizeOutOfRange {
                value: wheel_size,
                min: MIN_WHEEL_SIZE,
                max: MAX_WHEEL_SIZE,
            });
        }
        if !wheel_size.is_power_of_two() {
            return Err(ConfigError::WheelSizeNotPowerOfTwo {
                value: wheel_size,
                next: wheel_size.next_power_of_two(),
            });
        }
        if max_pending == 0 {
            return Err(ConfigError::ZeroMaxPending);
        }
        Ok(self.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_tick(nanos: u64) -> Config {
        Config::builder().tick(Duration::from_nanos(nanos)).build().expect("a tick that is not zero")
    }

    #[test]
    fn conversions_saturate() {
        let config = with_tick(1);
        assert_eq!(config.ticks_ceil(Duration::MAX), Tick::MAX);
        assert_eq!(config.ticks_floor(Duration::MAX), Tick::MAX);
        let config = Config::builder().tick(Duration::MAX).build().unwrap();
        assert_eq!(config.duration_of(1), Duration::MAX);
        assert_eq!(config.duration_of(2), Duration::MAX);
        assert_eq!(config.duration_of(0), Duration::ZERO);
    }

    #[test]
    fn durations_of_ticks_convert_back() {
        let config = with_tick(1_500_000);
        for ticks in [0, 1, 2, 1_000, u64::from(u32::MAX), 1 << 53] {
            assert_eq!(config.ticks_floor(config.duration_of(ticks)), ticks);
            assert_eq!(config.ticks_ceil(config.duration_of(ticks)), ticks);
        }
    }
}

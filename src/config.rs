//! The settings of a shard: the tick, the wheel size, the bound on pending timers, the clock's
//! start.
//!
//! [`ConfigBuilder::build`] validates a [`Config`] once; all other code relies on it.

use std::time::Duration;

use crate::error::ConfigError;
use crate::tick::Tick;

/// The sizes that differ under fuzzers, Miri and loom.
pub(crate) struct Limits {
    /// Levels of a hierarchy, at most: as many as wheels of two buckets have.
    pub(crate) levels: usize,
    /// Lists in a bucket, of either wheel. The advancer walks them in turn, which keeps 16 cache
    /// misses in flight: about as many as it takes to wait for none of them.
    pub(crate) stripes: usize,
    /// Producers raise `Wheel::last` by this many buckets at a time: seldom, where each timer is
    /// due later than the one before. A power of two.
    pub(crate) marked_buckets: u64,
    /// Timers that a node can hold, one after the other. Fuzzers and Miri reach worn-out nodes.
    pub(crate) versions: u32,
    /// Bytes of node memory in a segment, at most, unless the payload is large.
    pub(crate) segment_bytes: usize,
    /// Segments of a slab, at most. A fuzzer makes and clears a table for each input.
    pub(crate) segments: usize,
    /// Whether the first segment is never given back. Models, which test other things, keep it.
    pub(crate) keeps_first_segment: bool,
    /// Nodes in one word of free bits. In models a segment has a single word.
    pub(crate) nodes_per_free_word: usize,
    /// Places of the table at which one search for an empty segment looks.
    pub(crate) places_per_search: usize,
    /// Freed nodes that are worth being given to the slab, at least.
    pub(crate) ripe_batch: usize,
    /// Words of freed nodes that a step gives to the slab, at least.
    pub(crate) words_per_step: usize,
    /// Moves of the clock from one upkeep to the next if nothing is under way.
    pub(crate) moves_per_upkeep: u32,
    /// Moves of the clock from one release of memory to the next, at most; and steps for which
    /// freed nodes that are few wait for more.
    pub(crate) moves_per_release: usize,
    /// Nodes that a drain frees before it does work for them that an upkeep does as well.
    pub(crate) freed_in_a_drain: usize,
    /// With at most this many pending timers, no cascade takes long, and the advancer does not wake
    /// for the early cascade.
    pub(crate) few_pending: usize,
    /// Nodes of a bucket that the early cascade places for each tick, at least.
    pub(crate) early_nodes: u64,
    /// After a step that has left nothing to move early, the early cascade rests for the shortest
    /// lead divided by this. Models and fuzzers do not rest.
    pub(crate) early_rests: Tick,
    /// Dead nodes that are always tolerated (promise 5).
    pub(crate) dead_floor: u64,
    /// Dead nodes that a thread leaves before it reports them.
    pub(crate) dead_per_report: u32,
    /// Dead nodes from one look of the advancer at their number to the next, at least.
    pub(crate) dead_per_look: u64,
    /// Nodes that a step of the sweep visits, at least.
    pub(crate) swept_nodes: u64,
    /// How often pending timers are counted, at most. Models count once: they are about the timers,
    /// not about a count that is too high.
    pub(crate) counts: usize,
    /// How often the shard's end walks over all nodes, at most.
    pub(crate) walks: usize,
    /// Whether threads hold nodes. Most models test nodes that are left in their lists.
    pub(crate) holds_nodes: bool,
}

/// Fuzzers reach every case in a few operations, and Miri, which takes minutes over full sizes,
/// finishes in time. In models each further step multiplies the interleavings.
pub(crate) const LIMITS: Limits = Limits {
    levels: size(64, 64, 3),
    stripes: size(16, 16, 1),
    marked_buckets: size(64, 1, 1),
    versions: size(u32::MAX, 7, u32::MAX),
    segment_bytes: size(2 << 20, 1 << 11, 0),
    segments: size(1 << 16, 1 << 6, 4),
    keeps_first_segment: size(false, false, true),
    nodes_per_free_word: size(64, 64, 4),
    places_per_search: size(64, 3, 64),
    ripe_batch: size(64, 4, 64),
    words_per_step: size(512, 2, 512),
    moves_per_upkeep: size(64, 3, 1),
    moves_per_release: size(16, 1, 1),
    freed_in_a_drain: size(64, 1, 1),
    few_pending: size(1 << 14, 8, 1 << 14),
    early_nodes: size(64, 1, 64),
    early_rests: size(8, Tick::MAX, Tick::MAX),
    dead_floor: size(4096, 8, 2),
    dead_per_report: size(8, 1, 1),
    dead_per_look: size(64, 1, 1),
    swept_nodes: size(4096, 4, 4096),
    counts: size(8, 8, 1),
    walks: size(100, 100, 3),
    holds_nodes: size(true, true, false),
};

/// Chooses between the usual size, that of fuzzers, Miri and Shuttle, and that of loom's models.
const fn size<S: Copy>(usual: S, fuzzed: S, modelled: S) -> S {
    if cfg!(shardwheel_loom) {
        modelled
    } else if cfg!(any(fuzzing, miri, shardwheel_shuttle)) {
        fuzzed
    } else {
        usual
    }
}

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
pub const DEFAULT_WHEEL_SIZE: usize = if cfg!(miri) { 64 } else { 2048 };

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

    /// Division by the tick is exact for all small pairs and near 2^32 and 2^53.
    #[test]
    fn tick_division_is_exact() {
        let near = |centre: u64| centre - 3..=centre + 3;
        let values = (0..200).chain(near(1 << 32)).chain(near(1 << 53)).collect::<Vec<u64>>();
        for tick in (1..64).chain(near(1 << 32)) {
            let config = with_tick(tick);
            for &nanos in &values {
                let duration = Duration::from_nanos(nanos);
                let (floor, ceil) = (config.ticks_floor(duration), config.ticks_ceil(duration));
                assert!(
                    floor * tick <= nanos && nanos < (floor + 1) * tick,
                    "{nanos} ns in ticks of {tick}: {floor}"
                );
                assert_eq!(ceil, floor + u64::from(nanos % tick != 0), "{nanos} ns in ticks of {tick}");
            }
        }
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

    #[test]
    fn errors_name_the_value_and_the_limit() {
        let message = |builder: ConfigBuilder| builder.build().unwrap_err().to_string();
        assert!(message(Config::builder().tick(Duration::ZERO)).contains("tick"));
        assert!(message(Config::builder().max_pending(0)).contains("max_pending"));
        let odd = message(Config::builder().wheel_size(1000));
        assert!(odd.contains("1000") && odd.contains("1024"), "{odd}");
        for wrong in [0, 1, MAX_WHEEL_SIZE + 1, usize::MAX] {
            let text = message(Config::builder().wheel_size(wrong));
            assert!(
                text.contains(&wrong.to_string()) && text.contains(&MAX_WHEEL_SIZE.to_string()),
                "{text}"
            );
        }
    }

    #[test]
    fn defaults_are_valid() {
        assert_eq!(Config::builder().build(), Ok(Config::default()));
    }
}

//! The clock that all threads share, and its ticks.
//!
//! All shards count their ticks from the same moment, so any thread can compute a deadline for any
//! shard.

use std::time::{Duration, Instant};

use shardwheel::{Config, Tick};

/// A point in time: the time since the start.
pub(crate) type Moment = Duration;

/// The unit in which a poller may count its timeout.
const POLLER_UNIT: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start: Instant,
    config: Config,
}

impl Clock {
    /// A clock for shards of this configuration, which begin at tick 0.
    pub(crate) fn start_now(config: Config) -> Self {
        Self { start: Instant::now(), config }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn now(&self) -> Moment {
        self.start.elapsed()
    }

    /// The first tick that is not before `due`: for deadlines.
    pub(crate) fn deadline(&self, due: Moment) -> Tick {
        self.config.ticks_ceil(due)
    }

    /// The last tick that is not after `now`: for the shard's clock.
    pub(crate) fn reached(&self, now: Moment) -> Tick {
        self.config.ticks_floor(now)
    }

    /// How long to poll from `now`, so that `tick` has begun afterwards.
    ///
    /// Rounded up to the poller's unit. With a shorter timeout the poll would return too early,
    /// find nothing due, and be repeated until the tick begins.
    pub(crate) fn timeout(&self, tick: Tick, now: Moment) -> Duration {
        let left = self.config.duration_of(tick).saturating_sub(now);
        let units = left.as_nanos().div_ceil(POLLER_UNIT.as_nanos());
        u64::try_from(units).map_or(Duration::MAX, Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_timeout_the_tick_has_begun_and_no_whole_unit_is_wasted() {
        for tick_length in [Duration::from_millis(1), Duration::from_micros(700), Duration::from_secs(3)] {
            let config = Config::builder().tick(tick_length).build().expect("a valid tick");
            let clock = Clock::start_now(config);
            for (tick, now) in (0..9).flat_map(|tick| (0..9).map(move |step| (tick, tick_length * step / 3)))
            {
                let wakes = now + clock.timeout(tick, now);
                assert!(clock.reached(wakes) >= tick, "{tick} from {now:?}");
                assert!(
                    wakes.saturating_sub(POLLER_UNIT) < now.max(tick_length * tick as u32) || wakes == now
                );
            }
        }
    }

    #[test]
    fn a_tick_without_end_is_slept_for() {
        let clock = Clock::start_now(Config::default());
        assert!(clock.timeout(Tick::MAX, Duration::ZERO) > Duration::from_secs(u64::from(u32::MAX)));
    }
}

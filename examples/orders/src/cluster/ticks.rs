//! When an owner adds a tick to its log.
//!
//! A tick is of use if the broker's clock is past a check that is due. The owner's own clock says
//! nothing of the broker's, but each message does: its time was the broker's when it was sent. So
//! the broker's clock is at least the message's time plus the time since the message came. The
//! owner keeps the highest of these bounds, and sends a tick when the bound passes what the wheel
//! asks for. A wrong guess costs a message and decides nothing.
//!
//! What an owner reads when it begins is old, and so is that bound. When it has read all of it, it
//! sends a tick, which comes back without delay and so shows the broker's clock.

use std::time::{Duration, Instant};

/// A tick that has not come back for this long is sent again.
const LOST: Duration = Duration::from_millis(250);
/// The pause after a tick that has come back.
const PAUSE: Duration = Duration::from_millis(2);

pub(crate) struct Ticks {
    /// The broker's clock, in ns, was at least this at that instant.
    bound: Option<(Instant, u64)>,
    /// No tick is sent before.
    quiet_until: Instant,
    /// A tick was sent.
    sent: bool,
    /// A message has come after a tick was sent.
    is_fresh: bool,
}

impl Ticks {
    pub(crate) fn new() -> Self {
        Self { bound: None, quiet_until: Instant::now(), sent: false, is_fresh: false }
    }

    /// The owner sends a tick.
    pub(crate) fn send(&mut self) {
        (self.quiet_until, self.sent) = (Instant::now() + LOST, true);
    }

    /// A message has come.
    pub(crate) fn received(&mut self, time: u64) {
        let now = Instant::now();
        if self.bound_at(now).is_none_or(|bound| bound < time) {
            self.bound = Some((now, time));
        }
        if self.sent {
            (self.quiet_until, self.is_fresh) = (now + PAUSE, true);
        }
    }

    fn bound_at(&self, now: Instant) -> Option<u64> {
        let (at, time) = self.bound?;
        Some(time + now.saturating_duration_since(at).as_nanos() as u64)
    }

    /// How long to wait before the next tick, if the log's time has to be `next`, in ms. The owner
    /// has read all that is there.
    pub(crate) fn wait(&self, next: Option<u64>) -> Option<Duration> {
        let now = Instant::now();
        let quiet = self.quiet_until.saturating_duration_since(now);
        if !self.is_fresh {
            return Some(quiet);
        }
        let needed = next?.saturating_mul(1_000_000);
        let passes = Duration::from_nanos(needed.saturating_sub(self.bound_at(now)?));
        Some(quiet.max(passes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_waits_until_the_brokers_clock_has_passed_the_check() {
        let mut ticks = Ticks::new();
        ticks.received(7_000_000);
        assert_eq!(ticks.wait(None), Some(Duration::ZERO), "the first tick, whatever was read before");
        ticks.send();
        assert!(ticks.wait(Some(0)) > Some(PAUSE), "one tick at a time");
        ticks.received(60_000_000_000);
        assert!(ticks.wait(None).is_none(), "nothing is due");
        let wait = ticks.wait(Some(3_660_000)).unwrap();
        assert!((3_500..=3_600).contains(&wait.as_secs()), "{wait:?}");
        ticks.received(1_000_000_000);
        assert!(ticks.wait(Some(3_660_000)).unwrap() <= wait, "a delayed message says nothing new");
        assert!(ticks.wait(Some(60_000)).unwrap() <= PAUSE, "what is overdue waits for nothing");
    }
}

//! When an owner adds a tick to its log.
//!
//! A tick is of use if the broker's clock is past a check that is due. The owner's own clock says
//! nothing of the broker's, but each message does: its time was the broker's when it was sent. So
//! the broker's clock is at least the message's time plus the time since the message came. The owner
//! keeps the highest of these bounds, and sends a tick when the bound passes what the wheel asks for.
//! A wrong guess costs a message and decides nothing.
//!
//! The ticks of an owner have a number that no other owner has. When the first one comes back, the
//! owner has read all that stood in the log when it began. It sends another one at once, which comes
//! back without that delay and so shows the broker's clock.

use std::time::{Duration, Instant};

/// A tick that has not come back for this long is sent again.
const LOST: Duration = Duration::from_millis(250);
/// The pause after a tick that has come back.
const PAUSE: Duration = Duration::from_millis(2);

pub(crate) struct Ticks {
    nonce: u64,
    /// The broker's clock, in ns, was at least this at that instant.
    bound: Option<(Instant, u64)>,
    /// No tick is sent before.
    quiet_until: Instant,
    /// A tick is to be sent in any case.
    wanted: bool,
    /// A tick was sent, and none has come back since.
    away: bool,
    caught_up: bool,
}

impl Ticks {
    pub(crate) fn new() -> Self {
        let (nonce, quiet_until) = (fastrand::u64(..), Instant::now());
        Self { nonce, bound: None, quiet_until, wanted: true, away: false, caught_up: false }
    }

    /// The owner sends a tick with the number that is returned.
    pub(crate) fn send(&mut self) -> u64 {
        (self.quiet_until, self.away) = (Instant::now() + LOST, true);
        self.nonce
    }

    /// A message has come, with the number of a tick. True if the owner has now caught up.
    pub(crate) fn received(&mut self, time: u64, nonce: Option<&[u8]>) -> bool {
        let now = Instant::now();
        if self.bound_at(now).is_none_or(|bound| bound < time) {
            self.bound = Some((now, time));
        }
        if nonce != Some(&self.nonce.to_le_bytes()) {
            return false;
        }
        (self.quiet_until, self.away) = (now + PAUSE, false);
        self.wanted = !self.caught_up;
        !std::mem::replace(&mut self.caught_up, true)
    }

    /// Whether the owner waits for a tick of its own.
    pub(crate) fn is_away(&self) -> bool {
        self.away
    }

    /// How old a message is that has a time, at least.
    pub(crate) fn age(&self, time: u64) -> Duration {
        Duration::from_nanos(self.bound_at(Instant::now()).unwrap_or_default().saturating_sub(time))
    }

    fn bound_at(&self, now: Instant) -> Option<u64> {
        let (at, time) = self.bound?;
        Some(time + now.saturating_duration_since(at).as_nanos() as u64)
    }

    /// How long to wait before the next tick, if the log's time has to be `next`, in ms.
    pub(crate) fn wait(&self, next: Option<u64>) -> Option<Duration> {
        let now = Instant::now();
        let quiet = self.quiet_until.saturating_duration_since(now);
        if self.wanted {
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
    fn an_owner_has_caught_up_when_its_first_tick_comes_back() {
        let mut ticks = Ticks::new();
        assert_eq!(ticks.wait(None), Some(Duration::ZERO), "the first tick");
        let own = ticks.send().to_le_bytes();
        assert!(ticks.wait(Some(0)) > Some(PAUSE) && ticks.is_away(), "one tick at a time");
        assert!(!ticks.received(7_000_000, None) && !ticks.received(7_000_000, Some(b"another")));
        assert!(ticks.received(8_000_000, Some(&own)));
        assert!(ticks.wait(None) <= Some(PAUSE), "the second tick");
        let own = ticks.send().to_le_bytes();
        assert!(!ticks.received(9_000_000, Some(&own)), "only once");
        assert!(ticks.wait(None).is_none() && !ticks.is_away(), "nothing is due");
    }

    #[test]
    fn a_tick_waits_until_the_brokers_clock_has_passed_the_check() {
        let mut ticks = Ticks::new();
        let own = ticks.send().to_le_bytes();
        ticks.received(0, Some(&own));
        ticks.received(60_000_000_000, Some(&own));
        let wait = ticks.wait(Some(3_660_000)).unwrap();
        assert!((3_500..=3_600).contains(&wait.as_secs()), "{wait:?}");
        ticks.received(1_000_000_000, None);
        assert!(ticks.wait(Some(3_660_000)).unwrap() <= wait, "a delayed message says nothing new");
        assert!(ticks.wait(Some(60_000)).unwrap() <= PAUSE, "what is overdue waits for nothing");
    }
}

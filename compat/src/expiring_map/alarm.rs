//! The timer of an entry.
//!
//! An alarm is the *schedule* of a recurring timer whose callback does nothing: the timer asks it
//! when to fire next, and the answer ends the timer or sets it. So one node of the timer serves an
//! entry for its whole life, however often it is extended, and a bound on the timer cannot refuse
//! the next occurrence. A panic in `on_expired` ends the timer, as a panic in any schedule does.

use std::hash::Hash;
use std::sync::Weak;
use std::time::{Duration, Instant};

use shardwheel::Schedule;

use super::ExpiringMap;
use super::table::{Found, Shared};

/// The first pause of an alarm that finds no entry. Each pause is twice the one before, so that an
/// alarm whose caller is stopped for ever costs less and less.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

pub(super) struct Alarm<K: Eq + Hash, V> {
    /// Weak: an alarm does not keep its map.
    map: Weak<Shared<K, V>>,
    key: K,
    version: u64,
    /// `None` if an `Instant` cannot represent it: then the timer refuses the alarm.
    first: Option<Instant>,
    pause: Duration,
}

impl<K: Eq + Hash, V> Alarm<K, V> {
    pub(super) fn new(map: Weak<Shared<K, V>>, key: K, version: u64, first: Option<Instant>) -> Self {
        Self { map, key, version, first, pause: FIRST_PAUSE }
    }
}

impl<K, V> Schedule for Alarm<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn next(&mut self, _previous: Instant) -> Option<Instant> {
        self.first
    }

    fn next_after(&mut self, _previous: Instant, now: Instant) -> Option<Instant> {
        let map = ExpiringMap { shared: self.map.upgrade()? };
        match map.shared.take_expired(&self.key, self.version, map.shared.time(now)) {
            Found::Expired(key, value) => {
                (map.shared.on_expired)(&map, key, value);
                None
            }
            // An extension to a time that no `Instant` represents never ends.
            Found::Later(end) => map.shared.instant(end),
            Found::None => {
                let next = now.checked_add(self.pause);
                self.pause = self.pause.saturating_mul(2);
                next
            }
        }
    }
}

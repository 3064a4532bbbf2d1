//! An entry, and when it ends.
//!
//! Times are nanoseconds of the map's time, which begins when the map is made and is never before
//! that. The greatest `u64` is never.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shardwheel::TimerKey;

/// The end of an entry that a call has found expired. No time is before it, and it does not change.
const EXPIRED: u64 = 0;

/// When an entry of an [`ExpiringMap`](crate::ExpiringMap) expires: a time to live, a time to idle,
/// or both, of which the first to pass counts.
///
/// A `Duration` is a time to live alone. Times of more than 584 years never pass.
///
/// # Examples
///
/// A session ends when its user has been idle for half an hour, and after eight hours at the latest:
///
/// ```
/// use std::time::Duration;
/// use shardwheel::{ManualClock, Timer};
/// use shardwheel_compat::{Expiry, ExpiringMap};
///
/// const MINUTE: Duration = Duration::from_secs(60);
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).build()?;
/// let sessions = ExpiringMap::new(&timer, 100, |_sessions, _id: u32, _user| ());
/// sessions.insert(17, "Ada", Expiry::time_to_idle(30 * MINUTE).within(480 * MINUTE))?;
///
/// for _request in 1..20 {
///     clock.advance(25 * MINUTE);
///     assert_eq!(sessions.get(&17).as_deref(), Some(&"Ada"));
/// }
/// clock.advance(5 * MINUTE); // 480 minutes since the insert
/// assert_eq!(sessions.get(&17), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    live: Duration,
    idle: Duration,
}

impl Expiry {
    /// The entry expires when `idle` has passed since its last use, or since its insert if it is not
    /// used.
    ///
    /// [`get`](crate::ExpiringMap::get) and [`get_and_extend`](crate::ExpiringMap::get_and_extend)
    /// are uses, and no other call is one.
    #[must_use]
    pub const fn time_to_idle(idle: Duration) -> Self {
        Self { live: Duration::MAX, idle }
    }

    /// No use makes the entry last for more than `live` since its insert. (An
    /// [`extend`](crate::ExpiringMap::extend) does.)
    #[must_use]
    pub const fn within(self, live: Duration) -> Self {
        Self { live, ..self }
    }
}

impl From<Duration> for Expiry {
    fn from(live: Duration) -> Self {
        Self { live, idle: Duration::MAX }
    }
}

/// The time that is `by` after `now`.
pub(super) fn after(now: u64, by: Duration) -> u64 {
    now.saturating_add(nanos(by))
}

/// A duration of more than 584 years is never.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) struct Entry<V> {
    pub(super) value: Arc<V>,
    /// When the entry expires, or [`EXPIRED`].
    end: AtomicU64,
    /// No use moves the end beyond this.
    last: u64,
    idle: Duration,
    pub(super) version: u64,
    pub(super) alarm: TimerKey,
}

impl<V> Entry<V> {
    pub(super) fn new(value: V, version: u64, alarm: TimerKey, now: u64, expiry: Expiry) -> Self {
        let (end, last) = (AtomicU64::new(expiry.end(now)), after(now, expiry.live));
        Self { value: Arc::new(value), end, last, idle: expiry.idle, version, alarm }
    }

    /// Returns when the entry expires, if it is alive at `now`, after it was moved to `until` if
    /// that is later.
    ///
    /// This alone decides whether an entry is alive. One that is found expired is so for all later
    /// calls: for one that has read an earlier time as well, also if the clock has gone back.
    ///
    /// Both outcomes of a race are right: an extension before the look of another call is seen by
    /// it, one after a look that has found the entry expired does nothing.
    pub(super) fn alive(&self, now: u64, until: u64) -> Option<u64> {
        // Ordering: Relaxed, here and below: the one word decides, and its changes have one order.
        // The lock of the table orders all else.
        let mut end = self.end.load(Ordering::Relaxed);
        loop {
            let next = if end > now { end.max(until) } else { EXPIRED };
            if next != end {
                let change = self.end.compare_exchange_weak(end, next, Ordering::Relaxed, Ordering::Relaxed);
                if let Err(present) = change {
                    end = present;
                    continue;
                }
            }
            return (next != EXPIRED).then_some(next);
        }
    }

    /// Until when a use at `now` lets the entry last.
    pub(super) fn use_until(&self, now: u64) -> u64 {
        after(now, self.idle).min(self.last)
    }

    /// How long the entry would last; zero if it has expired.
    pub(super) fn remaining(&self, now: u64) -> Duration {
        Duration::from_nanos(self.alive(now, 0).map_or(0, |end| end - now))
    }
}

impl Expiry {
    /// When an entry that is inserted at `now` expires.
    pub(super) fn end(self, now: u64) -> u64 {
        after(now, self.live.min(self.idle))
    }
}

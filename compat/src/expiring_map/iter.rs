//! The calls that go over all entries.
//!
//! They work on the keys that the table has when the call begins, and take the lock for one key at a
//! time, as `get` and `remove` do: the caller's code runs without a lock between two keys. (An
//! iterator of the table itself holds the lock of a part while the loop's body runs.)

use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ExpiringMap;
use super::table::{Entry, drop_each};

/// An entry of an [`ExpiringMap`], as [`iter`](ExpiringMap::iter) shows it and
/// [`drain`](ExpiringMap::drain) takes it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEntry<K, V> {
    /// The key.
    pub key: K,
    /// The value. After a `drain`, [`Arc::into_inner`] takes it, if no reader still holds it.
    pub value: Arc<V>,
    /// When the entry expires, by the timer's clock.
    pub deadline: Instant,
    /// How long that is from the moment at which the iterator came to the entry: what to save, since
    /// an `Instant` cannot be. Zero if the deadline has passed.
    pub remaining: Duration,
}

impl<K: Clone + Eq + Hash, V> ExpiringMap<K, V> {
    /// Yields the entries, in no particular order. It extends none.
    ///
    /// The iterator has the keys of the moment of the call, and reads each entry when it comes to
    /// it: an entry that has expired or was removed by then is left out, one that was replaced or
    /// extended is shown as it is then. An entry that is there all the time is shown once; one with
    /// a new key may be left out. No lock is held between two entries, so the loop may use the map in
    /// any way, and may wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    /// use shardwheel_compat::ExpiringMap;
    ///
    /// let sessions = ExpiringMap::new(Timer::global(), 100, |_sessions, _id: u32, _user| ());
    /// sessions.insert(17, "Ada", Duration::from_secs(60))?;
    /// sessions.insert(18, "Brendan", Duration::from_secs(1_800))?;
    ///
    /// // All that end within two minutes get five more.
    /// for entry in sessions.iter().filter(|entry| entry.remaining < Duration::from_secs(120)) {
    ///     assert_eq!((entry.key, *entry.value), (17, "Ada"));
    ///     assert!(sessions.extend(&entry.key, Duration::from_secs(300)));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// O(room of the table) at the call, which clones each key: it reads one part of the table after
    /// another under its shared lock. Then as [`get`](Self::get) for each entry.
    pub fn iter(&self) -> impl Iterator<Item = MapEntry<K, V>> + '_ {
        self.all_keys().into_iter().filter_map(|key| {
            let now = self.shared.now();
            let entry = self.shared.entries.get(&key)?;
            let is_seen = self.shared.is_seen(&entry, now);
            let shown = is_seen.then(|| (entry.deadline, Arc::clone(&entry.value)));
            drop(entry); // and its lock, before the key
            let (deadline, value) = shown?;
            Some(MapEntry { key, value, deadline, remaining: deadline - now })
        })
    }

    /// Yields the keys, as [`iter`](Self::iter) yields the entries.
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.iter().map(|entry| entry.key)
    }

    /// Removes the entries for which `keep` returns false. `on_expired` is not called for them.
    ///
    /// It comes to the entries as [`iter`](Self::iter) does. `keep` runs without a lock, so it may
    /// use the map in any way, and may wait. An entry that is replaced, or expires, while `keep`
    /// decides on it is not removed: it is another one, or belongs to `on_expired`.
    ///
    /// # Panics
    ///
    /// If `keep` does, or the drop of a value that it removes: the entries that it has not come to
    /// are kept.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    /// use shardwheel_compat::ExpiringMap;
    ///
    /// let sessions = ExpiringMap::new(Timer::global(), 100, |_sessions, _id: u32, _user| ());
    /// sessions.insert(17, "Ada", Duration::from_secs(1_800))?;
    /// sessions.insert(18, "Brendan", Duration::from_secs(1_800))?;
    /// sessions.retain(|_id, user| *user != "Ada"); // logged out on all devices
    /// assert_eq!(sessions.keys().collect::<Vec<_>>(), [18]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// As [`iter`](Self::iter), and a [`remove`](Self::remove) for each entry that goes.
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        for entry in self.iter() {
            if keep(&entry.key, &entry.value) {
                continue;
            }
            let now = self.shared.now();
            let is_right = |present: &Entry<V>| {
                Arc::ptr_eq(&present.value, &entry.value) && self.shared.is_seen(present, now)
            };
            let removed = self.shared.take_if(&entry.key, is_right);
            drop(removed.map(|(_key, entry)| self.shared.value_of_ended(entry)));
        }
    }

    /// Takes all entries out and yields them, in no particular order: to save what is left at the
    /// end, with its remaining time. `on_expired` is not called for them.
    ///
    /// An entry leaves the map when the iterator yields it, so the drop of the iterator loses
    /// nothing: the rest stays. An entry that expires meanwhile, or that another thread removes, comes
    /// out once: here or there. An entry whose key is new may stay. No lock is held between two
    /// entries.
    ///
    /// It also takes out what has expired and is not reported yet, which no other call shows, with
    /// no time [`remaining`](MapEntry::remaining): after a shutdown of the timer nothing would report
    /// it. So `drain` takes out as many entries as [`len`](Self::len) counts.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    /// use shardwheel_compat::ExpiringMap;
    ///
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let sessions = ExpiringMap::new(&timer, 100, |_sessions, _id: u32, _user: Arc<String>| ());
    /// sessions.insert(17, "Ada".to_owned(), Duration::from_secs(1_800))?;
    /// clock.advance(Duration::from_secs(600));
    ///
    /// // At the end of the program. `into_inner` returns `None` if a reader still has the value.
    /// drop(timer.shutdown());
    /// let saved: Vec<(u32, Option<String>, u64)> = sessions
    ///     .drain()
    ///     .map(|entry| (entry.key, Arc::into_inner(entry.value), entry.remaining.as_secs()))
    ///     .collect();
    /// assert_eq!(saved, [(17, Some("Ada".to_owned()), 1_200)]);
    ///
    /// // At the next start.
    /// let sessions = ExpiringMap::new(Timer::global(), 100, |_sessions, _id: u32, _user| ());
    /// for (id, user, seconds) in saved {
    ///     sessions.insert(id, user.unwrap_or_default(), Duration::from_secs(seconds))?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// As [`iter`](Self::iter), and a [`remove`](Self::remove) for each entry.
    pub fn drain(&self) -> impl Iterator<Item = MapEntry<K, V>> + '_ {
        self.all_keys().into_iter().filter_map(|key| {
            let now = self.shared.now();
            let (key, entry) = self.shared.take_if(&key, |_| true)?;
            let deadline = entry.deadline;
            let value = self.shared.value_of_ended(entry);
            Some(MapEntry { key, value, deadline, remaining: deadline.saturating_duration_since(now) })
        })
    }

    /// Removes all entries that the map has at the call, and drops them. `on_expired` is not called
    /// for them, nor for what has expired and is not reported yet.
    ///
    /// # Panics
    ///
    /// If the drop of a key or a value does, after all entries have been removed.
    ///
    /// # Performance
    ///
    /// As [`drain`](Self::drain).
    pub fn clear(&self) {
        drop_each(self.drain().map(|entry| (entry.key, entry.value)));
    }

    /// The keys of the table, those whose entries have expired as well. Clones keys under the lock of
    /// a part of the table; none is dropped there, also if a clone panics.
    fn all_keys(&self) -> Vec<K> {
        let mut keys = Vec::with_capacity(self.len());
        for entry in &self.shared.entries {
            keys.push(entry.key().clone());
        }
        keys
    }
}

//! The calls that go over all entries.
//!
//! They copy the keys that the table has when the call begins, and then use one key at a time, as
//! `peek` and `remove` do: the caller's code runs without a lock between two keys. (An iterator of
//! the table itself holds the lock of a part while the loop's body runs.)

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::ExpiringMap;
use super::table::drop_each;

impl<K: Clone + Eq + Hash, V> ExpiringMap<K, V> {
    /// Yields the entries, in no particular order. That is no use of them: no time to idle begins
    /// anew.
    ///
    /// The iterator has the keys of the moment of the call, and reads each entry when it comes to
    /// it: an entry that has expired or was removed by then is left out, one that was replaced is
    /// shown as it is then. An entry that is there all the time is shown once, and none twice; one
    /// with a new key may be left out. No lock is held between two entries, so the loop may use the
    /// map in any way, and may wait.
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
    /// let mut users: Vec<&str> = sessions.iter().map(|(_id, user)| *user).collect();
    /// users.sort();
    /// assert_eq!(users, ["Ada", "Brendan"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// O(room of the table) at the call, which clones each key into a list: it holds the shared lock
    /// of one part of the table after another, so readers go on, and inserts, removals and reports
    /// of that part wait for O(entries / parts). There are four parts for each core. Then as
    /// [`peek`](Self::peek) for each entry.
    pub fn iter(&self) -> impl Iterator<Item = (K, Arc<V>)> + '_ {
        self.present_keys().into_iter().filter_map(|key| {
            let value = self.peek(&key)?;
            Some((key, value))
        })
    }

    /// Yields the keys, as [`iter`](Self::iter) yields the entries.
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.iter().map(|(key, _)| key)
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
        for (key, value) in self.iter() {
            if !keep(&key, &value) {
                self.shared.remove_if(&key, |entry, remaining| {
                    Arc::ptr_eq(&entry.value, &value) && !remaining.is_zero()
                });
            }
        }
    }

    /// Takes all entries out and yields their keys, their values and how long each would have
    /// lasted, in no particular order: to save what is left at the end. `on_expired` is not called
    /// for them.
    ///
    /// [`Arc::into_inner`] takes a value if no reader holds it.
    ///
    /// An entry leaves the map when the iterator yields it, so the drop of the iterator loses
    /// nothing: the rest stays. An entry that expires meanwhile, or that another thread removes, comes
    /// out once: here or there. An entry whose key is new may stay. No lock is held between two
    /// entries.
    ///
    /// It also takes out an entry whose deadline has passed and that is not reported yet, with no
    /// time left: after a shutdown of the timer nothing would report it. So `drain` takes out as many
    /// entries as [`len`](Self::len) counts.
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
    /// // At the end of the program.
    /// drop(timer.shutdown());
    /// let saved: Vec<(u32, String, u64)> = sessions
    ///     .drain()
    ///     .map(|(id, user, remaining)| (id, user.to_string(), remaining.as_secs()))
    ///     .collect();
    /// assert_eq!(saved, [(17, "Ada".to_owned(), 1_200)]);
    ///
    /// // At the next start.
    /// let sessions = ExpiringMap::new(Timer::global(), 100, |_sessions, _id: u32, _user| ());
    /// for (id, user, seconds) in saved {
    ///     sessions.insert(id, user, Duration::from_secs(seconds))?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// As [`iter`](Self::iter), and a [`remove`](Self::remove) for each entry.
    pub fn drain(&self) -> impl Iterator<Item = (K, Arc<V>, Duration)> + '_ {
        self.present_keys().into_iter().filter_map(|key| self.shared.remove_if(&key, |_, _| true))
    }

    /// Removes all entries that the map has at the call, and drops them. `on_expired` is not called
    /// for them, nor for those whose deadlines have passed and that are not reported yet.
    ///
    /// # Panics
    ///
    /// If the drop of a key or a value does, after all entries have been removed.
    ///
    /// # Performance
    ///
    /// As [`drain`](Self::drain).
    pub fn clear(&self) {
        drop_each(self.drain().map(|(key, value, _)| (key, value)));
    }

    /// The keys of the table, those of expired entries as well. Clones keys under the lock of a part
    /// of the table, and drops none there, also if a clone panics.
    fn present_keys(&self) -> Vec<K> {
        let mut keys = Vec::with_capacity(self.len());
        for entry in &self.shared.entries {
            keys.push(entry.key().clone());
        }
        keys
    }
}

//! The table of the entries, and the steps under the lock of a part of it.

use std::any::Any;
use std::borrow::Borrow;
use std::hash::Hash;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dashmap::mapref::one::Ref;
use dashmap::{DashMap, Entry as Place};
use shardwheel::Timer;

use super::entry::{Entry, nanos};
use super::{ExpiringMap, InsertError, InsertErrorKind};

/// What the handles share.
pub(super) struct Shared<K: Eq + Hash, V> {
    pub(super) timer: Timer,
    pub(super) entries: DashMap<K, Entry<V>>,
    pub(super) limit: usize,
    /// The number of entries. Changed under the lock under which an entry is placed or taken out, so
    /// that an insert of the key finds the room that the key's last entry has left.
    pub(super) len: AtomicUsize,
    pub(super) next_version: AtomicU64,
    /// The map's first moment.
    pub(super) begin: Instant,
    pub(super) on_expired: Box<OnExpired<K, V>>,
}

pub(super) type OnExpired<K, V> = dyn Fn(&ExpiringMap<K, V>, K, Arc<V>) + Send + Sync;

/// What an alarm finds of its entry.
pub(super) enum Found<K, V> {
    /// It had expired, and has left the table.
    Expired(K, Arc<V>),
    /// It has been extended.
    Later(u64),
    /// It is not placed yet, or has left the table.
    None,
}

impl<K: Eq + Hash, V> Shared<K, V> {
    /// The map's time, by the timer's clock.
    pub(super) fn now(&self) -> u64 {
        self.time(self.timer.now())
    }

    /// The map's time at a moment of the timer's clock; before `never`.
    pub(super) fn time(&self, moment: Instant) -> u64 {
        nanos(moment.saturating_duration_since(self.begin)).min(u64::MAX - 1)
    }

    /// The moment of a time, if an `Instant` can represent it.
    pub(super) fn instant(&self, time: u64) -> Option<Instant> {
        self.begin.checked_add(Duration::from_nanos(time))
    }

    /// Lends a living entry, and the time at which it expires once `until` has moved that.
    /// Extensions need no exclusive lock: see [`Entry::alive`].
    pub(super) fn alive<Q>(
        &self,
        key: &Q,
        until: impl FnOnce(&Entry<V>, u64) -> u64,
    ) -> Option<(Ref<'_, K, Entry<V>>, u64)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = self.now();
        let entry = self.entries.get(key)?;
        let end = entry.alive(now, until(&entry, now))?;
        Some((entry, end))
    }

    /// Places an entry, and returns the one that it replaces.
    pub(super) fn place(&self, key: K, entry: Entry<V>) -> Result<Option<Entry<V>>, InsertError<K, V>> {
        let (key, entry) = match self.entries.entry(key) {
            Place::Occupied(mut place) => return Ok(Some(place.insert(entry))),
            Place::Vacant(place) if self.has_room() => {
                place.insert(entry);
                return Ok(None);
            }
            Place::Vacant(place) => (place.into_key(), entry),
        };
        let value = Arc::into_inner(entry.value).expect("what was not placed is not shared");
        Err(InsertError::new(InsertErrorKind::Full { limit: self.limit }, key, value))
    }

    /// Counts one more entry, if there may be one.
    fn has_room(&self) -> bool {
        // Ordering: Relaxed, a count. A thread that knows of an entry's end sees it counted.
        let raise = |len: usize| (len < self.limit).then(|| len + 1);
        self.len.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise).is_ok()
    }

    /// Takes an entry out of the table if `is_right`. Its alarm still has to be cancelled.
    fn take_if<Q>(&self, key: &Q, is_right: impl FnOnce(&Entry<V>) -> bool) -> Option<(K, Entry<V>)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.entries.remove_if(key, |_, entry| {
            let is_taken = is_right(entry);
            // Ordering: Relaxed, see `has_room`.
            self.len.fetch_sub(usize::from(is_taken), Ordering::Relaxed);
            is_taken
        })
    }

    /// Takes out an entry if `is_right`, and returns how long it would have lasted.
    pub(super) fn remove_if<Q>(
        &self,
        key: &Q,
        is_right: impl FnOnce(&Entry<V>, Duration) -> bool,
    ) -> Option<(K, Arc<V>, Duration)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (now, mut remaining) = (self.now(), Duration::ZERO);
        let (key, entry) = self.take_if(key, |entry| {
            remaining = entry.remaining(now);
            is_right(entry, remaining)
        })?;
        Some((key, self.value_of_ended(entry), remaining))
    }

    /// Takes out the entry of an alarm, if it has expired.
    pub(super) fn take_expired(&self, key: &K, version: u64, now: u64) -> Found<K, V> {
        let mut found = Found::None;
        let taken = self.take_if(key, |entry| {
            if entry.version != version {
                return false;
            }
            let end = entry.alive(now, 0);
            found = end.map_or(Found::None, Found::Later);
            end.is_none()
        });
        taken.map_or(found, |(key, entry)| Found::Expired(key, entry.value))
    }

    /// Cancels the alarm of an entry that has left the table.
    pub(super) fn value_of_ended(&self, entry: Entry<V>) -> Arc<V> {
        self.timer.cancel(entry.alarm);
        entry.value
    }
}

impl<K: Eq + Hash, V> Drop for Shared<K, V> {
    /// Cancels the alarms and drops the entries.
    fn drop(&mut self) {
        let entries = mem::take(&mut self.entries);
        self.timer.cancel_batch(entries.iter().map(|entry| entry.alarm));
        drop_each(entries.into_iter().map(|(key, entry)| (key, entry.value)));
    }
}

/// Drops keys and values. The first panic of a drop goes on after the others.
pub(super) fn drop_each<K, V>(entries: impl Iterator<Item = (K, V)>) {
    let mut panics = Vec::new();
    for (key, value) in entries {
        panics.extend(panic_of(|| drop(key)));
        panics.extend(panic_of(|| drop(value)));
    }
    if let Some(panic) = panics.into_iter().next().filter(|_| !thread::panicking()) {
        resume_unwind(panic);
    }
}

fn panic_of(code: impl FnOnce()) -> Option<Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(code)).err()
}

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

use dashmap::{DashMap, Entry as Place};
use shardwheel::{Timer, TimerKey};

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
    /// The last moment at which a call has found an entry expired, in nanoseconds since `begin`.
    pub(super) found: AtomicU64,
    pub(super) on_expired: Box<OnExpired<K, V>>,
}

pub(super) type OnExpired<K, V> = dyn Fn(&ExpiringMap<K, V>, K, Arc<V>) + Send + Sync;

pub(super) struct Entry<V> {
    pub(super) value: Arc<V>,
    pub(super) deadline: Instant,
    /// How long the entry lasts after a `get`, if that extends it.
    pub(super) idle: Option<Duration>,
    pub(super) version: u64,
    pub(super) alarm: TimerKey,
}

impl<V> Entry<V> {
    /// Moves the deadline, if that is later and an `Instant` can represent it.
    pub(super) fn extend(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline.map_or(self.deadline, |later| later.max(self.deadline));
    }
}

/// What an alarm finds of its entry.
pub(super) enum Found<K, V> {
    /// Its deadline had passed: it has left the table.
    Expired(K, Arc<V>),
    /// It has been extended.
    Later(Instant),
    /// It is not placed yet, or has left the table.
    None,
}

impl<K: Eq + Hash, V> Shared<K, V> {
    /// The time by the timer's clock. If that is a user's and goes back, it is no time before one at
    /// which a call has found an entry expired: what has ended for one call has for all later ones.
    pub(super) fn now(&self) -> Instant {
        // Ordering: Relaxed, a time. Calls after the one that has raised it see it.
        let found = Duration::from_nanos(self.found.load(Ordering::Relaxed));
        self.timer.now().max(self.begin + found)
    }

    /// Whether an entry is seen at a time of [`now`](Self::now).
    pub(super) fn is_seen(&self, entry: &Entry<V>, now: Instant) -> bool {
        let is_seen = entry.deadline > now;
        if !is_seen {
            let found = now.saturating_duration_since(self.begin).as_nanos();
            // Ordering: Relaxed, see `now`.
            self.found.fetch_max(u64::try_from(found).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        is_seen
    }

    /// Changes an entry that is seen. The exclusive lock orders it with every call that finds the
    /// entry expired.
    pub(super) fn change<Q, R>(
        &self,
        key: &Q,
        now: Instant,
        change: impl FnOnce(&mut Entry<V>) -> R,
    ) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut entry = self.entries.get_mut(key)?;
        self.is_seen(&entry, now).then(|| change(&mut entry))
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

    /// Takes an entry out of the table if `is_right`.
    pub(super) fn take_if<Q>(
        &self,
        key: &Q,
        is_right: impl FnOnce(&Entry<V>) -> bool,
    ) -> Option<(K, Entry<V>)>
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

    /// Takes out the entry of an alarm, if its deadline has passed.
    pub(super) fn take_expired(&self, key: &K, version: u64, now: Instant) -> Found<K, V> {
        let mut found = Found::None;
        let taken = self.take_if(key, |entry| {
            if entry.version == version && entry.deadline > now {
                found = Found::Later(entry.deadline);
            }
            entry.version == version && entry.deadline <= now
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
    /// Cancels the alarms and drops the entries. The first panic of a drop goes on after the others.
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

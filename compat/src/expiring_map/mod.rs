//! A map whose entries end on time: [`ExpiringMap`].
//!
//! The table is a `DashMap`, because an entry that leaves it is the caller's at once; `papaya` keeps
//! what has left until a batch of it is full, so in a map without traffic a value would outlive its
//! entry.
//!
//! # An entry and its alarm
//!
//! An entry has a version, an end, and an alarm: a timer that holds the entry's key and version
//! (`alarm.rs`). The entry is the truth, the alarm only looks at it. One word of the entry says
//! until when it is alive (`Entry::alive`); calls that read or extend it share the lock of its part
//! of the table, calls that place it or take it out have the lock alone. `now` is read before the
//! lock is taken.
//!
//! | call | no entry | alive at `now` | expired |
//! |---|---|---|---|
//! | `insert` | places one, if there is room | replaces it | replaces it |
//! | `peek`, `deadline`, `iter`, `keys` | none | returns it | none |
//! | `get` | none | moves the end by the time to idle, returns it | none |
//! | `get_and_extend`, `extend` | none | moves the end, returns it | none |
//! | `remove`, `retain` | none | takes it out | none |
//! | `drain`, `clear` | none | takes it out | takes it out |
//! | alarm of this version | looks again | sets itself to the end | takes it out, calls `on_expired` |
//! | alarm of another version | looks again | looks again | looks again |
//!
//! So an entry leaves the table once, and the call that takes it out has its value.
//!
//! - *Insert.* The alarm is scheduled before the entry is placed, because the timer may refuse it.
//!   An alarm that fires in between finds no entry of its version and looks again after a pause.
//! - *Remove, replace.* The alarm is cancelled after the entry has left. One that fires in between
//!   finds no entry of its version. It is cancelled before or during its pause.
//! - *Extend, use.* The alarm keeps its time. When it fires, it finds the later end and goes on to
//!   it: an extension costs no timer operation, however frequent it is, and the report is not later.
//! - *Two inserts of a key.* Each has an alarm of its own. The second to take the lock replaces the
//!   entry of the first and cancels its alarm.
//! - *All entries* (`iter.rs`). The keys are copied, and then each call is one by key: what happens
//!   to an entry meanwhile is one of the cases above.
//!
//! Under a lock run `Hash`, `Eq` and `Clone` of the keys, and no other user code: values are dropped
//! and timers scheduled outside (the timer's clock and a driver's waker are the user's).

mod alarm;
mod entry;
mod error;
mod iter;
mod table;

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use shardwheel::Timer;

use alarm::Alarm;
pub use entry::Expiry;
use entry::{Entry, after};
pub use error::{InsertError, InsertErrorKind};
use table::Shared;

/// A concurrent map whose entries end at their deadlines, whether or not the map is used.
///
/// Each entry has a time to live, a time to idle, or both: an [`Expiry`]. When that has passed,
/// readers do not see the entry any more, and the map calls `on_expired` with its key and value, on
/// a thread of the `Timer`: never early, and at most one tick late, plus the time for which its shard
/// is held up. There is no clean-up to call.
///
/// An entry ends once, and the map then keeps nothing of it. If its deadline has passed,
/// `on_expired` gets its value; if it was [removed](Self::remove), [drained](Self::drain) or replaced
/// by an [insert](Self::insert) before that, the caller gets it; [`retain`](Self::retain) and
/// [`clear`](Self::clear) drop it. An entry whose deadline has passed and that is not reported yet is
/// gone for all calls but three: an insert, `drain` and `clear` take it out, unreported.
///
/// The number of entries is bounded: an insert beyond it is an error, and evicts nothing.
///
/// Clones are handles of the same map. With the last one the map ends: it cancels its timers, and
/// drops the entries without a call of `on_expired`. The map is a handle of its [`Timer`], and has
/// one timer for each entry. After a shutdown of the `Timer`, entries are seen until their deadlines,
/// and are not reported; `drain` hands out all that is left.
///
/// `Hash`, `Eq` and `Clone` of a key run under a lock, and must not use the map; they may panic. All
/// other user code runs without one: `on_expired` may use the map in any way, block, or panic, as
/// any callback of a timer. While it runs, later timers of its shard are late. If it panics, the
/// panic is counted and reported by the `Timer`, and its entry has ended. An executor of it that
/// drops a job unrun leaves that entry unreported: it is not seen any more, and counts until a call
/// takes it out.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use shardwheel::Timer;
/// use shardwheel_compat::ExpiringMap;
///
/// let (ended, report) = mpsc::channel();
/// let sessions = ExpiringMap::new(Timer::global(), 1_000_000, move |_sessions, id, user| {
///     ended.send((id, user)).unwrap();
/// });
/// sessions.insert(17, "Ada", Duration::from_millis(20))?;
/// sessions.insert(18, "Brendan", Duration::from_secs(1_800))?;
///
/// assert_eq!(sessions.get(&17).as_deref(), Some(&"Ada"));
/// assert!(sessions.extend(&17, Duration::from_millis(40))); // she is still here
/// assert_eq!(sessions.remove(&18).as_deref(), Some(&"Brendan")); // he has logged out
///
/// let (id, user) = report.recv()?; // nobody uses the map meanwhile
/// assert_eq!((id, *user), (17, "Ada"));
/// assert_eq!((sessions.get(&17), sessions.len()), (None, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Performance
///
/// O(1), except where a part of the table grows: O(entries / parts), under the lock of that part.
/// The table does not shrink. Each call takes the lock of one part, readers share it, and a report
/// waits for it. An insert allocates the value and a timer.
pub struct ExpiringMap<K: Eq + Hash, V> {
    shared: Arc<Shared<K, V>>,
}

impl<K, V> ExpiringMap<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Makes a map of at most `limit` entries, whose deadlines are timers of `timer`. They are no
    /// members of a group: the handle of a [group](shardwheel::Group) stands for its `Timer`.
    ///
    /// `on_expired` gets the map, and the key and the value of the entry that has expired. The value
    /// is shared with readers that still hold it; [`Arc::into_inner`] takes it if there is none. A
    /// limit of `usize::MAX` is no limit.
    pub fn new(
        timer: &Timer,
        limit: usize,
        on_expired: impl Fn(&Self, K, Arc<V>) + Send + Sync + 'static,
    ) -> Self {
        let (len, next_version) = (AtomicUsize::new(0), AtomicU64::new(0));
        let (timer, on_expired) = (timer.without_group(), Box::new(on_expired));
        let (entries, begin) = (DashMap::new(), timer.now());
        let shared = Shared { timer, entries, limit, len, next_version, begin, on_expired };
        Self { shared: Arc::new(shared) }
    }

    /// Inserts an entry that expires at the end of `expiry`: a `Duration` from now, which is a time to
    /// live, or an [`Expiry`] with a time to idle. Returns the value of the entry that it replaces,
    /// if there is one.
    ///
    /// A replaced entry is not reported by `on_expired`. That holds also for one whose deadline has
    /// passed and which is not reported yet: `on_expired` never begins to report a key whose newer
    /// entry is seen, unless the report had begun before the insert. A time of zero expires at the
    /// next tick at the latest; one of more than 584 years never does.
    ///
    /// # Errors
    ///
    /// [`InsertError`], with the key and the value, if the map is full, or if the `Timer` refuses:
    /// because it has been shut down, is full, or has no memory. What the map has then stays as it
    /// is.
    ///
    /// # Performance
    ///
    /// O(1): the value's box, a recurring timer, and a step under the lock. A replacement also
    /// cancels a timer.
    #[track_caller]
    pub fn insert(
        &self,
        key: K,
        value: V,
        expiry: impl Into<Expiry>,
    ) -> Result<Option<Arc<V>>, InsertError<K, V>> {
        let Shared { timer, next_version, .. } = &*self.shared;
        let (now, expiry) = (self.shared.now(), expiry.into());
        // Ordering: Relaxed, the number alone matters.
        let version = next_version.fetch_add(1, Ordering::Relaxed);
        let first = self.shared.instant(expiry.end(now));
        let alarm = Alarm::new(Arc::downgrade(&self.shared), key.clone(), version, first);
        let alarm = match timer.schedule_with(alarm, || ()) {
            // Cancelled if the entry is not placed, also where a key's `Eq` panics.
            Ok(alarm) => timer.guard(alarm),
            Err(error) => return Err(InsertError::new(InsertErrorKind::Timer(error.kind()), key, value)),
        };
        let replaced = self.shared.place(key, Entry::new(value, version, alarm.key(), now, expiry))?;
        alarm.detach();
        Ok(replaced.map(|entry| self.shared.value_of_ended(entry)))
    }
}

impl<K: Eq + Hash, V> ExpiringMap<K, V> {
    /// Returns the value of a key, until the deadline of its entry. That is a use of the entry: if it
    /// has a [time to idle](Expiry::time_to_idle), that begins anew, in the same step.
    ///
    /// # Performance
    ///
    /// O(1): a reading of the `Timer`'s clock, and a look under the shared lock. Where the entry has a
    /// time to idle, also a compare-and-swap, and no timer operation.
    #[must_use]
    pub fn get<Q>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (entry, _) = self.shared.alive(key, |entry, now| entry.use_until(now))?;
        Some(Arc::clone(&entry.value))
    }

    /// Returns the value of a key as [`get`](Self::get) does, and is no use of the entry.
    ///
    /// # Performance
    ///
    /// O(1): a reading of the `Timer`'s clock, and a look under the shared lock.
    #[must_use]
    pub fn peek<Q>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (entry, _) = self.shared.alive(key, |_, _| 0)?;
        Some(Arc::clone(&entry.value))
    }

    /// Returns the value of a key as [`get`](Self::get) does, and makes its entry last for at least
    /// `ttl` from now, in one step: no entry expires between the two.
    ///
    /// It extends as [`extend`](Self::extend) does: it never shortens the life of an entry, and an
    /// entry that has expired does not come back.
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
    /// let user = sessions.get_and_extend(&17, Duration::from_secs(1_800));
    /// assert_eq!(user.as_deref(), Some(&"Ada"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// As [`extend`](Self::extend).
    #[must_use = "`extend` does it without the value"]
    pub fn get_and_extend<Q>(&self, key: &Q, ttl: Duration) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let until = |entry: &Entry<V>, now| entry.use_until(now).max(after(now, ttl));
        let (entry, _) = self.shared.alive(key, until)?;
        Some(Arc::clone(&entry.value))
    }

    /// Returns when the entry of a key expires; `None` if there is none, or if the system's `Instant`
    /// cannot represent it. It is no use of the entry.
    ///
    /// # Performance
    ///
    /// As [`peek`](Self::peek).
    #[must_use]
    pub fn deadline<Q>(&self, key: &Q) -> Option<Instant>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (_, end) = self.shared.alive(key, |_, _| 0)?;
        self.shared.instant(end)
    }

    /// Makes an entry last for at least `ttl` from now, also beyond its time to live. Returns false
    /// if there is none.
    ///
    /// It never shortens the life of an entry: a deadline that is later already stays. (An insert
    /// replaces it with any deadline.) It is no use of the entry: a time to idle does not begin anew.
    ///
    /// # Performance
    ///
    /// O(1): a reading of the clock and a compare-and-swap under the shared lock, without a timer
    /// operation. The timer of the entry fires at the deadline that it was set to, and goes on to
    /// the present one.
    pub fn extend<Q>(&self, key: &Q, ttl: Duration) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shared.alive(key, |_, now| after(now, ttl)).is_some()
    }

    /// Removes an entry before it expires, and returns its value. `on_expired` is not called for it.
    ///
    /// Returns `None` if there is no entry, or its deadline has passed: then `on_expired` gets it.
    ///
    /// # Performance
    ///
    /// O(1): a reading of the clock, a step under the lock, and the cancel of a timer.
    pub fn remove<Q>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (_key, value, _) = self.shared.remove_if(key, |_, remaining| !remaining.is_zero())?;
        Some(value)
    }

    /// Returns the number of entries, with those whose deadlines have passed and that are not
    /// reported yet. While other threads use the map, it is that of some moment.
    #[must_use]
    pub fn len(&self) -> usize {
        // Ordering: Relaxed, a count.
        self.shared.len.load(Ordering::Relaxed)
    }

    /// Returns whether the map has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the greatest number of entries.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.shared.limit
    }
}

impl<K: Eq + Hash, V> Clone for ExpiringMap<K, V> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Eq + Hash, V> fmt::Debug for ExpiringMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, limit) = (self.len(), self.limit());
        f.debug_struct("ExpiringMap").field("len", &len).field("limit", &limit).finish_non_exhaustive()
    }
}

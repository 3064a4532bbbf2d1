//! A map whose entries end on time: [`ExpiringMap`].
//!
//! The table is a `DashMap`, because an entry that leaves it is the caller's at once; `papaya` keeps
//! what has left until a batch of it is full, so in a map without traffic a value would outlive its
//! entry.
//!
//! # An entry and its alarm
//!
//! An entry has a version, a deadline, and an alarm: a timer that holds the entry's key and version
//! (`alarm.rs`). The entry is the truth, the alarm only looks at it. Each call decides under the
//! lock of the entry's part of the table, in one step; `now` is read before the lock is taken.
//!
//! | call | no entry | deadline after `now` | deadline has passed |
//! |---|---|---|---|
//! | `insert` | places one, if there is room | replaces it | replaces it |
//! | `get`, `deadline` | none | returns it | none |
//! | `extend` | false | moves the deadline | false |
//! | `remove` | none | takes it out | none |
//! | alarm of this version | looks again | sets itself to the deadline | takes it out, calls `on_expired` |
//! | alarm of another version | looks again | looks again | looks again |
//!
//! So an entry leaves the table once, and the call that takes it out has its value.
//!
//! - *Insert.* The alarm is scheduled before the entry is placed, because the timer may refuse it.
//!   An alarm that fires in between finds no entry of its version and looks again after a pause.
//! - *Remove, replace.* The alarm is cancelled after the entry has left. One that fires in between
//!   finds no entry of its version. It is cancelled before or during its pause.
//! - *Extend.* The alarm keeps its time. When it fires, it finds the later deadline and goes on to
//!   it: an extension costs no timer operation, however frequent it is.
//! - *Two inserts of a key.* Each has an alarm of its own. The second to take the lock replaces the
//!   entry of the first and cancels its alarm.
//!
//! Under a lock run `Hash` and `Eq` of the keys, and no other user code: keys are cloned, values
//! dropped and timers scheduled outside (the timer's clock and a driver's waker are the user's).

mod alarm;
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
use shardwheel::{ScheduleErrorKind, Timer};

use alarm::Alarm;
pub use error::{InsertError, InsertErrorKind};
pub use iter::MapEntry;
use table::{Entry, Shared};

/// A longer time to live never ends, as a timer's delay.
const NEVER: Duration = Duration::from_nanos(u64::MAX);

/// A concurrent map whose entries end at their deadlines, whether or not the map is used.
///
/// Each entry has a time to live. When that has passed, readers do not see the entry any more, and
/// the map calls `on_expired` with its key and value, on a thread of the timer: never early, and at
/// most one tick late, plus the time for which its shard is held up. There is no clean-up to call.
///
/// An entry ends once. If its deadline has passed, `on_expired` gets its value; if it was
/// [removed](Self::remove) or replaced by an [insert](Self::insert) before that, the caller gets it.
/// The map then keeps nothing of it. The number of entries is bounded: an insert beyond it is an
/// error, and evicts nothing.
///
/// Clones are handles of the same map. With the last one the map ends: it cancels its timers, and
/// drops the entries without a call of `on_expired`. The map is a handle of its [`Timer`], and has
/// one timer for each entry. After a shutdown of the timer, entries are seen until their deadlines,
/// and are not reported.
///
/// `Hash` and `Eq` of a key run under a lock, and must not use the map. All other user code runs
/// without one: `on_expired` may use the map in any way, block, or panic, as any callback of a
/// timer. While it runs, later timers of its shard are late. If it panics, the panic is counted and
/// reported by the timer, and its entry has ended. An executor of the timer that drops a job unrun
/// leaves that entry unreported: it is not seen any more, and counts until an insert replaces it.
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
    /// members of a group: the handle of a [group](shardwheel::Group) stands for its timer.
    ///
    /// `on_expired` gets the map, and the key and the value of the entry that has expired. The value
    /// is shared with readers that still hold it; [`Arc::into_inner`] takes it if there is none. A
    /// limit of `usize::MAX` is no limit.
    pub fn new(
        timer: &Timer,
        limit: usize,
        on_expired: impl Fn(&Self, K, Arc<V>) + Send + Sync + 'static,
    ) -> Self {
        let (len, next_version, found) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let (timer, on_expired) = (timer.without_group(), Box::new(on_expired));
        let (entries, begin) = (DashMap::new(), timer.now());
        let shared = Shared { timer, entries, limit, len, next_version, begin, found, on_expired };
        Self { shared: Arc::new(shared) }
    }

    /// Inserts an entry that expires when `ttl` has passed from now. Returns the value of the entry
    /// that it replaces, if there is one.
    ///
    /// A replaced entry is not reported by `on_expired`. That holds also for one whose deadline has
    /// passed and which is not reported yet: `on_expired` never begins to report a key whose newer
    /// entry is seen, unless the report had begun before the insert. A time to live of zero expires
    /// at the next tick at the latest; one of more than 584 years never does.
    ///
    /// # Errors
    ///
    /// [`InsertError`], with the key and the value, if the map is full, or if the timer refuses:
    /// because it has been shut down, is full, or has no memory. What the map has then stays as it
    /// is.
    ///
    /// # Performance
    ///
    /// O(1): the value's box, a recurring timer, and a step under the lock. A replacement also
    /// cancels a timer.
    #[track_caller]
    pub fn insert(&self, key: K, value: V, ttl: Duration) -> Result<Option<Arc<V>>, InsertError<K, V>> {
        self.insert_entry(key, value, ttl, None)
    }

    /// Inserts an entry that expires when `idle` has passed since its last [`get`](Self::get), or
    /// from now if there is none: a time to idle.
    ///
    /// Each `get` of it is a [`get_and_extend`](Self::get_and_extend) by `idle`. No other call is a
    /// use of the entry: not [`deadline`](Self::deadline), [`iter`](Self::iter) or
    /// [`retain`](Self::retain). In all else it is as an entry of [`insert`](Self::insert).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    /// use shardwheel_compat::ExpiringMap;
    ///
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let sessions = ExpiringMap::new(&timer, 100, |_sessions, _id: u32, _user| ());
    /// let half_an_hour = Duration::from_secs(1_800);
    /// sessions.insert_idle(17, "Ada", half_an_hour)?;
    /// for _request in 0..3 {
    ///     clock.advance(Duration::from_secs(1_700));
    ///     assert_eq!(sessions.get(&17).as_deref(), Some(&"Ada"));
    /// }
    /// clock.advance(half_an_hour);
    /// assert_eq!(sessions.get(&17), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    ///
    /// # Performance
    ///
    /// As [`insert`](Self::insert). A `get` of the entry is a look under the shared lock, and then a
    /// step under the lock: readers of one entry wait for each other.
    #[track_caller]
    pub fn insert_idle(&self, key: K, value: V, idle: Duration) -> Result<Option<Arc<V>>, InsertError<K, V>> {
        self.insert_entry(key, value, idle, Some(idle))
    }

    #[track_caller]
    fn insert_entry(
        &self,
        key: K,
        value: V,
        ttl: Duration,
        idle: Option<Duration>,
    ) -> Result<Option<Arc<V>>, InsertError<K, V>> {
        let Shared { timer, next_version, .. } = &*self.shared;
        let refused = |kind, key, value| Err(InsertError::new(InsertErrorKind::Timer(kind), key, value));
        let Some(deadline) = deadline(self.shared.now(), ttl) else {
            return refused(ScheduleErrorKind::NoOccurrence, key, value);
        };
        // Ordering: Relaxed, the number alone matters.
        let version = next_version.fetch_add(1, Ordering::Relaxed);
        let alarm = Alarm::new(Arc::downgrade(&self.shared), key.clone(), version, deadline);
        let alarm = match timer.schedule_with(alarm, || ()) {
            // Cancelled if the entry is not placed, also where a key's `Eq` panics.
            Ok(alarm) => timer.guard(alarm),
            Err(error) => return refused(error.kind(), key, value),
        };
        let entry = Entry { value: Arc::new(value), deadline, idle, version, alarm: alarm.key() };
        let replaced = self.shared.place(key, entry)?;
        alarm.detach();
        Ok(replaced.map(|entry| self.shared.value_of_ended(entry)))
    }
}

impl<K: Eq + Hash, V> ExpiringMap<K, V> {
    /// Returns the value of a key, until the deadline of its entry.
    ///
    /// It extends an entry of [`insert_idle`](Self::insert_idle), and no other.
    ///
    /// # Performance
    ///
    /// O(1): a reading of the timer's clock, and a look under the shared lock. An entry of
    /// `insert_idle` also takes a step under the lock.
    #[must_use]
    pub fn get<Q>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = self.shared.now();
        let entry = self.shared.entries.get(key)?;
        if !self.shared.is_seen(&entry, now) {
            return None;
        }
        if entry.idle.is_none() {
            return Some(Arc::clone(&entry.value));
        }
        drop(entry); // and its lock
        self.shared.change(key, now, |entry| {
            entry.extend(entry.idle.and_then(|idle| deadline(now, idle)));
            Arc::clone(&entry.value)
        })
    }

    /// Returns the value of a key, and makes its entry last for at least `ttl` from now, in one step:
    /// an entry that is returned does not expire before that.
    ///
    /// It extends as [`extend`](Self::extend) does, and never shortens. It is a time to idle that each
    /// call names; [`insert_idle`](Self::insert_idle) gives an entry one for all its life.
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
        let now = self.shared.now();
        self.shared.change(key, now, |entry| {
            entry.extend(deadline(now, ttl));
            Arc::clone(&entry.value)
        })
    }

    /// Returns when the entry of a key expires; `None` if there is none.
    ///
    /// # Performance
    ///
    /// As [`get`](Self::get).
    #[must_use]
    pub fn deadline<Q>(&self, key: &Q) -> Option<Instant>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = self.shared.now();
        let entry = self.shared.entries.get(key)?;
        self.shared.is_seen(&entry, now).then_some(entry.deadline)
    }

    /// Makes an entry last for at least `ttl` from now. Returns false if there is none.
    ///
    /// It never shortens the life of an entry: a deadline that is later already stays. (An insert
    /// replaces it with any deadline.)
    ///
    /// # Performance
    ///
    /// O(1): a reading of the clock and a step under the lock, without a timer operation. The timer
    /// of the entry fires at the deadline that it was set to, and goes on to the present one.
    pub fn extend<Q>(&self, key: &Q, ttl: Duration) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now = self.shared.now();
        let Some(deadline) = deadline(now, ttl) else { return false };
        self.shared.change(key, now, |entry| entry.extend(Some(deadline))).is_some()
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
        let now = self.shared.now();
        let (_key, entry) = self.shared.take_if(key, |entry| self.shared.is_seen(entry, now))?;
        Some(self.shared.value_of_ended(entry))
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

/// The deadline of a time to live; `None` if an `Instant` cannot represent it.
fn deadline(now: Instant, ttl: Duration) -> Option<Instant> {
    now.checked_add(ttl.min(NEVER))
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

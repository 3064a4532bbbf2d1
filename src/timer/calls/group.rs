//! Groups of timers that end together.
//!
//! A group is a [`Timer`] handle with a set: what is scheduled through that handle is a member. The
//! set has the members' keys, by numbers that are never used again. A member gets its number,
//! without a key yet, before its timer is scheduled. A callback's [`Membership`] lies beside it in
//! the timer's node, and the membership's drop takes the number out of the set, however the timer
//! ends. A sleep has its membership itself.
//!
//! The node's word decides whether a member fires or is cancelled; the set decides nothing. A key
//! enters the set when the timer has it already ([`Members::fill`]). Before that,
//!
//! - *the timer may have ended*: its number has left the set, and stays out.
//! - *the group may have been cancelled*: the set is empty, so the thread that brings the key
//!   cancels the timer itself. A call that schedules then returns the callback as an error.
//! - *the timer may have been moved to another node, or got another waker*: a cancel by the old
//!   key, or in the middle of the exchange, has missed it. Again the thread that brings the key
//!   cancels it.
//!
//! [`Group::cancel_all`] takes the whole set out under the lock, and then cancels what was in it.
//! No user code and no step of a shard runs under the lock.

mod weak;

use std::ops::Deref;
use std::sync::Arc;

pub use weak::WeakGroup;

use crate::timer::handle::Timer;
use crate::timer::task::{Members, Membership};

/// Timers, sleeps and recurring callbacks that end together: when [`cancel_all`](Self::cancel_all)
/// is called, or when the last handle of the group is dropped. Made by [`Timer::group`].
///
/// A connection, a session or an actor owns a group. A group has all
/// methods of its [`Timer`], and what they schedule is a member of the group. So are the sleeps,
/// timeouts and intervals that they make, but no [`DelayQueue`](crate::DelayQueue).
///
/// A member leaves the group when its callback has run, or was cancelled; one that recurs, when it
/// has ended; a sleep, a timeout or an interval, when it is dropped. A [cancel](Timer::cancel) by
/// its key ends one member, through the group or the `Timer` alike. After a
/// [reschedule](Timer::reschedule_after) a member is still one.
///
/// # Handles
///
/// Clones of a group are handles of the same group. A handle also keeps the `Timer` from being shut
/// down, as a [`Timer`] does. A callback that holds a handle of its own group keeps the group: a
/// recurring one does so until the group is cancelled, so that dropping the others ends nothing. A
/// clone of the group's [`Timer`], and a [`WeakTimer`](crate::WeakTimer) that the group was
/// [downgraded](Timer::downgrade) to, do not keep the group. What they schedule is a member too;
/// once the group has ended, they refuse it as [`Cancelled`](crate::ScheduleErrorKind::Cancelled).
/// A group of a group is independent of it. A [`shutdown`](Timer::shutdown) by any of these handles
/// ends the group alone: it returns the callbacks of its members, sleeps are woken, and what is
/// scheduled after it is refused, as when the last handle is dropped.
///
/// # What counts members alone
///
/// [`len`](Self::len), [`cancel_all`](Self::cancel_all), [`shutdown`](Timer::shutdown) and, with the
/// feature `introspect`, `pending`. [`stats`](Timer::stats), [`report`](Timer::report),
/// [`shards`](Timer::shards) and [`now`](Timer::now) are those of the whole `Timer`. The methods
/// that take a key find each of its timers, a member or not.
///
/// # Examples
///
/// A connection with an idle timeout and a ping. Each ping starts a member of its own, through a
/// handle that keeps neither the group nor the `Timer`:
///
/// ```
/// use std::time::Duration;
/// use shardwheel::{Group, ManualClock, Timer, TimerKey};
///
/// struct Connection {
///     timers: Group,
///     idle: TimerKey,
/// }
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).build()?;
/// let timers = timer.group();
/// let idle = timers.schedule_after(Duration::from_secs(60), || println!("idle: close"))?;
/// let weak = timers.downgrade();
/// timers.schedule_every(Duration::from_secs(20), move || {
///     let Some(timers) = weak.upgrade() else { return };
///     let _ = timers.schedule_after(Duration::from_secs(15), || println!("no answer to the ping"));
/// })?;
/// let connection = Connection { timers, idle };
///
/// clock.advance(Duration::from_secs(50)); // the second ping waits for its answer
/// timer.reschedule_after(connection.idle, Duration::from_secs(60)).expect("it is pending");
/// assert_eq!((connection.timers.len(), timer.stats().pending), (3, 3));
/// drop(connection); // ends all three
/// assert_eq!(timer.stats().pending, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A sleep:
///
/// ```
/// use std::time::Duration;
/// use shardwheel::{ScheduleErrorKind, Timer};
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let timer = Timer::new()?;
/// let group = timer.group();
/// let sleep = group.sleep(Duration::from_secs(3600));
/// std::thread::spawn(move || drop(group));
/// assert_eq!(block_on(sleep).unwrap_err().kind(), ScheduleErrorKind::Cancelled);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Performance
///
/// A member costs what it costs without a group, and three uses of the group's lock: two when it is
/// scheduled, one when it ends. Its callback is boxed. All this is O(1), amortised over the
/// members: the set grows and shrinks with their number. The lock is held for a few steps, never
/// while user code runs or a shard is used. But a thread that the system stops under the lock
/// delays the others that use *this* group, and the `Timer`'s thread at a member of it. Timers
/// without a group take no lock.
///
/// On a loaded machine with two cores, one thread, 100,000 members, the least of 45 runs: a
/// callback that is scheduled and fires takes 430 ns in a group and 200 ns without one; scheduled
/// and cancelled at once, 130 and 50 ns. `cancel_all` takes 110 ns a member, and
/// [`cancel_batch`](Timer::cancel_batch) of timers without a group 26 ns.
#[derive(Clone, Debug)]
pub struct Group {
    owner: Arc<Owner>,
}

impl Timer {
    /// Returns a new, empty [`Group`] of timers that end together.
    ///
    /// # Performance
    ///
    /// O(1), two small allocations.
    #[must_use]
    pub fn group(&self) -> Group {
        let members = Arc::<Members>::default();
        let timer = Self { members: Some(Arc::clone(&members)), ..self.clone() };
        Group { owner: Arc::new(Owner { timer, members }) }
    }

    /// Returns a handle of the `Timer` itself: what it schedules is no member of a group. For a
    /// handle without a group, it is a clone.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    ///
    /// let timer = Timer::new()?;
    /// let group = timer.group();
    /// let key = group.without_group().schedule_after(Duration::from_secs(60), || ())?;
    /// drop(group);
    /// assert!(timer.is_pending(key));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn without_group(&self) -> Self {
        Self { members: None, ..self.clone() }
    }

    /// A new membership, if the handle is that of a group. Boxed, so that other sleeps are small.
    pub(crate) fn membership(&self) -> Option<Box<Membership>> {
        self.members.as_ref().map(|members| Box::new(members.join()))
    }
}

impl Group {
    /// Cancels all members, and returns how many will not fire (again) because of that.
    ///
    /// Of a member, the answer is that of [`Timer::cancel`]: it is final at once, and does not
    /// count a member that is being fired. A recurring callback that is running does not recur.
    /// One whose schedule call has not returned yet is an exception: it may recur until that
    /// returns. Sleeps are woken and resolve to an [error](crate::ScheduleErrorKind::Cancelled),
    /// unless their deadline has passed when they are polled. They stay cancelled after a reset. A
    /// sleep that has not been polled yet has no timer and is not counted. A callback that the
    /// `Timer` has passed to an executor is being fired, unless it recurs: then it is cancelled,
    /// and does not run.
    ///
    /// The group can be used again: the call does not affect what is scheduled after it. A call
    /// that is scheduling a member meanwhile may return an
    /// [error](crate::ScheduleErrorKind::Cancelled), with the callback. A member that another
    /// thread is rescheduling meanwhile is cancelled, but not always counted: the reschedule then
    /// returns `None`.
    ///
    /// It may be called from anywhere, also from a member's callback or the drop of one.
    ///
    /// # Panics
    ///
    /// As [`Timer::cancel_batch`], and likewise if a sleep's waker panics: all members are
    /// cancelled.
    ///
    /// # Performance
    ///
    /// O(members). The lock is held for O(1).
    pub fn cancel_all(&self) -> usize {
        self.owner.cancel_all()
    }

    /// Returns the number of members.
    ///
    /// # Performance
    ///
    /// O(1). It takes the group's lock.
    #[must_use]
    pub fn len(&self) -> usize {
        self.owner.members.len()
    }

    /// Returns whether the group has no members; as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The timer, by a handle whose timers are members of the group.
impl Deref for Group {
    type Target = Timer;

    fn deref(&self) -> &Timer {
        &self.owner.timer
    }
}

/// What the handles of a group share.
#[derive(Debug)]
struct Owner {
    /// A handle with the group's members.
    timer: Timer,
    members: Arc<Members>,
}

impl Owner {
    fn cancel_all(&self) -> usize {
        self.timer.cancel_batch(self.members.take_keys())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let keys = self.members.end();
        self.timer.first_shard().guard.run(None, || self.timer.cancel_batch(keys));
    }
}

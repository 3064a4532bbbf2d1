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

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::Deref;
use std::sync::Arc;

pub use weak::WeakGroup;

use super::Timer;
use super::inline::{Inline, Kind, Occasion, Run};
use super::key::TimerKey;
use super::shard_handle::ShardHandle;
use super::task::Task;
use super::time::{Nanos, Time};
use crate::clock::unpoisoned;
use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::shard::{Key, Stopped, Tag};
use crate::sync::{Mutex, MutexGuard};
use crate::tick::Tick;

/// Timers, sleeps and recurring callbacks that end together: when [`cancel_all`](Self::cancel_all)
/// is called, or when the last handle of the group is dropped. Made by [`Timer::group`].
///
/// A connection, a session or an actor owns a group. A group is used as its [`Timer`] is: it has
/// all methods of a [`Timer`], and what they schedule is a member of the group. So are the sleeps,
/// timeouts and intervals that they make, but no [`DelayQueue`](crate::DelayQueue).
///
/// A member leaves the group when its callback has run, or was cancelled; one that recurs, when it
/// has ended; a sleep, a timeout or an interval, when it is dropped. A [cancel](Timer::cancel) by
/// its key ends one member, through the group or the timer alike. After a
/// [reschedule](Timer::reschedule_after) a member is still one.
///
/// # Handles
///
/// Clones of a group are handles of the same group. A handle also keeps the timer from being shut
/// down, as a [`Timer`] does. A callback that holds a handle of its own group keeps the group: a
/// recurring one does so until the group is cancelled, so that dropping the others ends nothing. A
/// clone of the group's [`Timer`], and a [`WeakTimer`](crate::WeakTimer) that the group was
/// [downgraded](Timer::downgrade) to, do not keep the group. What they schedule is a member too;
/// once the group has ended, they refuse it as [`Cancelled`](crate::ScheduleErrorKind::Cancelled).
/// A group of a group is independent of it. A [`shutdown`](Timer::shutdown) by any of these handles
/// ends the group alone: it returns the callbacks of its members, sleeps are woken, and what is
/// scheduled after it is refused, as when the last handle is dropped. What a [`Timer`] says of
/// itself as a whole, such as [`stats`](Timer::stats), is that of the whole timer.
///
/// # Examples
///
/// A connection with an idle timeout and a ping. Each ping starts a member of its own, through a
/// handle that keeps neither the group nor the timer:
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
/// delays the others that use *this* group, and the timer's thread at a member of it. Timers
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

    /// Returns a handle of the timer itself: what it schedules is no member of a group. For a handle
    /// that is that of no group, it is a clone.
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
    /// count a member that is being fired. A recurring callback that is running does not recur, but
    /// one that runs before the call that schedules it has returned may recur until that returns.
    /// Sleeps are woken and resolve to an [error](crate::ScheduleErrorKind::Cancelled), unless
    /// their deadline has passed when they are polled. They stay cancelled after a reset. A sleep
    /// that has not been polled yet has no timer and is not counted. A callback that the timer has
    /// passed to an executor is being fired, unless it recurs: then it is cancelled, and does not run.
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
        self.owner.members.lock().keys.len()
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
        self.timer.first_shard().guard(None, || self.timer.cancel_batch(keys));
    }
}

/// What a group and its members share.
#[derive(Default)]
pub(crate) struct Members(Mutex<Set>);

#[derive(Default)]
struct Set {
    /// The members' keys by their numbers; `None` for a member that has no timer yet. The numbers
    /// are the group's own, so the hasher need not be random, and the order is the same in each
    /// run.
    keys: HashMap<u64, Option<TimerKey>, BuildHasherDefault<DefaultHasher>>,
    /// The last member's number.
    last: u64,
    /// Whether the group's last handle has been dropped.
    has_ended: bool,
}

/// How many members there are, not each one's key.
impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Members({})", self.lock().keys.len())
    }
}

impl Members {
    fn lock(&self) -> MutexGuard<'_, Set> {
        unpoisoned(self.0.lock())
    }

    /// Empties the group, and returns the keys of its members.
    fn take_keys(&self) -> impl Iterator<Item = TimerKey> + use<> {
        std::mem::take(&mut self.lock().keys).into_values().flatten()
    }

    /// Ends the group, and returns the keys of its members.
    pub(super) fn end(&self) -> impl Iterator<Item = TimerKey> + use<> {
        self.lock().has_ended = true;
        self.take_keys()
    }

    /// Makes a member. In a group that has ended, it is cancelled at once.
    pub(crate) fn join(self: &Arc<Self>) -> Membership {
        let mut set = self.lock();
        set.last += 1;
        let number = set.last;
        if !set.has_ended {
            set.keys.insert(number, None);
        }
        Membership { members: Arc::clone(self), number }
    }

    /// Notes the key that a member's timer has from now on. If the group was cancelled before that,
    /// cancels the timer and returns its task, unless that has ended or is out, being run.
    pub(crate) fn fill(&self, number: u64, handle: &ShardHandle, key: TimerKey) -> Option<Task> {
        if let Some(place) = self.lock().keys.get_mut(&number) {
            *place = Some(key);
            return None;
        }
        if let Stopped::Pending(task) = handle.scheduler.stop(key.key()) { Some(task) } else { None }
    }

    /// Schedules a task as a member. If it is refused, or the group is cancelled meanwhile, the
    /// error returns it.
    pub(super) fn schedule(
        self: &Arc<Self>,
        handle: &ShardHandle,
        tag: Tag,
        tick: Tick,
        task: Task,
    ) -> Result<Key, ScheduleError<Task>> {
        let (recurs, membership) = (task.recurs(), self.join());
        let (number, task) = (membership.number, Box::new(task));
        let scheduled = handle
            .scheduler
            .schedule_by(tag, tick, || Task::Callback(Inline::hold(Member { membership, task })));
        let filled = scheduled.and_then(|key| match self.fill(number, handle, TimerKey::new(key, recurs)) {
            Some(member) => Err(ScheduleError::new(ScheduleErrorKind::Cancelled, member)),
            None => Ok(key),
        });
        filled.map_err(|refused| refused.map(|member| *member.into_content::<Member>().task))
    }
}

/// A membership. The drop ends it.
pub(crate) struct Membership {
    pub(crate) members: Arc<Members>,
    pub(crate) number: u64,
}

impl Membership {
    /// Whether the member was cancelled with its group.
    pub(crate) fn is_cancelled(&self) -> bool {
        !self.members.lock().keys.contains_key(&self.number)
    }
}

impl Drop for Membership {
    /// The set shrinks when it has room for eight times its members, to twice: many have left by
    /// then, so the cost for each of them is O(1).
    fn drop(&mut self) {
        let keys = &mut self.members.lock().keys;
        keys.remove(&self.number);
        if keys.len() < keys.capacity() / 8 {
            keys.shrink_to(2 * keys.len());
        }
    }
}

/// The task of a member in the group's own. The membership is dropped first: the task's drop is
/// user code.
pub(super) struct Member {
    pub(super) membership: Membership,
    task: Box<Task>,
}

impl Run for Member {
    fn kind(&self) -> Kind {
        self.task.kind()
    }

    fn run(&mut self, occasion: Occasion<'_>) {
        self.task.run(occasion);
    }

    fn next(&mut self, due: Tick, time: &Time, now: std::time::Instant) -> Option<Nanos> {
        self.task.callback_mut()?.next(due, time, now)
    }

    fn drop_schedule(&mut self) {
        self.task.callback_mut().into_iter().for_each(Run::drop_schedule);
    }
}

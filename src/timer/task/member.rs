//! The members of a group: the set of their keys, and the membership of each.
//!
//! A member gets its number, without a key yet, before its timer is scheduled. Its [`Membership`]
//! lies beside its callback in the timer's node, or in its sleep, and the membership's drop takes
//! the number out of the set, however the timer ends. See [`group`](crate::timer::Group).

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use super::body::{RunContext, TaskBody, TaskKind};
use super::inline::Inline;
use super::payload::Task;
use crate::clock::unpoisoned;
use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::shard::{Key, Scheduler, Stopped, Tag};
use crate::sync::{Mutex, MutexGuard};
use crate::tick::Tick;
use crate::time::Instant;
use crate::timer::key::TimerKey;
use crate::timer::time::{Nanos, Time};

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
    /// How many there are.
    pub(in crate::timer) fn len(&self) -> usize {
        self.lock().keys.len()
    }

    /// The keys of those that have a timer.
    #[cfg(feature = "introspect")]
    pub(in crate::timer) fn keys(&self) -> Vec<TimerKey> {
        self.lock().keys.values().copied().flatten().collect()
    }

    /// Empties the group, and returns the keys of its members.
    pub(in crate::timer) fn take_keys(&self) -> impl Iterator<Item = TimerKey> + use<> {
        std::mem::take(&mut self.lock().keys).into_values().flatten()
    }

    /// Ends the group, and returns the keys of its members.
    pub(in crate::timer) fn end(&self) -> impl Iterator<Item = TimerKey> + use<> {
        self.lock().has_ended = true;
        self.take_keys()
    }

    fn lock(&self) -> MutexGuard<'_, Set> {
        unpoisoned(self.0.lock())
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
    pub(crate) fn fill(&self, number: u64, scheduler: &Scheduler<Task>, key: TimerKey) -> Option<Task> {
        if let Some(place) = self.lock().keys.get_mut(&number) {
            *place = Some(key);
            return None;
        }
        if let Stopped::Pending(task) = scheduler.stop(key.key()) { Some(task) } else { None }
    }

    /// Schedules a task as a member. If it is refused, or the group is cancelled meanwhile, the
    /// error returns it.
    pub(in crate::timer) fn schedule(
        self: &Arc<Self>,
        scheduler: &Scheduler<Task>,
        tag: Tag,
        tick: Tick,
        task: Task,
    ) -> Result<Key, ScheduleError<Task>> {
        let (recurs, membership) = (task.recurs(), self.join());
        let (number, task) = (membership.number, Box::new(task));
        let scheduled =
            scheduler.schedule_by(tag, tick, || Task::Callback(Inline::hold(Member { membership, task })));
        let filled =
            scheduled.and_then(|key| match self.fill(number, scheduler, TimerKey::new(key, recurs)) {
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
    /// That of a callback.
    pub(in crate::timer) fn of(task: &Task) -> Option<&Self> {
        task.content().map(|member: &Member| &member.membership)
    }

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
struct Member {
    membership: Membership,
    task: Box<Task>,
}

impl TaskBody for Member {
    fn kind(&self) -> TaskKind {
        self.task.kind()
    }

    fn run(&mut self, context: RunContext<'_>) {
        self.task.run(|| context);
    }

    fn next(&mut self, due: Tick, time: &Time, now: Instant) -> Option<Nanos> {
        self.task.callback_mut()?.next(due, time, now)
    }

    fn drop_schedule(&mut self) {
        self.task.callback_mut().into_iter().for_each(TaskBody::drop_schedule);
    }
}

//! The parts of a shard that `Timer` is built on, for the models. Modules of the crate itself, with
//! the cfgs of models alone. Not part of the API: it changes without notice.

#![allow(clippy::new_without_default, reason = "a model makes it where it says so")]

pub mod drivers;
mod parts;
pub mod tasks;

/// The way of values through a [`DelayQueue`](crate::DelayQueue).
pub mod delay_queue {
    pub use crate::delay_queue::model::{Queue, Records};
}

#[cfg(shardwheel_shuttle)]
pub use crate::sync::VirtualClock;
pub use parts::{FreeNodes, LoneEpochs, LoneNode, LoneSlab, Pinnable, SegmentTaker, SlabUser};

use crate::shard::{self, Advancer, Key, Scheduler};
use crate::tick::Tick;

/// The outcome of a stop.
#[derive(Debug)]
pub enum StopAnswer<T> {
    /// The timer was pending; its payload.
    Pending(T),
    /// The timer's payload is out and being run: this occurrence is the last.
    Running,
    /// No such timer exists any more.
    Gone,
}

/// A timer that is due.
#[derive(Debug)]
pub struct DueTimer<T> {
    /// The tick at which this occurrence was due.
    pub deadline: Tick,
    /// What it carries.
    pub payload: T,
    /// Of a timer that recurs: the caller rearms or ends it.
    pub running: Option<RunningTimer>,
}

/// The right to a recurring timer's node while the payload is out.
#[derive(Debug)]
#[must_use = "the timer's node is kept until the timer is armed anew or ended"]
pub struct RunningTimer(shard::RearmTicket);

/// Lets producers hold the node of a timer that they cancel for their next timer, as they do
/// outside of models. Call it before anything else.
pub fn let_producers_reuse<T>(scheduler: &Scheduler<T>) {
    scheduler.let_producers_reuse();
}

/// Calls `Scheduler::is_pending`.
pub fn is_pending<T>(scheduler: &Scheduler<T>, key: Key) -> bool {
    scheduler.is_pending(key)
}

/// Calls `Scheduler::stop`.
pub fn stop<T>(scheduler: &Scheduler<T>, key: Key) -> StopAnswer<T> {
    match scheduler.stop(key) {
        shard::Stopped::Pending(payload) => StopAnswer::Pending(payload),
        shard::Stopped::Running => StopAnswer::Running,
        shard::Stopped::Gone => StopAnswer::Gone,
    }
}

/// Calls `Scheduler::is_stopped`.
pub fn is_stopped<T>(scheduler: &Scheduler<T>, key: Key) -> bool {
    scheduler.is_stopped(key)
}

/// Calls `Scheduler::relocate`.
pub fn relocate_recurring<T>(scheduler: &Scheduler<T>, key: Key, deadline: Tick) -> Option<Key> {
    scheduler.relocate(key, deadline, |_| (), |moved| moved)
}

/// Calls `Advancer::move_to`.
pub fn move_to<T>(advancer: &mut Advancer<T>, now: Tick) {
    advancer.move_to(now);
}

/// Calls `Advancer::take_due`.
pub fn next_due<T>(advancer: &mut Advancer<T>, recurs: impl Fn(&T) -> bool) -> Option<DueTimer<T>> {
    let shard::Due { deadline, payload, ticket, .. } = advancer.take_due(recurs)?;
    Some(DueTimer { deadline, payload, running: ticket.map(RunningTimer) })
}

/// Calls `Advancer::rearm`.
///
/// # Errors
///
/// The payload, if the timer was stopped meanwhile.
pub fn rearm<T>(
    advancer: &mut Advancer<T>,
    RunningTimer(running): RunningTimer,
    deadline: Tick,
    payload: T,
) -> Result<(), T> {
    advancer.rearm(running, deadline, payload)
}

/// Calls `Advancer::end_running`.
pub fn end_running<T>(advancer: &mut Advancer<T>, RunningTimer(running): RunningTimer) {
    advancer.end_running(running);
}

/// Calls `Advancer::end_drain`.
pub fn end_drain<T>(advancer: &mut Advancer<T>) {
    advancer.end_drain();
}

//! What the upper floor is built on, within reach of the models. Not part of the API: it changes without notice.

mod parts;

pub use parts::{Epochs, FreeNodes, Grace, List, Node, Participant};

use crate::shard::{self, Advancer, Fired, Key, Scheduler};
use crate::tick::Tick;

/// How a timer was stopped.
#[derive(Debug)]
pub enum Stopped<T> {
    /// It was pending; its payload.
    Pending(T),
    /// Its payload is out, being run: this occurrence is the last.
    Running,
    /// There was no such timer any more.
    Gone,
}

/// A timer that is due.
#[derive(Debug)]
pub enum Due<T> {
    /// It has fired, and that was all.
    Fired(Fired<T>),
    /// It is to be armed anew, or ended.
    Recurring(RearmTicket, T),
}

/// The right to a recurring timer's node while the payload is out.
#[derive(Debug)]
#[must_use = "the timer's node is kept until the timer is armed anew or ended"]
pub struct RearmTicket(shard::RearmTicket);

impl RearmTicket {
    /// The timer's key.
    #[must_use]
    pub fn key(&self) -> Key {
        self.0.key()
    }

    /// The tick that this occurrence was due at.
    #[must_use]
    pub fn deadline(&self) -> Tick {
        self.0.deadline()
    }
}

/// Has producers keep the node of a timer that they cancel for their next one, as they do outside of models; to be
/// called first of all.
pub fn let_producers_hold<T>(scheduler: &Scheduler<T>) {
    scheduler.let_producers_hold();
}

/// `Scheduler::is_pending`.
#[must_use]
pub fn is_pending<T>(scheduler: &Scheduler<T>, key: Key) -> bool {
    scheduler.is_pending(key)
}

/// `Scheduler::stop`.
#[must_use]
pub fn stop<T>(scheduler: &Scheduler<T>, key: Key) -> Stopped<T> {
    match scheduler.stop(key) {
        shard::Stopped::Pending(payload) => Stopped::Pending(payload),
        shard::Stopped::Running => Stopped::Running,
        shard::Stopped::Gone => Stopped::Gone,
    }
}

/// `Scheduler::relocate_recurring`.
#[must_use]
pub fn relocate_recurring<T>(scheduler: &Scheduler<T>, key: Key, deadline: Tick) -> Option<Key> {
    scheduler.relocate_recurring(key, deadline)
}

/// `Advancer::move_to`.
pub fn move_to<T>(advancer: &mut Advancer<T>, now: Tick) {
    advancer.move_to(now);
}

/// `Advancer::next_due`.
#[must_use]
pub fn next_due<T>(advancer: &mut Advancer<T>, recurs: impl Fn(&T) -> bool) -> Option<Due<T>> {
    advancer.next_due(recurs).map(|due| match due {
        shard::Due::Fired(fired) => Due::Fired(fired),
        shard::Due::Recurring(running, payload) => Due::Recurring(RearmTicket(running), payload),
    })
}

/// `Advancer::rearm`.
///
/// # Errors
///
/// The payload, if the timer was stopped meanwhile.
pub fn rearm<T>(
    advancer: &mut Advancer<T>,
    RearmTicket(running): RearmTicket,
    deadline: Tick,
    payload: T,
) -> Result<(), T> {
    advancer.rearm(running, deadline, payload)
}

/// `Advancer::end_running`.
pub fn end_running<T>(advancer: &mut Advancer<T>, RearmTicket(running): RearmTicket) {
    advancer.end_running(running);
}

/// `Advancer::end_drain`.
pub fn end_drain<T>(advancer: &mut Advancer<T>) {
    advancer.end_drain();
}

/// `Advancer::is_sweeping`.
#[must_use]
pub fn is_sweeping<T>(advancer: &Advancer<T>) -> bool {
    advancer.is_sweeping()
}

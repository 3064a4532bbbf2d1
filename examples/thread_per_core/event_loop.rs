//! The pattern: one thread, one poller, one shard.
//!
//! Each round of a thread has three steps:
//!
//! 1. [`sleep`](EventLoop::sleep): register the waker with the shard, ask it for its next
//!    expiration, and poll until then;
//! 2. [`fire`](EventLoop::fire): advance the shard to the present, and handle the timers that are
//!    due;
//! 3. handle the sockets that are [`ready`](EventLoop::ready).
//!
//! Why no timer is slept through: the waker is registered before the shard is asked. A timer that
//! is scheduled before the answer is part of the answer. An earlier timer that is scheduled after
//! the answer wakes the poller, even a poller that has not begun to poll: its poll then returns at
//! once. A wake uses the waker up, so each round registers it again.
//!
//! Why the sockets come after the timers: between `next_expiration` and `advance` the shard treats
//! its thread as asleep. If a loop handled its sockets in between, and they scheduled an earlier
//! timer, the loop would wake itself and make one more round for nothing.
//!
//! Other threads have a [`Handle`]. They schedule through it, and need not know about the poller.

use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};

use mio::{Events, Poll, Registry, Token};
use shardwheel::{Advancer, Fired, Key, ScheduleError, Scheduler, shard};

use super::clock::{Clock, Moment};

/// Readiness events per poll; further events wait for the next round.
const EVENTS: usize = 256;
/// The poller's token of a wake by another thread. Sockets have other tokens.
const WAKE: Token = Token(usize::MAX);

/// A thread's poller and its shard.
pub(crate) struct EventLoop<T> {
    poll: Poll,
    events: Events,
    advancer: Advancer<T>,
    waker: Waker,
    clock: Clock,
}

impl<T: Send> EventLoop<T> {
    /// A poller and a shard that wakes it, and the handle for other threads.
    pub(crate) fn new(clock: &Clock) -> io::Result<(Self, Handle<T>)> {
        let poll = Poll::new()?;
        let alarm = Arc::new(Alarm(mio::Waker::new(poll.registry(), WAKE)?));
        let (scheduler, advancer) = shard(clock.config());
        let waker = Waker::from(Arc::clone(&alarm));
        let handle = Handle { scheduler, alarm, clock: clock.clone() };
        let events = Events::with_capacity(EVENTS);
        Ok((Self { poll, events, advancer, waker, clock: clock.clone() }, handle))
    }

    /// The registry for sockets; any token but the greatest is free.
    pub(crate) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Polls until a socket is ready, a timer may be due, or another thread wakes this one.
    pub(crate) fn sleep(&mut self) -> io::Result<()> {
        self.advancer.register_waker(&self.waker);
        let next = self.advancer.next_expiration();
        let timeout = next.map(|tick| self.clock.timeout(tick, self.clock.now()));
        match self.poll.poll(&mut self.events, timeout) {
            // A signal ended the poll: a round with nothing ready.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            result => result,
        }
    }

    /// Passes each due timer to `handle`, which may schedule others, and returns their number.
    pub(crate) fn fire(&mut self, mut handle: impl FnMut(Fired<T>)) -> usize {
        let now = self.clock.reached(self.clock.now());
        self.advancer.advance(now).map(&mut handle).count()
    }

    /// The sockets that the last sleep found ready.
    pub(crate) fn ready(&self) -> impl Iterator<Item = Token> {
        self.events.iter().map(|event| event.token()).filter(|&token| token != WAKE)
    }

    /// Whether another thread ended the last sleep.
    pub(crate) fn was_woken(&self) -> bool {
        self.events.iter().any(|event| event.token() == WAKE)
    }

    /// Ends the shard, and returns the payloads that have not fired.
    pub(crate) fn end(self) -> impl Iterator<Item = T> {
        self.advancer.into_pending().map(|(_, payload)| payload)
    }
}

/// The operations that any thread may perform on another thread's loop.
pub(crate) struct Handle<T> {
    scheduler: Scheduler<T>,
    alarm: Arc<Alarm>,
    clock: Clock,
}

impl<T> Handle<T> {
    /// Schedules a timer on that thread's shard. If the timer is due before the time until which
    /// the thread sleeps, the shard wakes the thread.
    pub(crate) fn schedule(&self, due: Moment, payload: T) -> Result<Key, ScheduleError<T>> {
        self.scheduler.schedule(self.clock.deadline(due), payload)
    }

    /// Sends a message: a timer that fires in the thread's next round.
    pub(crate) fn send(&self, payload: T) -> Result<Key, ScheduleError<T>> {
        self.scheduler.schedule(self.clock.reached(self.clock.now()), payload)
    }

    /// Moves a timer to a later or an earlier time. The returned key replaces the given one. `None`
    /// if the timer has ended.
    pub(crate) fn reschedule(&self, key: Key, due: Moment) -> Option<Key> {
        self.scheduler.reschedule(key, self.clock.deadline(due))
    }

    /// Cancels a timer; `None` if it has ended.
    pub(crate) fn cancel(&self, key: Key) -> Option<T> {
        self.scheduler.cancel(key)
    }

    /// Wakes the thread without a timer.
    pub(crate) fn wake(&self) {
        self.alarm.wake_by_ref();
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        let Self { scheduler, alarm, clock } = self;
        Self { scheduler: scheduler.clone(), alarm: Arc::clone(alarm), clock: clock.clone() }
    }
}

/// Ends another thread's poll: the poller's own waker, as a standard waker.
struct Alarm(mio::Waker);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // It fails if the system has no room for the poller; then the poll fails in its own thread
        // as well.
        let _ = self.0.wake();
    }
}

//! The pattern: one thread, one poller, one shard.
//!
//! A thread goes round like this:
//!
//! 1. [`sleep`](EventLoop::sleep): give the shard the waker, ask it for its next expiration, and poll until
//!    then;
//! 2. [`fire`](EventLoop::fire): advance the shard to the present, and handle what is due;
//! 3. handle the sockets that are [`ready`](EventLoop::ready).
//!
//! Why nothing is slept through: the waker stands before the shard is asked. Whoever schedules a timer before
//! the answer is in the answer; whoever schedules an earlier one after it wakes the poller, also one that has
//! not begun to poll, for it then returns at once. A wake uses the waker up, so it is given anew each time.
//!
//! Why the sockets come after the timers: from `next_expiration` to `advance` the shard takes its thread to be
//! asleep. A loop that schedules an earlier timer in between, as sockets may make it do, would wake itself, and
//! go round once more for nothing.
//!
//! Other threads have a [`Handle`]: they schedule with it, and need not know that there is a poller.

use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};

use mio::{Events, Poll, Registry, Token};
use shardwheel::{Advancer, Fired, Key, ScheduleError, Scheduler, shard};

use super::clock::{Clock, Moment};

/// Readiness that the poller tells at once; more waits for the next round.
const EVENTS: usize = 256;
/// The poller's name for a wake by another thread. Sockets have others.
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
    /// A poller and a shard that wakes it, with what other threads need of them.
    pub(crate) fn new(clock: &Clock) -> io::Result<(Self, Handle<T>)> {
        let poll = Poll::new()?;
        let alarm = Arc::new(Alarm(mio::Waker::new(poll.registry(), WAKE)?));
        let (scheduler, advancer) = shard(clock.config());
        let waker = Waker::from(Arc::clone(&alarm));
        let handle = Handle { scheduler, alarm, clock: clock.clone() };
        let events = Events::with_capacity(EVENTS);
        Ok((Self { poll, events, advancer, waker, clock: clock.clone() }, handle))
    }

    /// Where sockets are registered, with any token but the greatest.
    pub(crate) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Polls until a socket is ready, a timer may be due, or another thread wakes this one.
    pub(crate) fn sleep(&mut self) -> io::Result<()> {
        self.advancer.register_waker(&self.waker);
        let next = self.advancer.next_expiration();
        let timeout = next.map(|tick| self.clock.timeout(tick, self.clock.now()));
        match self.poll.poll(&mut self.events, timeout) {
            // By a signal: a round with nothing ready.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            result => result,
        }
    }

    /// Hands each timer that is due to `handle`, which may schedule others, and says how many there were.
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

    /// Ends the shard; what has not fired comes back.
    pub(crate) fn end(self) -> impl Iterator<Item = T> {
        self.advancer.into_pending().map(|(_, payload)| payload)
    }
}

/// What any thread may do to another's loop.
pub(crate) struct Handle<T> {
    scheduler: Scheduler<T>,
    alarm: Arc<Alarm>,
    clock: Clock,
}

impl<T> Handle<T> {
    /// Schedules a timer on that thread's shard. Where it is due before all that the thread sleeps for, the
    /// shard wakes the thread.
    pub(crate) fn schedule(&self, due: Moment, payload: T) -> Result<Key, ScheduleError<T>> {
        self.scheduler.schedule(self.clock.deadline(due), payload)
    }

    /// Has the timer fire at once, in the thread's next round: a message.
    pub(crate) fn send(&self, payload: T) -> Result<Key, ScheduleError<T>> {
        self.scheduler.schedule(self.clock.reached(self.clock.now()), payload)
    }

    /// Puts a timer off, or brings it nearer; the key that is returned replaces the one that was given. None
    /// if it has ended.
    pub(crate) fn reschedule(&self, key: Key, due: Moment) -> Option<Key> {
        self.scheduler.reschedule(key, self.clock.deadline(due))
    }

    /// Ends a timer, unless it has ended.
    pub(crate) fn cancel(&self, key: Key) -> Option<T> {
        self.scheduler.cancel(key)
    }

    /// Wakes the thread, for something other than a timer.
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

/// Ends the poll of one thread from another: the poller's own waker, as the standard library's.
struct Alarm(mio::Waker);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // It fails for a poller that the system has no room for, which fails in its own thread as well.
        let _ = self.0.wake();
    }
}

//! The pattern: one thread, one poller, one shard.
//!
//! The shard's next expiration is the timeout of the poll. All timers of the shard are scheduled by
//! the thread itself, after the shard has been advanced and before it is asked again, so no timer is
//! slept through. Other threads wake the poll: see [`mail`](crate::mail).

use std::io;
use std::task::Waker;
use std::time::Duration;

use mio::{Events, Poll, Registry};
use shardwheel::{Advancer, Config, Fired, Scheduler, shard};

use crate::clock::{Clock, TICK};
use crate::keyspace::Due;
use crate::mail::Mailbox;

/// Readiness events per poll; further events wait for the next round.
const EVENTS: usize = 512;
/// A thread that would sleep for longer gives memory of its shard back after each such time.
const MAINTENANCE: Duration = Duration::from_millis(50);

/// A thread's poller and its shard.
pub(crate) struct EventLoop {
    poll: Poll,
    events: Events,
    advancer: Advancer<Due>,
    clock: Clock,
    waker: Waker,
}

/// A shard whose ticks are the clock's.
pub(crate) fn timers() -> (Scheduler<Due>, Advancer<Due>) {
    // The default tick is a millisecond.
    debug_assert_eq!(Config::default().tick(), TICK);
    shard(&Config::default())
}

impl EventLoop {
    pub(crate) fn new(poll: Poll, advancer: Advancer<Due>, clock: Clock, waker: Waker) -> Self {
        Self { poll, events: Events::with_capacity(EVENTS), advancer, clock, waker }
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Polls until a client is ready, a timer may be due, a message has come, or the time is over.
    pub(crate) fn sleep(&mut self, mailbox: &Mailbox, limit: Duration) -> io::Result<()> {
        if limit.is_zero() {
            return self.poll(Some(limit));
        }
        self.advancer.register_waker(&self.waker);
        let next = self.advancer.next_expiration().map_or(Duration::MAX, |tick| self.clock.until(tick));
        let mut timeout = next.min(limit);
        if timeout > MAINTENANCE && self.advancer.needs_maintenance() {
            self.advancer.maintain();
            timeout = MAINTENANCE;
        }
        if !mailbox.lie_down() {
            timeout = Duration::ZERO;
        }
        let result = self.poll(Some(timeout).filter(|&it| it < Duration::MAX));
        mailbox.get_up();
        result
    }

    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            // A signal ended the poll: a round with nothing ready.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            result => result,
        }
    }

    /// Passes the timers that are due to `handle`, but no more than `most`. True if there may be more:
    /// they stay due.
    pub(crate) fn fire(&mut self, now: u64, most: usize, mut handle: impl FnMut(&Fired<Due>)) -> bool {
        self.advancer.advance(now).take(most).map(|fired| handle(&fired)).count() == most
    }

    /// Takes the events that the last sleep has found.
    pub(crate) fn take_events(&mut self) -> Events {
        std::mem::replace(&mut self.events, Events::with_capacity(0))
    }

    /// Gives the events back, for their memory.
    pub(crate) fn keep_events(&mut self, events: Events) {
        self.events = events;
    }
}

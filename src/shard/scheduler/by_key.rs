//! What a producer does by a timer's key, besides cancelling it and moving it: ask, replace the
//! payload, and stop a timer that recurs (see
//! [`advancer::recurring`](crate::shard::advancer::recurring)).

use super::Scheduler;
use crate::shard::key::Key;
#[cfg(feature = "introspect")]
use crate::shard::node::Tag;
use crate::shard::node::state::Status;
use crate::shard::node::{Node, PayloadSlot, Stopped};
use crate::tick::Tick;

/// The outcome of an exchange of a timer's payload.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exchanged<R> {
    /// The timer is pending with the new payload; what `harvest` made of the former.
    Done(R),
    /// The timer was due afterwards, or the shard had closed: it was then cancelled, unless it had
    /// fired. What `harvest` made of the former payload.
    Over(R),
    /// The timer had ended before.
    Gone,
}

impl<T> Scheduler<T> {
    /// Returns whether the timer is pending: neither fired nor cancelled. A timer that is due but
    /// not yet taken from [`Expired`](crate::Expired) is pending.
    ///
    /// While other threads use the timer, the answer is that of some moment during the call. After
    /// `false` it is always `false`.
    ///
    /// # Examples
    ///
    /// ```
    /// use shardwheel::{Config, shard};
    ///
    /// let (scheduler, mut advancer) = shard(&Config::default());
    /// let key = scheduler.schedule(30, "check the order")?;
    /// assert!(scheduler.is_pending(key));
    /// assert_eq!(advancer.advance(30).count(), 1);
    /// assert!(!scheduler.is_pending(key));
    /// # Ok::<(), shardwheel::ScheduleError<&str>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// O(1), lock-free. It writes only what belongs to the calling thread.
    #[inline]
    #[must_use]
    pub fn is_pending(&self, key: Key) -> bool {
        self.status(key) == Some(Status::Pending)
    }

    /// Returns the deadline of a pending timer; `None` if the timer has fired or was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use shardwheel::{Config, shard};
    ///
    /// let (scheduler, _advancer) = shard(&Config::default());
    /// let key = scheduler.schedule(30, "check the order")?;
    /// assert_eq!(scheduler.deadline(key), Some(30));
    /// scheduler.cancel(key);
    /// assert_eq!(scheduler.deadline(key), None);
    /// # Ok::<(), shardwheel::ScheduleError<&str>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// O(1), lock-free: one compare-and-swap.
    #[must_use]
    pub fn deadline(&self, key: Key) -> Option<Tick> {
        self.at_node(key, |node, era| node.deadline_of(era, key.generation))?.1
    }

    /// Returns the deadline and the tag of the key's timer, if it is pending. O(1).
    #[cfg(feature = "introspect")]
    pub(crate) fn look(&self, key: Key) -> Option<(Tick, Tag)> {
        self.at_node(key, |node, era| node.look_at(era, key.generation))?.1
    }

    /// As [`is_pending`](Self::is_pending), and true of a recurring timer whose payload is out.
    pub(crate) fn is_alive(&self, key: Key) -> bool {
        matches!(self.status(key), Some(Status::Pending | Status::Running))
    }

    /// Whether the timer recurs, and was stopped while its payload is out. True of a stop that
    /// comes before the call, until the payload comes back, also past the shard's end.
    pub(crate) fn is_stopped(&self, key: Key) -> bool {
        self.status(key) == Some(Status::Stopped)
    }

    /// The status of the timer, if its node still has it.
    #[inline]
    fn status(&self, key: Key) -> Option<Status> {
        self.at_node(key, |node, era| node.status_of(era, key.generation))?.1
    }

    /// Replaces the payload of a pending timer, and returns what `harvest` makes of the former
    /// payload. The timer stays pending, with the same deadline and key, and keeps its room under
    /// the bound.
    ///
    /// The advancer may reach the timer's tick during the exchange. It then defers the node to its
    /// next advance, which may be a long time off, and the shard may close before. So the producer
    /// reads the clock afterwards, and cancels a timer that is due by then or whose shard has
    /// closed ([`Exchanged::Over`]).
    pub(crate) fn exchange<R>(
        &self,
        key: Key,
        payload: T,
        harvest: impl Fn(PayloadSlot<'_, T>) -> R,
    ) -> Exchanged<R> {
        // Declared first, so dropped last: what is left of it belongs to the user, and its drop
        // runs when the lane is left and nothing is pinned.
        let mut payload = Some(payload);
        let exchange = |node: &Node<T>, era| node.exchange(era, key.generation, &mut payload, &harvest);
        let Some((entered, Some((deadline, former)))) = self.at_node(key, exchange) else {
            return Exchanged::Gone;
        };
        let reading = self.shared.clock.fence_and_read();
        if deadline <= reading.now || self.shared.clock.is_closed() {
            drop(entered);
            let _ = self.cancel_and(key, |slot| Some(harvest(slot)));
            return Exchanged::Over(former);
        }
        if reading.must_wake(deadline) {
            self.wake_advancer(entered);
        }
        Exchanged::Done(former)
    }

    /// Cancels a timer, also one whose payload is out: the advancer then does not arm it again. The
    /// answer is final at once.
    ///
    /// A stop may meet a timer that does not recur at the moment at which the advancer takes it
    /// out: the answer is then `Running` too, and that occurrence is the only one.
    pub(crate) fn stop(&self, key: Key) -> Stopped<T> {
        let found = self.at_node(key, |node, era| node.stop(era, key.generation));
        let Some((mut entered, stopped)) = found else { return Stopped::Gone };
        let (lane, local) = entered.parts();
        if !matches!(stopped, Stopped::Gone) {
            self.count_cancelled(lane);
        }
        match stopped {
            Stopped::Pending(_) if self.note_dead(lane, local) => self.wake_advancer(entered),
            Stopped::Running => _ = lane.tally.stopped.add(1),
            _ => {}
        }
        stopped
    }
}

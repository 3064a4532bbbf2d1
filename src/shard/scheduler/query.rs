//! What a producer can ask about a timer.

use super::Scheduler;
use crate::shard::key::Key;
use crate::shard::node::state::Status;
use crate::tick::Tick;

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
}

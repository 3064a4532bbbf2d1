//! What a producer can ask about a timer.

use super::Scheduler;
use crate::shard::key::Key;
use crate::shard::node::Node;
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
        self.ask(key, |node, era| node.is_pending(era, key.generation)).unwrap_or(false)
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
        self.ask(key, |node, era| node.deadline_of(era, key.generation)).flatten()
    }

    /// As [`is_pending`](Self::is_pending), and true of a recurring timer whose payload is out.
    pub(crate) fn is_alive(&self, key: Key) -> bool {
        self.ask(key, |node, era| node.is_alive(era, key.generation)).unwrap_or(false)
    }

    /// Whether the timer recurs, and was stopped while its payload is out. True of a stop that
    /// comes before the call, until the payload comes back, also past the shard's end.
    pub(crate) fn is_stopped(&self, key: Key) -> bool {
        self.ask(key, |node, era| node.is_stopped(era, key.generation)).unwrap_or(false)
    }

    /// What `answer` says of the node that the key names, given its segment's era.
    #[inline]
    fn ask<R>(&self, key: Key, answer: impl FnOnce(&Node<T>, u32) -> R) -> Option<R> {
        if !key.is_of(self.shared.id) {
            return None;
        }
        let mut entered = self.shared.lanes.enter();
        let (_, local) = entered.parts();
        // Protects: the node that the key names, whose segment the advancer may give back
        // meanwhile.
        let stay = self.shared.slab.stay(key.node(), &local.nodes.free, &local.participant);
        self.find(&stay).map(|(node, era)| answer(node, era))
    }
}

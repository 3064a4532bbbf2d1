//! Replacing the payload of a pending timer.

use super::Scheduler;
use crate::shard::key::Key;
use crate::shard::node::{Node, PayloadSlot};

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
        let reading = self.shared.clock.read();
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
}

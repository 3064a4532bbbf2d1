//! Putting another payload in the place of a pending timer's.

use super::Scheduler;
use crate::shard::key::Key;
use crate::shard::node::payload::{IntoPayload, PayloadSlot};

/// What became of a timer whose payload was to be changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exchanged<R> {
    /// It is pending, with the new payload; what was made of the former.
    Done(R),
    /// It was due by then, or the shard had closed: it has been taken out, unless it has fired. What was made of the former
    /// payload.
    Over(R),
    /// It had ended before.
    Gone,
}

impl<T> Scheduler<T> {
    /// Puts another payload in the place of a pending timer's, and hands back what `harvest` makes of the former. The
    /// timer stays pending, for the same deadline and under the same key, and keeps its room under the bound.
    ///
    /// The advancer may come to the timer's tick while the payload is being changed: it then sets the node aside for its
    /// next advance, which may be long in coming, and the shard may close. So the clock is looked at afterwards, and a
    /// timer that is due by then, or whose shard has closed, is taken out again ([`Exchanged::Over`]).
    pub(crate) fn exchange<S: IntoPayload<T>, R>(
        &self,
        key: Key,
        payload: S,
        harvest: impl Fn(PayloadSlot<'_, T>) -> R,
    ) -> Exchanged<R> {
        // Declared first, so dropped last: what is left of it is the user's, and its drop runs out
        // of the lane and unpinned.
        let mut payload = Some(payload);
        let Some(mut entered) = self.enter(key) else { return Exchanged::Gone };
        let (_, local) = entered.parts();
        // Protects: as in `cancel`.
        let stay = self.shared.slab.stay(key.node(), &local.free, &local.participant);
        let exchanged = self.find(key, &stay);
        let exchanged =
            exchanged.and_then(|(node, era)| node.exchange(era, key.generation, &mut payload, &harvest));
        drop(stay);
        let Some((deadline, former)) = exchanged else { return Exchanged::Gone };
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

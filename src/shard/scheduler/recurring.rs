//! What a producer does with a recurring timer. The mechanism is in
//! [`advancer::recurring`](crate::shard::advancer::recurring).

use super::Scheduler;
use crate::shard::key::Key;
use crate::shard::node::StopOutcome;
use crate::tick::Tick;

/// How a timer was stopped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stopped<T> {
    /// It was pending; its payload.
    Pending(T),
    /// Its payload is out, being run: this occurrence is the last.
    Running,
    /// There is no such timer any more.
    Gone,
}

impl<T> Scheduler<T> {
    /// Cancels a timer, also one whose payload is out: the advancer then does not arm it again. The
    /// answer is final at once.
    ///
    /// A stop may meet a timer that does not recur at the moment at which the advancer takes it
    /// out: the answer is then `Running` too, and that occurrence is the only one.
    pub(crate) fn stop(&self, key: Key) -> Stopped<T> {
        self.try_stop(key).unwrap_or(Stopped::Gone)
    }

    fn try_stop(&self, key: Key) -> Option<Stopped<T>> {
        let mut entered = self.enter(key)?;
        let (lane, local) = entered.parts();
        // Protects: the node that the key names, whose segment the advancer may give back
        // meanwhile.
        let stay = self.shared.slab.stay(key.node(), &local.nodes.free, &local.participant);
        let (node, era) = self.find(&stay)?;
        let ended = node.stop(era, key.generation)?;
        drop(stay);
        self.count_cancelled(lane);
        match ended {
            StopOutcome::Cancelled(payload) => {
                if self.note_dead(lane, local) {
                    self.wake_advancer(entered);
                }
                Some(Stopped::Pending(payload))
            }
            StopOutcome::Running => {
                lane.tally.stopped.add(1);
                Some(Stopped::Running)
            }
        }
    }

    /// Gives a pending recurring timer another deadline, and returns its key from then on. `None`
    /// means that the timer has ended, or that its payload is out.
    ///
    /// Always moves the timer to another node, because the word of a recurring timer does not prove
    /// its `base`. If there is no memory, the timer keeps its deadline and its key.
    pub(crate) fn relocate_recurring(&self, key: Key, deadline: Tick) -> Option<Key> {
        self.relocate(self.enter(key)?, key, deadline)
    }
}

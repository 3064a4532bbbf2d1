//! What a producer does with a recurring timer. The mechanism is in
//! [`advancer::recurring`](crate::shard::advancer::recurring).

use super::Scheduler;
use crate::shard::key::Key;
use crate::shard::node::Stopped;
use crate::tick::Tick;

impl<T> Scheduler<T> {
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

    /// Gives a pending recurring timer another deadline, and returns its key from then on. `None`
    /// means that the timer has ended, or that its payload is out.
    ///
    /// Always moves the timer to another node, because the word of a recurring timer does not prove
    /// its `base`. If there is no memory, the timer keeps its deadline and its key.
    pub(crate) fn relocate_recurring(&self, key: Key, deadline: Tick) -> Option<Key> {
        self.relocate(key, deadline, |moved| moved)
    }
}

//! What must hold between operations, checked by visiting everything.

use crate::shard::advancer::Advancer;
use crate::shard::node::state::Status;
use crate::shard::node::{NIL, NodeId};
use crate::shard::wheel::Wheel;
use crate::shard::wheel::geometry::Slot;
use crate::shard::wheel::private::PrivateWheel;
use crate::sync::Ordering;
use crate::tick::Tick;

/// The nodes seen so far, and what was found in them.
#[derive(Default)]
struct Census {
    seen: NodeSet,
    linked: usize,
    pending: usize,
    dead: usize,
}

/// A set of nodes, a bit each: small and fast, since a fuzzer checks after every operation.
#[derive(Default)]
struct NodeSet(Vec<u64>);

impl NodeSet {
    /// Adds a node; false if it was in the set.
    fn insert(&mut self, id: NodeId) -> bool {
        let (word, bit) = (id as usize / 64, 1 << (id % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let was_there = self.0[word] & bit != 0;
        self.0[word] |= bit;
        !was_there
    }

    fn contains(&self, id: NodeId) -> bool {
        self.0.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }
}

impl<T> Advancer<T> {
    /// Panics if an invariant of the structure does not hold. O(everything). A debugging aid for
    /// tests and fuzzing, which a release build does not have: call it while no other thread is at
    /// work on the shard.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        let (now, flushed) = (self.now, self.flushed);
        assert!(flushed <= now, "flushed {flushed} is after the clock {now}");
        assert!(now <= self.sealed, "the clock {now} is after what is sealed, {}", self.sealed);
        let mut census = Census::default();
        self.check_hands(&mut census, flushed);
        self.check_inbox(&mut census);
        for level in 0..self.shared.geometry.levels() {
            if let Some(wheel) = self.shared.wheel(level) {
                self.check_wheel(&mut census, level, wheel, flushed);
            }
            if let Some(private) = self.private.level(level) {
                self.check_private(&mut census, level, private, flushed);
            }
        }
        self.check_sweep(&mut census);
        self.check_unlinked(&mut census);
        assert_eq!(census.pending, self.shared.len(), "timers that are pending but not linked, or twice");
        assert_eq!(census.dead as u64, self.shared.dead(), "dead nodes are miscounted");
    }

    fn check_hands(&self, census: &mut Census, flushed: Tick) {
        for id in self.hands.due.ids(&self.shared) {
            let linked_for = self.record(census, id);
            assert!(linked_for > flushed, "due {linked_for} at {flushed}");
        }
        assert!(self.hands.moving.is_empty(), "a cascade has left nodes in hand");
        for (recorded, id) in self.hands.overdue.iter() {
            let linked_for = self.record(census, id);
            assert!(recorded <= flushed && linked_for >= recorded);
        }
        for &id in &self.hands.deferred {
            self.record(census, id);
        }
    }

    fn check_inbox(&self, census: &mut Census) {
        let first = self.shared.inbox.peek();
        for id in self.list(first) {
            self.record(census, id);
        }
    }

    fn check_wheel(&self, census: &mut Census, level: usize, wheel: &Wheel, flushed: Tick) {
        for index in 0..wheel.size() {
            for (held_round, first, occupied) in wheel.lists(index) {
                assert!(first == NIL || occupied, "level {level}, bucket {index}: a list without its bit");
                let geometry = self.shared.geometry;
                let slot = geometry.slot_ahead(level, index, wheel.size(), flushed);
                let round = self.shared.geometry.round(slot);
                assert!(first == NIL || held_round == round, "{slot:?} holds round {held_round}");
                self.check_list(census, slot, self.list(first));
            }
        }
    }

    /// Checks the private lists of a level.
    fn check_private(&self, census: &mut Census, level: usize, private: &PrivateWheel, flushed: Tick) {
        for index in 0..private.size() {
            let (lists, occupied) = private.lists(index);
            let holds = lists.iter().any(|&first| first != NIL);
            assert!(occupied || !holds, "level {level}, own bucket {index}: a list without its bit");
            let slot = self.shared.geometry.slot_ahead(level, index, private.size(), flushed);
            assert!(holds || !occupied || self.sweep.has(slot), "a bit without a list");
            lists.into_iter().for_each(|first| self.check_list(census, slot, self.list(first)));
        }
    }

    fn check_sweep(&self, census: &mut Census) {
        let geometry = self.shared.geometry;
        if let Some((slot, chains)) = self.sweep.in_hand() {
            let shared =
                self.shared.wheel(slot.level).is_some_and(|wheel| wheel.is_occupied(geometry.index(slot)));
            let private = self
                .private
                .level(slot.level)
                .is_some_and(|private| private.lists(geometry.private_index(slot)).1);
            assert!(shared || private, "no bit says where the sweep has detached something");
            self.check_list(census, slot, chains.ids(&self.shared).into_iter());
        }
    }

    /// Checks that the list's bucket expires no later than any tick that its nodes are linked for.
    /// NodeSet of cancelled timers count too: they may be reused for that tick.
    fn check_list(&self, census: &mut Census, slot: Slot, ids: impl Iterator<Item = NodeId>) {
        let expiration = self.shared.geometry.expiration(slot);
        for id in ids {
            let linked_for = self.record(census, id);
            assert!(linked_for >= expiration, "{linked_for} is in {slot:?}");
        }
    }

    /// Notes a linked node; returns the tick that it is linked for.
    fn record(&self, census: &mut Census, id: NodeId) -> Tick {
        assert!(census.seen.insert(id), "node {id} is linked twice");
        census.linked += 1;
        let node = self.shared.node(id);
        let word = node.word();
        let linked_for = node.linked_for(word);
        match word.status() {
            Status::Pending => {
                census.pending += 1;
                assert!(linked_for <= node.deadline(word), "node {id} is linked after its deadline");
            }
            Status::Cancelled => census.dead += 1,
            met => panic!("node {id} is linked and {met:?}"),
        }
        linked_for
    }

    fn list(&self, first: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut next = first;
        std::iter::from_fn(move || {
            let id = (next != NIL).then_some(next)?;
            let node = self.shared.node(id);
            // Ordering: Relaxed, no other thread is at work.
            next = node.next().load(Ordering::Relaxed);
            Some(id)
        })
    }

    /// Checks the nodes that are not linked. Either the payload is out; or the node holds nothing
    /// and is on its way to reuse, or worn out, or in the one word of free nodes that a lane has.
    /// So no node is forgotten.
    fn check_unlinked(&self, census: &mut Census) {
        let freed = self.freed(census);
        let (mut linked, mut under_way, mut of_lanes) = (0, 0, 0);
        for word in 0..self.shared.slab.words() {
            let mut is_of_lane = false;
            for id in self.shared.slab.taken(word, self.shared.keep()) {
                if census.seen.contains(id) {
                    linked += 1;
                } else if !self.count_idle(census, id) {
                    // Its payload is out.
                } else if freed.contains(id) {
                    under_way += 1;
                } else {
                    is_of_lane |= !self.shared.node(id).is_worn_out();
                }
            }
            of_lanes += usize::from(is_of_lane);
        }
        assert_eq!(linked, census.linked, "a node is linked and free");
        assert_eq!(under_way, self.recycler.len(), "a node is freed twice, or miscounted");
        let lanes = self.shared.lanes.iter().count();
        assert!(of_lanes <= lanes, "nodes of {of_lanes} words are forgotten, with {lanes} lanes");
    }

    /// The nodes on their way to reuse.
    fn freed(&self, census: &Census) -> NodeSet {
        let mut freed = NodeSet::default();
        let mut count = 0;
        for id in self.recycler.nodes() {
            assert!(freed.insert(id) && !census.seen.contains(id), "node {id} is freed twice");
            count += 1;
        }
        assert_eq!(count, self.recycler.len(), "freed nodes are miscounted");
        freed
    }

    /// Counts a node that is not linked; true if it holds nothing.
    fn count_idle(&self, census: &mut Census, id: NodeId) -> bool {
        match self.shared.node(id).word().status() {
            Status::Running => census.pending += 1,
            Status::Stopped => {}
            met => {
                assert_eq!(met, Status::Free, "node {id} is lost");
                return true;
            }
        }
        false
    }
}

//! Freed nodes and memory that is not needed, step by step, in one thread.

use super::*;
use crate::shard::memory::epochs::Epochs;
use crate::shard::memory::free_bits::WORD_NODES;
use crate::shard::memory::slab::{FreeWord, Freed};

/// A payload with 256 nodes to a segment.
type Large = [u8; 4096];

/// After how many polls retired memory is out of reach, if no reader delays it.
const POLLS: usize = 16;

/// A slab and its recycler, without a shard around them.
struct Scene<T> {
    slab: Slab<T>,
    epochs: Epochs,
    advancer: Reclaimer,
    recycler: Recycler<T>,
}

impl<T> Scene<T> {
    const NODES: usize = Segment::<T>::NODES;

    /// A scene in which all nodes of that many segments are taken, and those nodes in memory order.
    fn full(segments: usize) -> (Self, Vec<NodeId>) {
        let (epochs, advancer) = Epochs::with_reclaimer();
        let slab = Slab::new().expect("there is memory");
        let scene = Self { recycler: Recycler::new(&slab), slab, epochs, advancer };
        // Node 0 is never handed out.
        let mut free = FreeWord::default();
        let take = |_| scene.take(&mut free);
        let nodes = (1..segments * Self::NODES).map(take).collect();
        assert_eq!((scene.in_use(), scene.capacity()), (segments * Self::NODES - 1, segments));
        (scene, nodes)
    }

    fn take(&self, free: &mut FreeWord) -> NodeId {
        self.slab.take(free, self.advancer.participant(), 0).expect("there is memory").id()
    }

    fn retire(&mut self, nodes: &[NodeId]) {
        nodes.iter().rev().for_each(|&id| self.recycler.retire(Freed::of(id)));
    }

    /// Gives some nodes to the slab, and a segment to the system.
    fn poll(&mut self, times: usize) {
        for _ in 0..times {
            self.recycler.step(WORDS_PER_STEP, &self.slab, &mut self.advancer);
            self.recycler.give_memory(false, &self.advancer);
        }
    }

    /// Frees the nodes, and checks that the slab has them afterwards.
    fn free(&mut self, nodes: &[NodeId]) {
        let before = self.in_use();
        self.retire(nodes);
        for _ in 0..2 {
            self.recycler.hurry(&self.slab);
            self.recycler.step(usize::MAX, &self.slab, &mut self.advancer);
        }
        assert_eq!((self.in_use(), self.recycler.len()), (before - nodes.len(), 0));
    }

    /// Takes an empty segment out of the table, if there is one.
    fn retire_segment(&mut self) -> bool {
        self.recycler.retire_segment(&self.slab, &mut self.advancer)
    }

    fn in_use(&self) -> usize {
        self.slab.usage(&self.advancer.participant().pin()).1
    }

    /// The number of segments.
    fn capacity(&self) -> usize {
        self.slab.size()
    }

    fn owes_memory(&self) -> bool {
        self.recycler.owes_memory(&self.slab, 0)
    }
}

#[test]
fn a_batch_is_ripe_when_it_has_a_share_of_all_nodes() {
    let (mut scene, nodes) = Scene::<Large>::full(16);
    scene.retire(&nodes[..RIPE_BATCH - 1]);
    assert!(!scene.recycler.is_ripe());
    scene.retire(&nodes[RIPE_BATCH - 1..][..1]);
    assert!(scene.recycler.is_ripe());
    scene.poll(POLLS);
    let rest = &nodes[RIPE_BATCH..];
    // The recycler has learned the slab's size by now.
    let worth = 16 * Scene::<Large>::NODES / WORTH_SHARE;
    scene.retire(&rest[..worth - 1]);
    assert!(!scene.recycler.is_ripe());
    scene.retire(&rest[worth - 1..][..1]);
    assert!(scene.recycler.is_ripe());
}

/// Of a payload of a megabyte, a segment has 64 nodes.
#[test]
fn a_quarter_of_a_segment_is_enough() {
    let (mut scene, nodes) = Scene::<[u8; 1 << 20]>::full(1);
    scene.retire(&nodes[..15]);
    assert!(!scene.recycler.is_ripe());
    scene.retire(&nodes[15..][..1]);
    assert!(scene.recycler.is_ripe());
}

#[test]
#[cfg_attr(feature = "introspect", ignore = "nodes are larger")]
fn a_batch_is_given_in_steps() {
    let (mut scene, nodes) = Scene::<u64>::full(3);
    let one_of_each_word: Vec<_> = nodes.iter().copied().step_by(WORD_NODES).collect();
    let words = one_of_each_word.len();
    assert_eq!(words, 6 * WORDS_PER_STEP);
    scene.retire(&one_of_each_word);
    scene.poll(1);
    assert_eq!(scene.recycler.len(), words - WORDS_PER_STEP);
    // A step is longer where nodes are freed meanwhile: half of the nodes that make the next batch
    // ripe would add all words of this one.
    let freed = scene.recycler.worth / 2 / words;
    scene.retire(&nodes[1..][..freed]);
    scene.poll(1);
    assert_eq!(scene.recycler.len(), words - 2 * WORDS_PER_STEP - 1 + freed);
    scene.poll(4);
    assert_eq!(scene.recycler.len(), freed);
}

/// A drain does many steps in one advance; an advance gives at most one segment.
#[test]
fn a_step_of_a_drain_gives_no_memory_to_the_system() {
    let (mut scene, nodes) = Scene::<Large>::full(64);
    scene.free(&nodes);
    (0..40).for_each(|_| assert!(scene.retire_segment()));
    (0..8).for_each(|_| scene.recycler.step(0, &scene.slab, &mut scene.advancer));
    assert_eq!(scene.recycler.retired.count(), 40);
}

/// An idle shard keeps its last segment until as many timers have ended as half its nodes.
#[test]
fn the_last_segment_goes_once_much_of_it_was_used() {
    let (mut scene, nodes) = Scene::<Large>::full(1);
    let (few, rest) = nodes.split_at(Scene::<Large>::NODES / 2 - 1);
    scene.free(few);
    let excess = |scene: &Scene<_>| scene.recycler.excess(&scene.slab, 0);
    assert_eq!(excess(&scene), 0);
    scene.free(&rest[..1]);
    assert_eq!(excess(&scene), 1);
    assert!(!scene.retire_segment() && !scene.owes_memory(), "the rest is in use");
    scene.free(&rest[1..]);
    assert!(scene.owes_memory() && scene.retire_segment());
    let mut free = FreeWord::default();
    scene.take(&mut free);
    assert_eq!((scene.capacity(), excess(&scene)), (1, 0), "a new one is new");
}

#[test]
fn what_timers_need_is_kept() {
    let (mut scene, nodes) = Scene::<Large>::full(9);
    scene.free(&nodes);
    let pending = 3 * Scene::<Large>::NODES;
    let excess = |live| scene.recycler.excess(&scene.slab, live);
    assert_eq!([0, 1, pending, pending + 1, 4 * pending].map(excess), [9, 7, 2, 1, 0]);
    while scene.recycler.owes_memory(&scene.slab, pending) {
        scene.recycler.shed(&scene.slab, pending, &mut scene.advancer);
    }
    assert_eq!(scene.capacity(), 7, "one more than twice what is pending");
    assert!(scene.owes_memory());
}

#[test]
fn a_share_goes_back_where_the_clock_does_not_move() {
    let (mut scene, nodes) = Scene::<Large>::full(64);
    scene.free(&nodes);
    let mut before = scene.capacity();
    assert_eq!(before, 64);
    for excess in [64, 60, 56] {
        scene.recycler.shed(&scene.slab, 0, &mut scene.advancer);
        assert!(before - scene.capacity() >= excess / SHARE, "{before} to {}", scene.capacity());
        assert!(before - scene.capacity() <= 64 / SHARE);
        before = scene.capacity();
    }
    let mut calls = 0;
    while scene.owes_memory() {
        scene.recycler.shed(&scene.slab, 0, &mut scene.advancer);
        calls += 1;
    }
    assert_eq!(scene.capacity(), 0);
    assert!((SHARE..8 * SHARE).contains(&calls), "{calls} calls");
}

/// What readers may still reach at the advancer's end goes when they have unpinned.
#[test]
fn a_segment_outlasts_a_reader_at_the_end() {
    let (mut scene, nodes) = Scene::<Large>::full(6);
    scene.free(&nodes);
    let reader = scene.epochs.join();
    let guard = reader.pin();
    assert!(scene.retire_segment());
    scene.poll(POLLS);
    assert_eq!((scene.capacity(), scene.recycler.retired.count()), (5, 1));
    drop(scene);
    drop(guard);
}

//! Freed nodes and memory that is not needed, step by step, in one thread.

use super::excess::{MOVES_PER_SEGMENT, SHARE, USED_SHARE};
use super::*;
use crate::shard::memory::epochs::Epochs;
use crate::shard::memory::free_bits::WORD_NODES;
use crate::shard::memory::pages::PART;
use crate::shard::memory::recycle::RIPE_BATCH;
use crate::shard::memory::recycle::WORDS_PER_STEP;
use crate::shard::memory::recycle::excess::MOVES_PER_RELEASE;
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

    fn poll(&mut self, times: usize) {
        for _ in 0..times {
            self.recycler.poll(&self.slab, &mut self.advancer);
        }
    }

    /// Gives all nodes to the slab.
    fn poll_to_the_end(&mut self) {
        for _ in 0..2 {
            self.recycler.hurries = true;
            self.recycler.step(usize::MAX, &self.slab, &mut self.advancer);
        }
        self.recycler.give_memory(false, &self.advancer);
    }

    /// Frees the nodes, and checks that the slab has them afterwards.
    fn free(&mut self, nodes: &[NodeId]) {
        let before = self.in_use();
        self.retire(nodes);
        self.poll_to_the_end();
        assert_eq!((self.in_use(), self.recycler.len()), (before - nodes.len(), 0));
    }

    /// Moves the clock once, with nothing pending and `scheduled` timers scheduled since the
    /// beginning.
    fn note_move(&mut self, scheduled: u64) {
        self.recycler.note_move(&self.slab, scheduled, 0, &mut self.advancer);
    }

    fn in_use(&self) -> usize {
        self.slab.usage(&self.advancer.participant().pin()).1
    }

    /// The number of segments.
    fn capacity(&self) -> usize {
        self.slab.size()
    }

    fn has_excess(&self) -> bool {
        self.recycler.excess(&self.slab, 0) > 0
    }

    fn owes_memory(&self) -> bool {
        self.recycler.owes_memory(&self.slab, 0)
    }
}

#[test]
fn freed_nodes_of_each_segment_are_handed_out_again() {
    let (mut scene, nodes) = Scene::<Large>::full(5);
    scene.free(&nodes);
    let mut free = FreeWord::default();
    let take = |_| scene.take(&mut free);
    let mut again: Vec<_> = (0..nodes.len()).map(take).collect();
    again.sort_unstable();
    assert_eq!((again, scene.capacity()), (nodes, 5));
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

/// If nothing is pending, no batch waits for more.
#[test]
fn a_small_batch_waits_for_more_while_timers_need_the_memory() {
    let (mut scene, nodes) = Scene::<Large>::full(1);
    scene.recycler.note_move(&scene.slab, 0, nodes.len(), &mut scene.advancer);
    scene.retire(&nodes[..3]);
    scene.poll(POLLS);
    assert_eq!((scene.in_use(), scene.recycler.len()), (nodes.len(), 3));
    scene.note_move(0);
    scene.poll(1);
    assert_eq!((scene.in_use(), scene.recycler.len()), (nodes.len() - 3, 0));
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

#[test]
fn a_segment_goes_back_now_and_then_while_timers_are_scheduled() {
    let (mut scene, nodes) = Scene::<Large>::full(5);
    scene.free(&nodes);
    let mut left = Vec::new();
    for moved in 1..=4 * MOVES_PER_RELEASE {
        scene.note_move(moved as u64);
        left.extend((moved % MOVES_PER_RELEASE == 0).then(|| scene.capacity()));
        assert_eq!(scene.capacity(), 5 - (moved / MOVES_PER_RELEASE).min(4), "after {moved} moves");
    }
    assert_eq!(left, [4, 3, 2, 1]);
}

#[test]
fn segments_go_back_faster_where_many_are_too_many() {
    let (mut scene, nodes) = Scene::<Large>::full(64);
    scene.free(&nodes);
    (1..=MOVES_PER_RELEASE).for_each(|moved| scene.note_move(moved as u64));
    assert_eq!(scene.capacity(), 63);
    // Then 64 segments were excess: one goes back every four moves.
    let each = MOVES_PER_SEGMENT / 64;
    (1..each).for_each(|moved| scene.note_move((MOVES_PER_RELEASE + moved) as u64));
    assert_eq!(scene.capacity(), 63);
    scene.note_move((MOVES_PER_RELEASE + each) as u64);
    assert_eq!(scene.capacity(), 62);
}

#[test]
fn a_segment_goes_back_at_each_move_where_nothing_is_scheduled() {
    let (mut scene, nodes) = Scene::<Large>::full(5);
    scene.free(&nodes);
    let mut left = Vec::new();
    for _ in 0..5 {
        scene.note_move(0);
        left.push(scene.capacity());
    }
    assert_eq!(left, [4, 3, 2, 1, 0]);
    assert!(scene.owes_memory(), "it has to wait for readers");
    scene.poll_to_the_end();
    // A segment at each poll, and the first one, which is on ordinary pages, in parts.
    let mut left = scene.recycler.leaving();
    for _ in 0..4 + Segment::<Large>::bytes() / PART {
        scene.poll(1);
        assert!(left - scene.recycler.leaving() <= 1);
        left = scene.recycler.leaving();
    }
    assert!(!scene.owes_memory());
}

/// The first segment is on ordinary pages, which go in parts, the last one with the mapping.
#[test]
fn a_step_gives_a_part_of_a_segment() {
    let (mut scene, nodes) = Scene::<u64>::full(1);
    scene.free(&nodes);
    scene.poll(1);
    scene.note_move(0);
    assert_eq!(scene.capacity(), 0);
    let parts = Segment::<u64>::bytes() / PART;
    let is_going = |_: &usize| {
        scene.poll(1);
        scene.recycler.leaving() == 1
    };
    let steps = (0..POLLS + parts).filter(is_going).count();
    assert_eq!((steps, scene.owes_memory()), (if cfg!(target_os = "linux") { parts - 1 } else { 0 }, false));
}

/// A drain does many steps in one advance; an advance gives at most a part of a segment.
#[test]
fn a_step_of_a_drain_gives_no_memory_to_the_system() {
    let (mut scene, nodes) = Scene::<Large>::full(64);
    scene.free(&nodes);
    (0..40).for_each(|_| scene.note_move(0));
    scene.poll_to_the_end();
    let left = scene.recycler.leaving();
    assert!(left > 16, "{left}");
    (0..8).for_each(|_| scene.recycler.step(0, &scene.slab, &mut scene.advancer));
    assert_eq!(scene.recycler.leaving(), left);
    scene.poll(1);
    assert_eq!(scene.recycler.leaving(), left - 1);
}

/// An idle shard keeps its last segment until as many timers have ended as half its nodes.
#[test]
fn the_last_segment_goes_once_much_of_it_was_used() {
    let (mut scene, nodes) = Scene::<Large>::full(1);
    let (few, rest) = nodes.split_at(Scene::<Large>::NODES / USED_SHARE - 1);
    scene.free(few);
    // A poll counts the nodes freed before it.
    scene.poll(1);
    scene.note_move(0);
    assert!(!scene.owes_memory() && !scene.has_excess());
    scene.free(&rest[..1]);
    scene.poll(1);
    assert!(scene.owes_memory() && scene.has_excess());
    scene.note_move(0);
    scene.note_move(0);
    assert!(!scene.owes_memory() && scene.capacity() == 1, "the rest is in use");
    scene.free(&rest[1..]);
    scene.poll(1);
    assert!(scene.owes_memory() && scene.has_excess());
    scene.note_move(0);
    assert_eq!(scene.capacity(), 0);
    assert!(scene.owes_memory(), "it has to wait for readers");
}

#[test]
fn what_timers_need_is_kept() {
    let (mut scene, nodes) = Scene::<Large>::full(9);
    scene.free(&nodes);
    let pending = 3 * Scene::<Large>::NODES;
    for _ in 0..9 {
        scene.recycler.note_move(&scene.slab, 0, pending, &mut scene.advancer);
    }
    assert_eq!(scene.capacity(), 7, "one more than twice what is pending");
    assert!(scene.recycler.owes_memory(&scene.slab, 0));
    assert!(scene.recycler.owes_memory(&scene.slab, pending), "the last has not gone");
}

/// The search for an empty segment goes from the table's end, a few places at a time.
#[test]
fn a_search_goes_on_where_it_stopped() {
    let (mut scene, nodes) = Scene::<Large>::full(140);
    // The nodes of the second segment; `nodes` lacks node 0 of the first.
    scene.free(&nodes[Scene::<Large>::NODES - 1..][..Scene::<Large>::NODES]);
    scene.note_move(0);
    scene.note_move(0);
    assert_eq!(scene.capacity(), 140);
    scene.note_move(0);
    assert_eq!(scene.capacity(), 139);
}

/// A timer keeps each segment. One search finds that out, until nodes are freed again.
#[test]
fn no_memory_is_owed_where_each_segment_is_in_use() {
    let (mut scene, nodes) = Scene::<Large>::full(3);
    let (kept, freed): (Vec<_>, Vec<_>) =
        nodes.iter().partition(|&&id| id as usize % Scene::<Large>::NODES == 7);
    scene.free(&freed);
    assert!(scene.owes_memory());
    scene.note_move(0);
    assert!(!scene.owes_memory());
    scene.retire(&kept[2..]);
    assert!(scene.owes_memory());
    scene.poll_to_the_end();
    assert!(scene.owes_memory());
    scene.note_move(0);
    assert_eq!(scene.capacity(), 2);
}

#[test]
fn a_share_goes_back_where_the_clock_does_not_move() {
    let (mut scene, nodes) = Scene::<Large>::full(64);
    scene.retire(&nodes);
    scene.poll_to_the_end();
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

#[test]
fn a_share_of_what_waits_to_go_goes() {
    let (mut scene, nodes) = Scene::<Large>::full(64);
    scene.free(&nodes);
    (0..64).for_each(|_| scene.note_move(0));
    scene.poll_to_the_end();
    assert_eq!(scene.capacity(), 0);
    let mut left = scene.recycler.leaving();
    assert!(left > 48, "{left}");
    while left > 0 {
        scene.recycler.shed(&scene.slab, 0, &mut scene.advancer);
        left -= left.div_ceil(SHARE);
        assert_eq!(scene.recycler.leaving(), left);
    }
}

/// What readers may still reach at the advancer's end goes when they have unpinned.
#[test]
fn a_segment_outlasts_a_reader_at_the_end() {
    let (mut scene, nodes) = Scene::<Large>::full(6);
    scene.free(&nodes);
    let reader = scene.epochs.join();
    let guard = reader.pin();
    scene.note_move(0);
    scene.poll(POLLS);
    assert_eq!((scene.capacity(), scene.recycler.leaving()), (5, 1));
    drop(scene);
    drop(guard);
}

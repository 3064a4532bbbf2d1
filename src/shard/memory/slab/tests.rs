//! Nodes are taken and given back, segments are added and unlinked, in one thread.

use std::cell::RefCell;

use super::retire::LAST_ERA_GIVEN_BACK;
use super::*;
use crate::shard::memory::epochs::Epochs;
use crate::shard::memory::table::Retired;

/// A payload with 256 nodes to a segment.
type Large = [u8; 4096];

const NODES: usize = Segment::<Large>::NODES;

/// A slab, and a producer that takes nodes of it.
struct Scene {
    slab: Slab<Large>,
    who: Participant,
    reclaimer: RefCell<Reclaimer>,
    retired: RefCell<Retired<Segment<Large>>>,
    free: FreeWord,
}

impl Scene {
    /// A slab with that many segments, all of whose nodes are taken.
    fn full(segments: usize) -> Self {
        let (epochs, reclaimer) = Epochs::with_reclaimer();
        let slab = Slab::new().expect("there is memory");
        let mut scene = Self {
            retired: RefCell::new(slab.retired()),
            slab,
            who: epochs.join(),
            reclaimer: RefCell::new(reclaimer),
            free: FreeWord::default(),
        };
        let taken: Vec<_> = (1..segments * NODES).map(|_| scene.take() as usize).collect();
        assert!(taken.into_iter().eq(1..segments * NODES), "in memory order, but for the very first");
        scene
    }

    fn take(&mut self) -> NodeId {
        self.slab.take(&mut self.free, &self.who, 0).expect("there is memory").id()
    }

    /// Gives nodes of a word to the slab, which does not look for them.
    fn give_bits(&self, word: usize, bits: u64) {
        let free = FreeWord { word: word as u32, bits };
        self.slab.give(free, Keep::by(&self.reclaimer.borrow()));
    }

    /// Gives all nodes of a segment back.
    fn give(&self, segment: usize) {
        for word in segment * Segment::<Large>::WORDS..(segment + 1) * Segment::<Large>::WORDS {
            self.give_bits(word, if word == 0 { !1 } else { !0 });
        }
        self.slab.reopen(segment);
    }

    /// How many nodes there are, and how many are taken.
    fn usage(&self) -> (usize, usize) {
        let usage = self.slab.usage(&self.who.pin());
        assert_eq!(usage.0.div_ceil(Segment::<Large>::NODES), self.slab.size());
        usage
    }

    /// Takes a segment out of the table; returns its place and its era.
    fn retire_one(&self) -> Option<(usize, u32)> {
        let mut reclaimer = self.reclaimer.borrow_mut();
        let mut retired = self.retired.borrow_mut();
        let index = self.slab.retire_one(&mut retired, &mut reclaimer)?;
        let segment = (0..100).find_map(|_| retired.take(&reclaimer));
        Some((index, segment.expect("no participant is pinned").era))
    }
}

#[test]
#[cfg_attr(feature = "introspect", ignore = "nodes are larger")]
fn there_is_a_limit() {
    assert_eq!((Slab::<Large>::limit(), Slab::<u64>::limit()), (1 << 24, u32::MAX as usize));
}

/// Free nodes anywhere are found before a segment is added, the lowest first.
#[test]
fn the_lowest_free_nodes_come_first() {
    let mut scene = Scene::full(3);
    let (words, bits) = (Segment::<Large>::WORDS, 0b1010);
    // Words of the middle segment, of the one before and of the one behind.
    for word in [words + 2, 1, 2 * words, words] {
        scene.give_bits(word, bits);
        scene.slab.reopen(word / words);
    }
    scene.free = FreeWord { word: words as u32 + 1, bits: 0 };
    let first_of = |word: usize| (word * WORD_NODES + 1) as NodeId;
    for word in [1, words, words + 2, 2 * words] {
        assert_eq!([scene.take(), scene.take()], [first_of(word), first_of(word) + 2]);
    }
    assert_eq!(scene.usage(), (3 * NODES - 1, 3 * NODES - 1));
    assert_eq!(scene.take() as usize, 3 * NODES, "of another segment");
    assert_eq!(scene.usage().0, 4 * NODES - 1);
}

/// A segment that was found to have no free nodes is not searched again until it is reopened.
#[test]
fn a_segment_is_opened_when_it_has_free_nodes() {
    let mut scene = Scene::full(1);
    assert_eq!(scene.take() as usize, NODES, "the first segment has none");
    scene.give_bits(1, 1);
    scene.free = FreeWord::default();
    assert_eq!(scene.take() as usize, NODES + WORD_NODES, "nobody knows of the other");
    scene.free = FreeWord::default();
    scene.slab.reopen(0);
    assert_eq!(scene.take() as usize, WORD_NODES);
}

/// A producer with free nodes of a segment reads the other nodes of that segment without a pin, and
/// needs a pin for any other segment.
#[test]
fn own_free_nodes_keep_their_segment() {
    let mut scene = Scene::full(1);
    scene.take();
    let is_pinned = |id: usize, free| scene.slab.stay(id as NodeId, free, &scene.who)._pinned.is_some();
    assert!(!is_pinned(NODES, &scene.free) && !is_pinned(2 * NODES - 1, &scene.free));
    assert!(is_pinned(NODES - 1, &scene.free) && is_pinned(2 * NODES, &scene.free));
    assert!(is_pinned(NODES, &FreeWord { bits: 0, word: scene.free.word }), "there are none left");
}

#[test]
fn a_name_without_a_segment_finds_nothing() {
    let scene = Scene::full(1);
    let is_there = |id: usize| scene.slab.get(&Stay::pinned(id as NodeId, &scene.who)).is_some();
    assert!(is_there(NODES - 1) && !is_there(NODES) && !is_there(NodeId::MAX as usize));
}

/// The first one goes last. The other marks are from when the segments were new.
#[test]
fn empty_segments_go() {
    let scene = Scene::full(5);
    [0, 2, 3].into_iter().for_each(|segment| scene.give(segment));
    let gone = [(); 4].map(|()| scene.retire_one());
    assert_eq!(gone, [Some((2, 2)), Some((3, 3)), Some((0, 0)), None]);
    assert_eq!(scene.usage(), (2 * NODES, 2 * NODES));
    assert_eq!((scene.slab.size(), scene.slab.may_retire()), (2, false));
    scene.give(4);
    assert_eq!((scene.retire_one(), scene.slab.size()), (Some((4, 4)), 1));
}

/// The era tells a segment from the former segment in its place.
#[test]
fn a_place_is_used_again_by_a_segment_of_another_era() {
    let mut scene = Scene::full(3);
    scene.give(1);
    let before = scene.retire_one();
    assert_eq!((before, scene.usage().0), (Some((1, 1)), 2 * NODES - 1));
    let id = scene.take();
    assert_eq!(id as usize, NODES);
    let stay = Stay::pinned(id, &scene.who);
    assert_eq!(scene.slab.get(&stay).map(|(_, era)| era), Some(3));
    assert_eq!(scene.usage(), (3 * NODES - 1, 2 * NODES - 1 + WORD_NODES));
}

/// The last half of the eras is for segments that stay, so that the eras cannot run out.
#[test]
fn no_segment_goes_when_there_are_too_few_eras() {
    let scene = Scene::full(2);
    scene.give(1);
    // Ordering: Relaxed, there is one thread.
    scene.slab.next_era.store(LAST_ERA_GIVEN_BACK + 1, Ordering::Relaxed);
    assert_eq!(scene.retire_one(), None);
    assert!(!scene.slab.may_retire());
    // Ordering: Relaxed, there is one thread.
    scene.slab.next_era.store(LAST_ERA_GIVEN_BACK, Ordering::Relaxed);
    assert_eq!(scene.retire_one(), Some((1, 1)));
}

/// A producer that adds a segment is stopped at each of its atomic operations: no segment can be
/// found that is not counted, so the advancer takes none away that is not.
#[cfg(shardwheel_stall)]
#[test]
fn a_segment_is_counted_before_it_is_found() {
    use crate::sync::stall::{Stop, disarm};

    for step in 0.. {
        let (who, stop) = (Epochs::new().join(), Stop::after(step));
        let slab = &Slab::<Large>::new().expect("there is memory");
        let (has_stopped, found, counted) = std::thread::scope(|scope| {
            scope.spawn(move || {
                let who = who;
                stop.arm();
                assert!(slab.take(&mut FreeWord::default(), &who, 0).is_ok());
                disarm();
                stop.release();
            });
            let has_stopped = stop.is_reached();
            let found = (0..slab.segments.height()).filter(|&index| !slab.segments.is_empty(index));
            let outcome = (has_stopped, found.count(), slab.size());
            stop.release();
            outcome
        });
        assert!(counted >= found, "step {step}: {found} segments, {counted} counted");
        if !has_stopped {
            assert_eq!((found, counted), (1, 1));
            return;
        }
    }
}

#[test]
fn the_node_taken_last_goes_back() {
    let mut scene = Scene::full(0);
    for expected in 1..=WORD_NODES as NodeId + 3 {
        let owned = scene.slab.take(&mut scene.free, &scene.who, 0).expect("there is memory");
        let id = owned.id();
        Slab::put_back(&mut scene.free, owned);
        assert_eq!((id, scene.take()), (expected, expected));
    }
}

/// A segment that is in use again keeps its mark until the advancer looks there, and is marked again
/// by the thread that completes it.
#[test]
fn a_segment_that_is_in_use_again_stays() {
    let mut scene = Scene::full(2);
    scene.give(1);
    assert_eq!(scene.take() as usize, NODES);
    assert!(scene.slab.may_retire());
    assert_eq!((scene.retire_one(), scene.slab.may_retire()), (None, false));
    scene.give_bits(Segment::<Large>::WORDS, !0);
    assert_eq!(scene.retire_one(), Some((1, 1)));
}

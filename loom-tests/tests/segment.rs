//! The free nodes of a segment, and the segment's end: hazard 7.

#![cfg(any(shardwheel_loom, shardwheel_model))]
#![allow(missing_docs)]

use std::sync::Arc;

use shardwheel::Scheduler;
use shardwheel::testing::{FreeNodes, LoneNode, LoneSlab, SlabUser};
use shardwheel_loom_tests::{Ledger, Payload, model, small_shard, thread};

/// A node is freed while a producer is about to take the other free nodes of the same word. A new
/// payload must not be put in before the last one is out, and no node is lost.
#[test]
fn hazard_7_a_node_is_handed_out_that_was_freed_just_now() {
    model(|| {
        let (ledger, node, free) = (Ledger::new(2), Arc::new(LoneNode::new()), Arc::new(FreeNodes::new()));
        let all = free.take().unwrap();
        let last = all & all.wrapping_neg();
        free.give(all & !last);
        node.arm(1, ledger.payload(0)).unwrap();
        let all_of = (Arc::clone(&node), Arc::clone(&free), ledger.clone());
        let producer = thread::spawn(move || {
            let (node, free, ledger) = all_of;
            let taken = free.take().unwrap_or(0);
            let key = (taken & last != 0).then(|| node.arm(2, ledger.payload(1)).unwrap());
            (taken, key)
        });
        drop(node.fire().inspect(|payload| ledger.fired(payload.number())));
        free.give(last);
        let (taken, key) = producer.join().unwrap();
        let left = free.take().unwrap_or(0);
        assert_eq!((taken | left, taken & left), (all, 0));
        let key = key.unwrap_or_else(|| node.arm(2, ledger.payload(1)).unwrap());
        assert!(ledger.cancelled(node.cancel(key)));
        ledger.balance();
    });
}

/// A node is freed while a producer finds that the segment has no free node, and marks that. The
/// next producer that looks finds the node, and no further segment is made.
#[test]
fn hazard_7_a_segment_has_a_free_node_just_when_it_is_found_to_have_none() {
    model(|| {
        let capacity = |scheduler: &Scheduler<Payload>| scheduler.stats().node_capacity;
        let ledger = Ledger::new(5);
        let (scheduler, mut advancer) = small_shard();
        // All nodes of the first segment. Natively the segment has more nodes, and this model
        // checks nothing.
        for number in 0..3 {
            scheduler.schedule(1, ledger.payload(number)).unwrap();
        }
        let one_segment = capacity(&scheduler);
        assert_eq!(ledger.advance(&mut advancer, 1), 3);
        // The freed nodes go back to their segment.
        ledger.advance(&mut advancer, 1);
        let producer = {
            let (scheduler, payload) = (scheduler.clone(), ledger.payload(3));
            thread::spawn(move || drop(scheduler.schedule(1, payload)))
        };
        ledger.advance(&mut advancer, 1);
        producer.join().unwrap();
        let before = capacity(&scheduler);
        scheduler.schedule(2, ledger.payload(4)).unwrap();
        // Unless the producer has taken the freed nodes, which are all of that word.
        assert!(before == one_segment || capacity(&scheduler) == before);
        ledger.advance(&mut advancer, 2);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// Two producers give back the last nodes of a segment, while the advancer looks for an empty one.
/// The segment is empty afterwards, and goes: one of the two has marked it.
#[test]
fn hazard_7_two_producers_complete_a_segment() {
    model(|| {
        let (slab, mut advancer) = LoneSlab::new();
        let slab = Arc::new(slab);
        let mut user = slab.user();
        user.take(&slab);
        let other = user.split(&slab);
        // The mark from when the segment was new.
        assert!(!advancer.take_one(&slab));
        let give = |mut user: SlabUser| {
            let slab = Arc::clone(&slab);
            thread::spawn(move || user.give_back(&slab))
        };
        let producers = [give(user), give(other)];
        let mut gone = u32::from(advancer.take_one(&slab));
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        gone += u32::from(advancer.take_one(&slab));
        assert_eq!((gone, slab.segments()), (1, 1));
    });
}

/// A producer takes nodes of an empty segment while the advancer takes the segment, and gives them
/// back. It has nodes of a segment that is there, and no empty segment is forgotten.
#[test]
fn hazard_7_a_node_is_taken_of_a_segment_that_goes() {
    model(|| {
        let (slab, mut advancer) = LoneSlab::new();
        let slab = Arc::new(slab);
        let producer = {
            let slab = Arc::clone(&slab);
            thread::spawn(move || {
                let mut user = slab.user();
                user.take(&slab);
                user.give_back(&slab);
            })
        };
        advancer.take_one(&slab);
        producer.join().unwrap();
        while advancer.take_one(&slab) {}
        assert_eq!(slab.segments(), 1);
    });
}

//! What the advancer answers and keeps, on one thread.

use super::*;
use crate::shard::advancer::earliest::INBOX_LOOK;
use crate::shard::advancer::overdue::KEPT_BUFFER;
use crate::shard::node::NIL;
use crate::shard::support::{schedule, small};
use crate::{Config, shard};

/// How many ticks an idle shard takes to give back three quarters of its memory, with `advances`
/// advances to each tick.
fn ticks_to_give_back(advances: usize) -> Tick {
    let (scheduler, mut advancer) = crate::shard::<[u8; 4096]>(&crate::Config::default());
    let schedule = |deadline| assert!(scheduler.schedule(deadline, [0; 4096]).is_ok());
    schedule(1 << 40);
    (0..256 * 40).for_each(|_| schedule(5));
    assert_eq!(advancer.advance(5).count(), 256 * 40);
    let mut has_gone = |now: &Tick, left: usize| {
        (0..advances).for_each(|_| assert_eq!(advancer.advance(*now).count(), 0));
        scheduler.shared.slab.size() <= left
    };
    let begin = (6..10_000).find(|now| has_gone(now, 32)).expect("memory goes back");
    (begin + 1..10_000).find(|now| has_gone(now, 2)).expect("memory goes back") - begin
}

#[test]
fn a_tick_gives_back_one_segment_at_most_however_many_advances_it_has() {
    assert_eq!([1, 2, 3].map(|advances| ticks_to_give_back(advances) >= 30), [true; 3]);
}

/// A producer that has counted its timer and has not put it into a list is no reason to wake at the
/// end of time.
#[test]
fn a_timer_that_is_only_counted_has_no_expiration() {
    let (scheduler, mut advancer) = small();
    assert!(scheduler.schedule(20, 0).is_ok());
    assert_eq!((1..=20).map(|now| advancer.advance(now).count()).sum::<usize>(), 1);
    scheduler.shared.lanes.enter().parts().0.tally.scheduled.add(1);
    assert_eq!(advancer.next_expiration(), None);
}

/// A tick with nothing to do puts off the background work, and a producer that asks for a sweep
/// brings it forward.
#[test]
fn an_idle_tick_does_no_upkeep() {
    let (scheduler, mut advancer) = crate::shard::<u32>(&crate::Config::default());
    assert!(scheduler.schedule(1 << 30, 0).is_ok());
    (1..5_000).for_each(|now| drop(advancer.advance(now)));
    let left = advancer.upkeep.due_in;
    assert!(left > 1);
    drop(advancer.advance(5_000));
    assert_eq!(advancer.upkeep.due_in, left - 1);
    // Ordering: Relaxed, there is one thread.
    scheduler.shared.dead.sweep_requested.store(true, crate::sync::Ordering::Relaxed);
    drop(advancer.advance(5_001));
    assert!(!scheduler.shared.is_sweep_requested() && advancer.upkeep.due_in > left);
}

#[test]
fn late_timers_are_looked_at_up_to_a_number() {
    let (scheduler, mut advancer) = small();
    drop(advancer.advance(100));
    schedule(&scheduler, 50, 1);
    schedule(&scheduler, 60, INBOX_LOOK - 2);
    assert_eq!(advancer.next_expiration(), Some(50));
    schedule(&scheduler, 40, 1);
    assert_eq!(advancer.next_expiration(), Some(100), "there may be any among so many");
}

#[test]
fn the_next_expiration_counts_no_cancelled_timer_that_is_late() {
    let (scheduler, mut advancer) = small();
    drop(advancer.advance(100));
    let key = scheduler.schedule(30, 0).expect("open");
    schedule(&scheduler, 70, 1);
    assert!(scheduler.cancel(key).is_some());
    assert_eq!(advancer.next_expiration(), Some(70));
}

#[test]
fn a_large_buffer_is_given_back() {
    let (scheduler, mut advancer) = small();
    drop(advancer.advance(9));
    for (late, is_kept) in [(KEPT_BUFFER / 2, true), (KEPT_BUFFER, true), (KEPT_BUFFER + 1, false)] {
        schedule(&scheduler, 3, late);
        let mut drain = advancer.advance(9);
        assert!(drain.next().is_some());
        drop(drain);
        let capacity = advancer.hands.overdue.capacity();
        assert!(capacity >= late, "it is in use");
        assert_eq!(advancer.advance(9).count(), late - 1);
        assert_eq!(advancer.hands.overdue.capacity(), if is_kept { capacity } else { 0 }, "{late} were late");
    }
}

/// Nodes become reusable as timers fire.
#[test]
fn nodes_are_used_again() {
    const DRAIN: usize = 1 << 13;
    let (scheduler, mut advancer) = shard::<u32>(&Config::default());
    for now in 1..=40 {
        schedule(&scheduler, now, DRAIN);
        assert_eq!(advancer.advance(now).count(), DRAIN);
    }
    assert!(scheduler.stats().node_capacity < 32 * DRAIN, "{:?}", scheduler.stats());
}

/// Late timers fire in the order of their deadlines, and those of one tick in the order in which
/// they were scheduled. So does a timer that is put off meanwhile.
#[test]
fn late_timers_fire_in_order() {
    let (scheduler, mut advancer) = small();
    drop(advancer.advance(9));
    let late = [(7, 0), (2, 1), (4, 2), (4, 3), (3, 4), (3, 5), (4, 6)];
    let keys = late.map(|(deadline, number)| scheduler.schedule(deadline, number).expect("open"));
    let mut drain = advancer.advance(9);
    let mut fire = |count| drain.by_ref().take(count).map(|fired| fired.payload).collect::<Vec<_>>();
    assert_eq!(fire(1), [1]);
    // By now they are sorted.
    assert_eq!(scheduler.reschedule(keys[4], 5), Some(keys[4]));
    assert_eq!(scheduler.reschedule(keys[5], 9), Some(keys[5]));
    assert_eq!(fire(9), [2, 3, 6, 4, 0, 5]);
}

/// A timer goes to its bucket, and to the inbox only if the bucket is sealed.
#[test]
fn what_is_in_time_is_not_on_the_inbox() {
    let (scheduler, mut advancer) = shard::<u32>(&Config::default());
    drop(advancer.advance(20));
    assert_eq!(advancer.sealed, 23);
    for deadline in [24, 25, 40, 1 << 40, Tick::MAX] {
        schedule(&scheduler, deadline, 1);
        assert_eq!(advancer.shared.inbox.peek(), NIL, "{deadline}");
    }
    for deadline in 20..24 {
        schedule(&scheduler, deadline, 1);
        assert!(advancer.shared.inbox.peek() != NIL && !scheduler.is_empty());
        assert_eq!(advancer.advance(deadline).count(), 1);
    }
    assert_eq!(advancer.advance(Tick::MAX).count(), 5);
    assert!(scheduler.is_empty());
}

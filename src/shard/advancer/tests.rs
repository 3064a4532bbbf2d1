//! What the advancer answers and keeps, on one thread.

use std::sync::Arc as Counted;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;
use crate::shard::advancer::earliest::INBOX_LOOK;
use crate::shard::advancer::overdue::KEPT_BUFFER;
use crate::shard::node::NIL;
use crate::shard::support::{cancel, schedule, small};
use crate::{Config, shard};

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Counted<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Woken {
    /// How often the advancer's own call of `next_expiration` wakes it.
    fn by_next_expiration(advancer: &mut Advancer<u32>) -> usize {
        let woken = Counted::new(Self::default());
        advancer.register_waker(&Waker::from(Counted::clone(&woken)));
        let _ = advancer.next_expiration();
        woken.0.load(Ordering::SeqCst)
    }
}

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

/// An event loop, whose clock leaps, does the background work at one of many advances.
#[test]
fn leaps_leave_out_the_upkeep() {
    let (scheduler, mut advancer) = crate::shard::<u32>(&crate::Config::default());
    (0..100).for_each(|i| assert!(scheduler.schedule(10_000 + 100 * i, 0).is_ok()));
    (1..10_000).for_each(|now| drop(advancer.advance(now)));
    let mut done = 0;
    for i in 0..100 {
        let left = advancer.upkeep.due_in;
        assert_eq!(advancer.advance(10_000 + 100 * i).count(), 1);
        done += u32::from(advancer.upkeep.due_in >= left);
        advancer.check_invariants();
    }
    assert!((1..=20).contains(&done), "{done} of 100");
    assert_eq!(advancer.next_expiration(), None);
}

#[test]
fn the_next_expiration_is_that_of_what_is_in_hand() {
    let (scheduler, mut advancer) = small();
    assert_eq!(advancer.next_expiration(), None);
    schedule(&scheduler, 7, 2);
    assert_eq!(advancer.advance(6).count(), 0);
    assert_eq!(advancer.next_expiration(), Some(7));
    assert!(advancer.advance(9).next().is_some());
    assert_eq!(advancer.next_expiration(), Some(7), "one was left in the drain");
    schedule(&scheduler, 2, 1);
    assert_eq!(advancer.next_expiration(), Some(2), "late already");
    drop(advancer.advance(9));
    assert_eq!(advancer.next_expiration(), Some(2), "late, and looked at");
    assert_eq!(advancer.advance(9).map(|fired| fired.deadline).collect::<Vec<_>>(), [2, 7]);
    assert_eq!(advancer.next_expiration(), None);
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

/// A clock that jumps to an overflow bucket places its timers that are not due, and frees the
/// nodes of cancelled ones.
#[test]
fn a_bucket_is_cascaded_where_the_clock_leaps() {
    let (scheduler, mut advancer) = small();
    let keys: Vec<_> = (16..20).flat_map(|deadline| schedule(&scheduler, deadline, 5)).collect();
    // Both nodes are dead.
    cancel(&scheduler, &[keys[7], keys[12]]);
    for (now, fired) in [(16, 5), (17, 4), (18, 4), (19, 5)] {
        let drain = advancer.advance(now);
        assert_eq!(drain.inspect(|fired| assert_eq!(fired.deadline, now)).count(), fired);
        assert_eq!(scheduler.stats().cascaded, 15, "all but those that were due at once");
    }
}

/// A timer that is scheduled during a drain, for a tick that the clock has reached, fires at the
/// next advance, whichever tick it is.
#[test]
fn what_is_due_during_a_drain_is_not_lost() {
    for deadline in 4..=12 {
        let (scheduler, mut advancer) = small();
        schedule(&scheduler, 5, 2);
        let mut drain = advancer.advance(12);
        assert!(drain.next().is_some());
        schedule(&scheduler, deadline, 1);
        assert_eq!(drain.count(), 1);
        let next = advancer.advance(12).map(|fired| fired.deadline);
        assert_eq!(next.collect::<Vec<_>>(), [deadline]);
        advancer.check_invariants();
    }
}

/// A timer that is already due leaves no trace in the wheels.
#[test]
fn what_is_late_marks_no_bucket() {
    let (scheduler, mut advancer) = small();
    drop(advancer.advance(20));
    schedule(&scheduler, 20, 1);
    schedule(&scheduler, 0, 1);
    assert_eq!(advancer.shared.next_expiration(21, Tick::MAX), None);
    assert_eq!(advancer.advance(20).count(), 2);
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

/// Within a window the advancer does not look at the shared wheels, and fires what it has found in
/// them when it sealed the window, what its own wheels hold and what comes meanwhile.
#[test]
fn a_window_fires_each_timer_at_its_tick() {
    let (scheduler, mut advancer) = shard::<u32>(&Config::default());
    // Each check of the invariants walks the shard.
    let ticks = if cfg!(miri) { 16 } else { 200 };
    for start in (0..ticks).step_by(4) {
        // What was there before the window, and what comes at its first tick.
        for deadline in [start, start + 2, start + 3] {
            schedule(&scheduler, deadline, 1);
        }
        for now in start..start + 4 {
            let due = advancer.advance(now).map(|fired| fired.deadline).collect::<Vec<_>>();
            let expected = [1, 0, 1, 2][(now - start) as usize];
            assert_eq!(due, vec![now; expected], "at {now}");
            if now == start {
                schedule(&scheduler, start + 3, 1);
            }
            advancer.check_invariants();
        }
    }
}

/// A sleeping advancer is woken by a timer before its answer: a new timer, one in a reused node,
/// and a late one.
#[test]
fn an_earlier_timer_wakes() {
    let (scheduler, mut advancer) = shard::<u32>(&Config::default());
    let woken = Counted::new(Woken::default());
    let count = |sleep: Option<Tick>, advancer: &mut Advancer<u32>, deadlines: [Tick; 2]| {
        advancer.register_waker(&Waker::from(Counted::clone(&woken)));
        assert_eq!(advancer.next_expiration(), sleep);
        deadlines.map(|deadline| {
            schedule(&scheduler, deadline, 1);
            woken.0.load(Ordering::SeqCst)
        })
    };
    assert_eq!(count(None, &mut advancer, [100, 200]), [1, 1]);
    assert_eq!(count(Some(100), &mut advancer, [100, 99]), [1, 2]);
    assert_eq!(advancer.advance(150).count(), 3);
    assert_eq!(count(Some(200), &mut advancer, [250, 140]), [2, 3]);
    assert_eq!(advancer.advance(250).count(), 3);
    let key = scheduler.schedule(300, 0).expect("open");
    assert!(scheduler.cancel(key).is_some());
    let reused = scheduler.stats().reused;
    assert_eq!(count(None, &mut advancer, [300, 301]), [4, 4]);
    assert_eq!(scheduler.stats().reused, reused + 1);
}

/// The canceller that asks for a sweep wakes the advancer, and later cancellers do not.
#[test]
fn a_sweep_is_asked_for_once() {
    let (scheduler, mut advancer) = shard::<u32>(&Config::default());
    let keys = schedule(&scheduler, 1 << 40, 20_000);
    let woken = Counted::new(Woken::default());
    for now in 1..=2 {
        advancer.register_waker(&Waker::from(Counted::clone(&woken)));
        for key in &keys[(now - 1) * 10_000..][..10_000] {
            cancel(&scheduler, &[*key]);
            let asked = usize::from(advancer.shared.is_sweep_requested());
            assert_eq!(woken.0.load(Ordering::SeqCst), now - 1 + asked);
        }
        assert!(advancer.shared.is_sweep_requested());
        drop(advancer.advance(now as Tick));
    }
}

/// If a sweep is asked for while there is no waker, `next_expiration` wakes the advancer. It also
/// does so while a pass is under way, unless no sweep is due any more.
#[test]
fn the_next_expiration_wakes_for_a_sweep() {
    let (scheduler, mut advancer) = shard::<u32>(&Config::default());
    let keys = schedule(&scheduler, 1 << 40, 20_000);
    assert_eq!(Woken::by_next_expiration(&mut advancer), 0);
    cancel(&scheduler, &keys[..14_000]);
    assert!(advancer.shared.is_sweep_requested() && !advancer.sweep.is_under_way());
    assert_eq!(Woken::by_next_expiration(&mut advancer), 1, "it is owed");
    drop(advancer.advance(0));
    assert!(
        !advancer.shared.is_sweep_requested() && advancer.is_sweeping() && advancer.shared.is_sweep_due()
    );
    assert_eq!(Woken::by_next_expiration(&mut advancer), 1, "it is under way, and there is too much");
    while advancer.shared.is_sweep_due() {
        drop(advancer.advance(0));
    }
    assert!(advancer.sweep.is_under_way());
    assert_eq!(Woken::by_next_expiration(&mut advancer), 0, "there is not too much");
    while advancer.is_sweeping() {
        drop(advancer.advance(0));
    }
    cancel(&scheduler, &keys[14_000..]);
    assert_eq!(scheduler.stats().pending, 0);
}

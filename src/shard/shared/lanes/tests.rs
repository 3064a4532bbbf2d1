//! Which thread gets which lane.

use std::cell::RefCell;

use super::*;
use crate::shard::shared::advancer_waker::AdvancerWaker;
use crate::sync::Ordering;
use crate::sync::plain::{Arc, AtomicU32};
use crate::{Config, shard};

/// The number of lanes of a kind.
fn count(lanes: &Lanes, kind: Kind) -> usize {
    lanes.iter().filter(|lane| lane.kind == kind).count()
}

fn lanes() -> Lanes {
    Lanes::new(Arc::new(AdvancerWaker::new().expect("there is memory"))).expect("there is memory")
}

/// The address of the lane that the calling thread gets.
fn address(lanes: &Lanes) -> usize {
    at(&lanes.enter().look().0)
}

fn at(lane: &Lane) -> usize {
    std::ptr::from_ref(lane) as usize
}

#[test]
fn a_thread_keeps_its_lane_and_another_takes_it_over() {
    let lanes = lanes();
    let first = std::thread::scope(|scope| {
        let own = || {
            let lane = address(&lanes);
            assert_eq!(lane, address(&lanes));
            lane
        };
        scope.spawn(own).join().unwrap()
    });
    assert_eq!(address(&lanes), first);
    assert_eq!(count(&lanes, Kind::Own), 1);
}

#[test]
fn a_call_within_a_call_gets_another_lane() {
    let lanes = lanes();
    let (outer, inner) = (lanes.enter(), lanes.enter());
    assert_ne!(at(&outer.look().0), at(&inner.look().0));
    drop((outer, inner));
    assert_eq!([Kind::Own, Kind::Common, Kind::Extra].map(|kind| count(&lanes, kind)), [1, 1, 0]);
}

#[test]
fn a_thread_enters_its_own_lane_also_after_a_call_to_another_shard() {
    let (lanes, others) = (lanes(), lanes());
    for _ in 0..3 {
        assert!(!lanes.enter().look().1 && !others.enter().look().1);
    }
    let outer = lanes.enter();
    assert!(!others.enter().look().1);
    let inner = lanes.enter();
    assert!(inner.look().1 && at(&outer.look().0) != at(&inner.look().0));
}

#[test]
fn a_lane_has_one_owner() {
    let lanes = lanes();
    drop(lanes.acquire().expect("there is memory"));
    let own = || lanes.iter().filter(|lane| lane.may_keep()).find_map(|lane| lane.try_own());
    let owning = own().expect("it has been given up");
    assert!(own().is_none());
    drop(owning);
    assert!(own().is_some());
}

/// A call that is never ended keeps its lane: the call might still use what the owner has.
#[test]
fn a_lane_whose_call_was_leaked_is_not_taken_over() {
    let lanes = lanes();
    std::thread::scope(|scope| scope.spawn(|| std::mem::forget(lanes.enter())).join().unwrap());
    assert!(lanes.iter().filter(|lane| lane.may_keep()).all(|lane| lane.try_own().is_none()));
    assert!(!lanes.enter().look().1);
    assert_eq!(count(&lanes, Kind::Own), 2);
}

#[test]
fn one_revocation_is_under_way_at_a_time() {
    let lanes = lanes();
    drop(lanes.enter());
    let mut revoked = 0;
    lanes.revoke(|_| {
        lanes.revoke(|_| unreachable!("another is under way"));
        assert!(lanes.enter().look().1);
        revoked += 1;
    });
    assert_eq!(revoked, u32::from(crate::hardware::has_membarrier()));
    assert!(!lanes.enter().look().1);
}

/// Runs `look` in that many threads at once. Each has entered a lane before, and keeps its lane
/// until all have looked.
fn at_once(lanes: &Lanes, threads: usize, look: impl Fn(&Lane, bool) + Sync) {
    let (together, look) = (std::sync::Barrier::new(threads), &look);
    std::thread::scope(|scope| {
        let spawn = |_| {
            scope.spawn(|| {
                drop(lanes.enter());
                together.wait();
                let entered = lanes.enter();
                look(&entered.look().0, entered.look().1);
                together.wait();
            })
        };
        let all = (0..threads).map(spawn).collect::<Vec<_>>();
        // The end of the scope alone does not wait until the threads have given their lanes up.
        all.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    });
}

#[test]
fn so_many_threads_own_a_lane_and_the_others_are_lent_one() {
    let lanes = lanes();
    let owners = AtomicU32::new(0);
    at_once(&lanes, KEEPERS as usize + 20, |lane, is_borrowed| {
        assert!(lane.may_keep() != is_borrowed && lane.may_hold != is_borrowed);
        // Ordering: Relaxed, a count.
        owners.fetch_add(u32::from(!is_borrowed), Ordering::Relaxed);
    });
    // Ordering: Relaxed, the threads have been joined.
    assert_eq!((owners.load(Ordering::Relaxed), count(&lanes, Kind::Own)), (KEEPERS, KEEPERS as usize));
    // Those threads have ended, so another thread can own a lane.
    assert!(!lanes.enter().look().1);
    assert_eq!(count(&lanes, Kind::Own), KEEPERS as usize);
}

#[test]
fn there_are_as_many_common_lanes_as_calls_at_once() {
    let lanes = lanes();
    let lend = |calls| drop((0..calls).map(|_| lanes.enter_lent()).collect::<Vec<_>>());
    (0..100).for_each(|_| lend(1));
    assert_eq!(count(&lanes, Kind::Common), 1);
    (0..10).for_each(|_| lend(STAYING + 5));
    assert_eq!([Kind::Common, Kind::Extra].map(|kind| count(&lanes, kind)), [STAYING as usize, 5]);
}

/// The advancer tidies the lanes that are lent now and then, and has to recount its lane totals
/// when they are lent again. Lanes that are lent often stay as they are.
#[test]
fn a_lane_that_was_tidied_is_noted_when_it_is_lent() {
    let lanes = lanes();
    let lend = || (0..STAYING + 1).map(|_| lanes.enter_lent()).collect::<Vec<_>>();
    drop(lend());
    let changes = lanes.changes();
    drop(lend());
    assert_eq!(lanes.changes(), changes);
    let tidied = lanes.iter().filter_map(|lane| lane.tidy().map(|mut tidied| tidied.take_nodes())).count();
    assert_eq!(tidied, 1);
    let mut all = lend();
    assert_eq!(lanes.changes(), changes + 1);
    all.iter_mut().for_each(|entered| drop(entered.parts().1.participant.pin()));
}

#[test]
fn lanes_end_with_their_list_and_their_last_owner() {
    let lanes = lanes();
    let owned = [(); 2].map(|()| lanes.acquire().expect("there is memory"));
    let turnover = Arc::downgrade(&lanes.turnover);
    let [first, second] = owned;
    assert!(first.is_alive() && second.is_alive());
    drop(first);
    drop(lanes);
    assert!(!second.is_alive() && turnover.strong_count() == 1);
    drop(second);
    assert_eq!(turnover.strong_count(), 0);
}

/// A thread local that is dropped after the cache of lanes enters a lane.
#[test]
fn a_thread_that_ends_borrows_a_lane() {
    struct Last(Arc<Lanes>, std::sync::mpsc::Sender<bool>);

    impl Drop for Last {
        fn drop(&mut self) {
            let entered = self.0.enter();
            let is_owned = self.0.iter().any(|lane| at(&lane) == at(&entered.look().0))
                && entered.look().0.try_own().is_none();
            self.1.send(entered.look().1 && is_owned).unwrap();
        }
    }

    thread_local!(static LAST: RefCell<Option<Last>> = const { RefCell::new(None) });

    let lanes = Arc::new(lanes());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Set first, because thread locals are dropped in reverse order.
            LAST.set(Some(Last(Arc::clone(&lanes), sender)));
            assert!(!lanes.enter().look().1);
        });
    });
    assert_eq!(receiver.recv(), Ok(true));
}

/// A call on a common lane that moves no timer leaves no free nodes there.
#[test]
fn a_common_lane_keeps_no_nodes_after_a_move_in_vain() {
    let (scheduler, _advancer) = shard::<u32>(&Config::default());
    let key = scheduler.schedule(1_000, 0).expect("open");
    let nodes = scheduler.stats().nodes;
    // The thread's own lane is in use, so the calls are lent a common lane.
    let outer = scheduler.shared.lanes.enter();
    assert_eq!(scheduler.cancel(key), Some(0));
    assert_eq!(scheduler.relocate_recurring(key, 10), None);
    drop(outer);
    assert_eq!(scheduler.stats().nodes, nodes);
}

/// A thread that was lent an extra lane returns to the common lanes, which cost the advancer
/// nothing.
#[test]
fn extra_lanes_are_used_while_the_common_ones_are_taken() {
    let (scheduler, mut advancer) = shard::<u32>(&Config::default());
    let lanes = &scheduler.shared.lanes;
    let own = lanes.enter();
    drop((0..STAYING + 1).map(|_| lanes.enter()).collect::<Vec<_>>());
    let begin = lanes.changes();
    for tick in 1..=100 {
        drop(lanes.enter());
        assert_eq!(advancer.advance(tick).count(), 0);
    }
    assert!(lanes.changes() - begin <= 2, "{}", lanes.changes() - begin);
    drop(own);
}

#[test]
fn there_are_no_more_common_lanes_than_stay() {
    for _ in 0..20 {
        let (scheduler, _advancer) = shard::<u32>(&Config::default());
        let barrier = std::sync::Barrier::new(24);
        std::thread::scope(|scope| {
            for _ in 0..24 {
                scope.spawn(|| {
                    barrier.wait();
                    drop(scheduler.shared.lanes.enter_lent());
                });
            }
        });
        let common = scheduler.shared.lanes.iter().filter(|lane| lane.kind == Kind::Common).count();
        assert!(common <= STAYING as usize, "{common}");
    }
}

/// Threads that cancel timers one after the other report their dead nodes in time.
#[test]
fn unreported_dead_nodes_stay_within_their_share() {
    let (scheduler, _advancer) = shard::<u32>(&Config::default());
    let barrier = std::sync::Barrier::new(64);
    std::thread::scope(|scope| {
        for number in 0..64 {
            let (scheduler, barrier) = (&scheduler, &barrier);
            scope.spawn(move || {
                let keys: Vec<_> =
                    (0..100).map(|_| scheduler.schedule(1_000_000, 0).expect("open")).collect();
                scheduler.cancel(keys[0]).expect("pending");
                barrier.wait();
                keys[1..].iter().take(number).for_each(|&key| assert!(scheduler.cancel(key).is_some()));
                barrier.wait();
            });
        }
    });
    let unreported = scheduler.shared.dead() as i64 - scheduler.shared.reported_dead();
    assert!((0..=i64::from(UNREPORTED)).contains(&unreported), "{unreported}");
}

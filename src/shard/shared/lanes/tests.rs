//! Which thread gets which lane.

use std::cell::RefCell;

use super::*;
use crate::shard::shared::advancer_waker::AdvancerWaker;
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
    std::ptr::from_ref(lanes.enter().lane) as usize
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
    assert!(!std::ptr::eq(outer.lane, inner.lane));
    drop((outer, inner));
    assert_eq!([Kind::Own, Kind::Common, Kind::Extra].map(|kind| count(&lanes, kind)), [1, 1, 0]);
}

#[test]
fn a_thread_enters_its_own_lane_also_after_a_call_to_another_shard() {
    let (lanes, others) = (lanes(), lanes());
    for _ in 0..3 {
        assert!(!lanes.enter().is_borrowed && !others.enter().is_borrowed);
    }
    let outer = lanes.enter();
    assert!(!others.enter().is_borrowed);
    let inner = lanes.enter();
    assert!(inner.is_borrowed && !std::ptr::eq(outer.lane, inner.lane));
}

#[test]
fn a_lane_has_one_owner() {
    let lanes = lanes();
    let lane = lanes.acquire().expect("there is memory");
    let try_own = || lane.try_own();
    assert!(!try_own());
    lane.release(OWNED);
    assert!(try_own() && !try_own());
}

/// Runs `look` in that many threads at once. Each has entered a lane before, and keeps its lane
/// until all have looked.
fn at_once(lanes: &Lanes, threads: usize, look: impl Fn(&Lane, bool) + Sync) {
    let (together, look) = (std::sync::Barrier::new(threads), &look);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                drop(lanes.enter());
                together.wait();
                let entered = lanes.enter();
                look(entered.lane, entered.is_borrowed);
                together.wait();
            });
        }
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
    assert!(!lanes.enter().is_borrowed);
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
    let tidied = lanes.handles().filter_map(|lane| lane.tidy().map(|mut tidied| tidied.take_nodes())).count();
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
    assert_eq!((first.count(), second.count()), (2, 2));
    drop(first);
    drop(lanes);
    assert_eq!((second.count(), turnover.strong_count()), (1, 1));
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
            let is_owned =
                self.0.iter().any(|lane| std::ptr::eq(lane, entered.lane)) && !entered.lane.try_own();
            self.1.send(entered.is_borrowed && is_owned).unwrap();
        }
    }

    thread_local!(static LAST: RefCell<Option<Last>> = const { RefCell::new(None) });

    let lanes = Arc::new(lanes());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Set first, because thread locals are dropped in reverse order.
            LAST.set(Some(Last(Arc::clone(&lanes), sender)));
            assert!(!lanes.enter().is_borrowed);
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

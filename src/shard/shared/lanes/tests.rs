//! Which lane a call has.

use std::sync::Barrier;
use std::thread;

use super::*;
use crate::sync::plain::AtomicU64;

fn lanes() -> Lanes {
    Lanes::new().0
}

fn is_own(lanes: &Lanes) -> bool {
    lanes.enter().lane.is_own
}

#[test]
fn a_thread_has_one_lane_and_a_call_within_a_call_another() {
    let lanes = lanes();
    let first = std::ptr::from_ref(lanes.enter().lane);
    let outer = lanes.enter();
    assert!(outer.lane.is_own && std::ptr::eq(outer.lane, first));
    let (inner, innermost) = (lanes.enter(), lanes.enter());
    assert!(!inner.lane.is_own && !innermost.lane.is_own && !std::ptr::eq(inner.lane, innermost.lane));
    drop((inner, innermost, outer));
    assert!(std::ptr::eq(lanes.enter().lane, first));
    assert_eq!(lanes.iter().count(), 3);
}

#[test]
fn threads_that_have_ended_cost_nothing() {
    let lanes = lanes();
    // Other tests' threads take numbers meanwhile, up to one for each.
    for _ in 0..1_000 {
        thread::scope(|scope| drop(scope.spawn(|| drop(lanes.enter())).join()));
    }
    assert!(lanes.iter().count() <= NUMBERS + 1, "{}", lanes.iter().count());
}

#[test]
fn threads_beyond_the_numbers_share_lanes() {
    const THREADS: usize = 2 * NUMBERS;
    let (lanes, all, own) = (lanes(), Barrier::new(THREADS), AtomicU64::new(0));
    thread::scope(|scope| {
        for nth in 0..THREADS {
            let (lanes, all, own) = (&lanes, &all, &own);
            scope.spawn(move || {
                // Not the process's numbers, which other tests' threads need.
                thread_number::set(nth.min(NUMBERS));
                let entered = lanes.enter();
                // Ordering: Relaxed, a count that is read after the threads have ended.
                own.fetch_add(entered.lane.is_own.into(), Ordering::Relaxed);
                all.wait();
            });
        }
    });
    // Ordering: Relaxed, as above.
    assert_eq!(own.load(Ordering::Relaxed), NUMBERS as u64);
    assert!(lanes.common.iter().count() >= NUMBERS);
}

/// A call that another thread's lane refuses does not end that thread's call.
#[test]
fn a_lane_in_use_is_refused_and_stays_in_use() {
    let lanes = lanes();
    let (outer, inner) = (lanes.enter(), lanes.enter());
    for lane in [outer.lane, inner.lane] {
        assert!(lane.enter_common().is_none() && lane.enter().is_none());
        // Ordering: Relaxed, there is one thread.
        assert!(lane.busy.load(Ordering::Relaxed));
    }
}

#[test]
fn a_revoked_lane_refuses_calls_until_it_is_restored() {
    let (lanes, reclaimer) = Lanes::new();
    assert!(is_own(&lanes));
    let mut taken = 0;
    lanes.revoke(&reclaimer, |_| {
        taken += 1;
        assert!(!is_own(&lanes), "its nodes are being taken");
    });
    assert!(is_own(&lanes));
    let within = lanes.enter();
    lanes.revoke(&reclaimer, |_| taken += 1);
    drop(within);
    assert_eq!(taken, usize::from(hardware::has_membarrier()), "not from a call");
}

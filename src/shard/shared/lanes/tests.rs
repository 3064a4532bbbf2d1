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

/// Threads that live one after the other use up no numbers.
#[test]
fn a_number_is_free_again_when_its_thread_has_ended() {
    let number = |_| thread::spawn(thread_number::get).join().expect("it does not panic");
    assert!((0..2 * NUMBERS).map(number).skip(NUMBERS).any(|number| number < NUMBERS));
}

/// A call that another thread's lane refuses does not end that thread's call.
/// ThreadSanitizer reports a race if the end of a call does not release what it has left, or the
/// next thread's call does not acquire it.
#[test]
fn what_a_call_leaves_in_a_common_lane_is_there_for_the_next() {
    const CALLS: u64 = if cfg!(miri) { 20 } else { 1_000 };
    let (lanes, begun) = (lanes(), AtomicU64::new(0));
    let enter_common = || {
        thread_number::set(NUMBERS);
        lanes.enter()
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // Ordering: Relaxed. A barrier would order what the tool is to find unordered.
                begun.fetch_add(1, Ordering::Relaxed);
                while begun.load(Ordering::Relaxed) < 2 {
                    thread::yield_now();
                }
                (0..CALLS).for_each(|_| enter_common().parts().1.reported += 1);
            });
        }
    });
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut all = lanes.common.iter().map(|_| enter_common()).collect::<Vec<_>>();
            assert_eq!(all.iter_mut().map(|entered| entered.parts().1.reported).sum::<u64>(), 2 * CALLS);
        });
    });
}

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

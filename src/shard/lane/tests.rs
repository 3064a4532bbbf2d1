//! Who is given which lane.

use std::cell::RefCell;

use super::*;

fn lanes() -> Lanes {
    Lanes::new(Arc::new(Bell::new())).expect("there is memory")
}

/// Where the lane is that the calling thread is given.
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
    assert_eq!(lanes.iter().filter(|lane| !lane.is_spare).count(), 1);
}

#[test]
fn a_call_within_a_call_gets_another_lane() {
    let lanes = lanes();
    let (outer, inner) = (lanes.enter(), lanes.enter());
    assert!(!std::ptr::eq(outer.lane, inner.lane));
    drop((outer, inner));
    assert_eq!(lanes.iter().filter(|lane| !lane.is_spare).count(), 2);
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
    let lane = lanes.acquire(true).expect("there is memory");
    let try_own = || lane.try_own_if(|_| true);
    assert!(!try_own());
    lane.release(OWNED);
    assert!(try_own() && !try_own());
}

#[test]
fn so_many_lanes_may_hold_a_node() {
    let lanes = lanes();
    // Ordering: Relaxed, there is one thread.
    lanes.holding.store(true, Ordering::Relaxed);
    let entered: Vec<_> = (0..KEEPERS + 6).map(|_| lanes.enter()).collect();
    assert_eq!(entered.iter().filter(|entered| entered.lane.may_hold).count(), KEEPERS as usize);
}

#[test]
fn lanes_end_with_their_list_and_their_last_owner() {
    let lanes = lanes();
    let owned = [(); 2].map(|()| lanes.acquire(true).expect("there is memory"));
    let turnover = Arc::downgrade(&lanes.turnover);
    let [first, second] = owned;
    assert_eq!((first.count(), second.count()), (2, 2));
    drop(first);
    drop(lanes);
    assert_eq!((second.count(), turnover.strong_count()), (1, 1));
    drop(second);
    assert_eq!(turnover.strong_count(), 0);
}

/// The lane of who gets no memory for one: it is lent, call by call, and nobody else is given it.
#[test]
fn the_spare_lane_is_borrowed_by_one_at_a_time() {
    let lanes = lanes();
    let all: Vec<_> = (0..5).map(|_| lanes.acquire(true).expect("there is memory")).collect();
    assert!(all.iter().all(|lane| !lane.is_spare));
    let spare = lanes.borrow_spare().expect("it is free");
    assert!(spare.is_spare && lanes.borrow_spare().is_none());
    drop(Entered::new(&spare, true));
    assert!(lanes.borrow_spare().is_some());
}

/// The advancer tidies the lanes that a shard begins with, and they take part in the epochs all the same.
#[test]
fn the_first_lane_and_the_spare_one_need_no_memory() {
    let lanes = lanes();
    for lane in lanes.handles() {
        let (_, held) = lane.tidy().expect("nobody owns it").take_nodes();
        assert!(held.is_none());
    }
    let first = lanes.acquire(true).expect("there is memory");
    let spare = lanes.borrow_spare().expect("it is free");
    for lane in [first, spare] {
        // SAFETY: the lane is owned here.
        drop(unsafe { &*lane.local.get() }.participant.pin());
    }
    assert_eq!(lanes.iter().count(), 2);
}

/// A thread local that is dropped after the cache of lanes enters a lane.
#[test]
fn a_thread_that_ends_borrows_a_lane() {
    struct Last(Arc<Lanes>, std::sync::mpsc::Sender<bool>);

    impl Drop for Last {
        fn drop(&mut self) {
            let entered = self.0.enter();
            let is_owned =
                self.0.iter().any(|lane| std::ptr::eq(lane, entered.lane)) && entered.lane.tidy().is_none();
            self.1.send(entered.is_borrowed && is_owned).unwrap();
        }
    }

    thread_local!(static LAST: RefCell<Option<Last>> = const { RefCell::new(None) });

    let lanes = Arc::new(lanes());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // First, for thread locals are dropped the last one first.
            LAST.set(Some(Last(Arc::clone(&lanes), sender)));
            assert!(!lanes.enter().is_borrowed);
        });
    });
    assert_eq!(receiver.recv(), Ok(true));
}

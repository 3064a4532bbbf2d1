use super::*;
use crate::ManualClock;

/// What the queues and their moved values leave behind is nothing.
#[test]
fn what_has_left_is_forgotten() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().expect("settings within their limits");
    let [hour, moment] = [3_600, 1].map(Duration::from_secs);
    let queue = DelayQueue::new(&timer);
    let keys = [(); 100].map(|()| queue.insert((), hour).expect("it is open"));
    assert!(keys.iter().all(|key| queue.reset(key, moment)));
    assert_eq!(keys.iter().filter_map(|key| queue.remove(key)).take(50).count(), 50);
    clock.advance(moment);
    assert_eq!(std::iter::from_fn(|| queue.try_recv()).count(), 50);
    assert!(queue.moved.is_empty());

    let key = queue.insert((), hour).expect("it is open");
    assert!(queue.reset(&key, moment) && !queue.moved.is_empty());
    drop((0..100).map(|_| DelayQueue::<()>::new(&timer)).collect::<Vec<_>>());
    assert_eq!(timer.first_shard().watchers(), 1);
    drop(timer.shutdown());
    assert_eq!(queue.unexpired().count(), 1);
    assert!(queue.moved.is_empty());
}

/// The list of all values has about twice as many records as the queue has values, and what it
/// takes for a burst it gives back. Values that were refused are not listed.
#[test]
fn the_list_of_all_values_is_swept() {
    use std::collections::HashSet;

    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).max_pending(20_100).build();
    let timer = timer.expect("settings within their limits");
    let queue = DelayQueue::new(&timer);
    let insert = |delay| queue.insert((), Duration::from_secs(delay)).expect("there is room");
    let standing: HashSet<_> = (0..100).map(|_| insert(7_200)).collect();
    let is_small = |limit| {
        let (records, room) = queue.list.size();
        let is_right = (100..limit).contains(&records) && room < 4 * limit;
        assert!(is_right, "{records} records, room for {room}");
    };
    for _ in 0..10_000 {
        queue.remove(&insert(3_600));
    }
    is_small(600);
    for is_received in [false, true] {
        let burst: Vec<_> = (0..20_000).map(|_| insert(3_600)).collect();
        while queue.insert((), Duration::from_secs(3_600)).is_ok() {}
        assert!(queue.list.size().0 >= 20_100);
        if is_received {
            clock.advance(Duration::from_secs(3_600));
            while queue.try_recv().is_some() {}
        } else {
            // Those first that were inserted last: the sweeps pass by all others.
            burst.iter().rev().for_each(|key| assert!(queue.remove(key).is_some()));
            let others = queue.iter().map(|(key, _)| key).filter(|key| !standing.contains(key));
            others.for_each(|key| _ = queue.remove(&key));
        }
        is_small(2_000);
        assert_eq!(queue.iter().map(|(key, _)| key).collect::<HashSet<_>>(), standing);
    }
    drop(timer.shutdown());
    assert!((0..10_000).all(|_| queue.insert((), Duration::from_secs(1)).is_err()));
    is_small(2_000);
    assert_eq!((queue.iter().len(), queue.unexpired().count()), (0, 100));
}

/// Each second value that leaves was refused: the turns of these sweep as well.
#[test]
fn a_full_queue_is_swept() {
    let timer = Timer::builder().clock(ManualClock::new()).max_pending(100).build();
    let queue = DelayQueue::new(&timer.expect("settings within their limits"));
    let insert = || queue.insert((), Duration::from_secs(3_600));
    let mut keys: std::collections::VecDeque<_> = std::iter::from_fn(|| insert().ok()).collect();
    assert!(insert().is_err(), "the second one: the turns are those of refused values");
    for _ in 0..10_000 {
        keys.pop_front().iter().for_each(|key| _ = queue.remove(key));
        keys.extend(insert());
        assert!(insert().is_err());
    }
    assert!(queue.list.size().0 < 600, "{:?}", queue.list.size());
}

/// The next deadline looks at what is new, and at few others, also while each value leaves or is
/// moved. What the order takes is bounded by the values, and goes back after a burst.
#[test]
fn the_next_deadline_does_not_look_at_all_values() {
    use std::cell::Cell;

    let timer = Timer::builder().clock(ManualClock::new()).build().expect("it is valid");
    let queue = DelayQueue::new(&timer);
    let insert = |i: u64| queue.insert((), Duration::from_millis(1_000_000 + i)).expect("open");
    let looks = Cell::new(0);
    let finds = |i: u64| {
        let look = |record| {
            looks.set(looks.get() + 1);
            queue.due(record)
        };
        let earliest = queue.list.earliest(queue.moved.take_unsorted(), look);
        assert_eq!(earliest, Some(1_000_000 + i));
        looks.take()
    };
    let keys: Vec<_> = (0..10_000).map(insert).collect();
    assert_eq!(finds(0), 10_001, "the first call looks at each, and again at the first");
    for (i, key) in (1..5_000).zip(&keys) {
        assert!(queue.remove(key).is_some() && finds(i) <= 3);
        insert(20_000);
        assert!(finds(i) <= 3);
    }
    let total: u32 = (0..100_000_u64)
        .map(|i| {
            let key = &keys[5_000 + (i % 5_000) as usize];
            assert!(queue.reset(key, Duration::from_millis(1_200_000 - i)));
            finds(4_999)
        })
        .sum();
    assert!(total < 10 * 100_000, "{total} looks");
    assert!(queue.list.order_len() < 5 * queue.len(), "{} in the heap", queue.list.order_len());
    queue.drain().take(9_900).for_each(drop);
    assert!(queue.list.order_len() < 4_000, "{} in the heap", queue.list.order_len());
}

/// A record that a producer pushes while another thread has the lock is listed and swept as
/// well.
#[test]
fn a_producer_does_not_wait_for_the_lists_lock() {
    let queue = DelayQueue::new(&Timer::builder().clock(ManualClock::new()).build().expect("it is valid"));
    let insert = || queue.insert((), Duration::from_secs(3_600)).expect("it is open");
    let keys = queue.list.while_locked(|| [(); 300].map(|()| insert()));
    assert_eq!(queue.iter().len(), 300);
    let others = queue.list.while_locked(|| [(); 300].map(|()| insert()));
    keys.iter().chain(&others).for_each(|key| assert!(queue.remove(key).is_some()));
    assert!(queue.list.size().0 < 300);
}

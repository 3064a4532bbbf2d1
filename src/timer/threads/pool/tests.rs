//! Tests of the drivers' steps, at times that the tests choose.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use super::*;

const MILLIS: Nanos = 1_000_000;
/// Patience and leeway.
const LIMITS: (Nanos, Nanos) = (9 * MILLIS, MILLIS);

/// A pool with a thread for each shard; the shards are due at these times.
fn pool<const SHARDS: usize>(dues: [Nanos; SHARDS]) -> Arc<Pool<()>> {
    let pool = Pool::new(Notifier::new(SHARDS, SHARDS, LIMITS), [(); SHARDS]);
    for (shard, due) in dues.into_iter().enumerate() {
        pool.take(shard).expect("it is in");
        assert!(pool.put_back(shard, (), due).is_none());
    }
    pool
}

/// What the driver does, which has just been woken: the shard that it visits, or until when it
/// sleeps.
fn wakes(pool: &Pool<()>, driver: usize, now: Nanos) -> Result<usize, Nanos> {
    goes_on(pool, driver, now, now)
}

fn goes_on(pool: &Pool<()>, driver: usize, now: Nanos, awake_since: Nanos) -> Result<usize, Nanos> {
    match pool.next(driver, now, awake_since) {
        Step::Visit(shard, ()) => Ok(shard),
        Step::Sleep(until) => Err(until),
        Step::Leave => unreachable!("it is not stopped"),
    }
}

/// The driver comes back from a shard, which is due again at `due`.
fn comes_back(pool: &Pool<()>, shard: usize, due: Nanos) {
    assert!(pool.put_back(shard, (), due).is_none());
}

/// Whether the driver is notified while `code` runs.
fn is_notified(pool: &Pool<()>, driver: usize, code: impl FnOnce()) -> bool {
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    pool.notifier.parker(driver).clear();
    pool.notifier.parker(driver).register(&Waker::from(Arc::clone(&flag)));
    code();
    flag.0.load(Ordering::Relaxed)
}

#[test]
fn the_leader_visits_all_shards_of_a_tick() {
    let pool = pool([5 * MILLIS; 4]);
    assert_eq!(wakes(&pool, 0, MILLIS), Err(5 * MILLIS));
    for shard in 0..4 {
        let now = 5 * MILLIS + shard as Nanos * MILLIS / 4;
        assert_eq!(goes_on(&pool, 0, now, 5 * MILLIS), Ok(shard));
        comes_back(&pool, shard, 6 * MILLIS);
    }
    assert_eq!(wakes(&pool, 0, 6 * MILLIS - 1), Err(6 * MILLIS));
    assert_eq!([2, 3].map(|spare| wakes(&pool, spare, 6 * MILLIS)), [Err(NEVER); 2], "no thread is called");
}

#[test]
fn a_leader_that_leaves_shards_a_tick_late_calls_one_thread() {
    let pool = pool([5 * MILLIS; 4]);
    assert_eq!(wakes(&pool, 0, 7 * MILLIS), Ok(0), "it was woken late, and has not worked for a tick");
    comes_back(&pool, 0, NEVER);
    assert_eq!(wakes(&pool, 3, 7 * MILLIS), Err(NEVER));
    assert_eq!(goes_on(&pool, 0, 8 * MILLIS, 7 * MILLIS), Ok(1));
    assert_eq!((wakes(&pool, 2, 8 * MILLIS), wakes(&pool, 3, 8 * MILLIS)), (Err(NEVER), Ok(2)));
    comes_back(&pool, 2, 9 * MILLIS);
    comes_back(&pool, 1, 9 * MILLIS);
    assert_eq!(goes_on(&pool, 0, 8 * MILLIS, 7 * MILLIS), Ok(3));
    assert_eq!(wakes(&pool, 3, 8 * MILLIS), Err(9 * MILLIS), "the leader is in a visit: this one leads");
    comes_back(&pool, 3, 9 * MILLIS);
    assert_eq!(wakes(&pool, 0, 8 * MILLIS), Err(18 * MILLIS), "it is the watchdog");
}

#[test]
fn a_leader_that_sleeps_is_late_for_its_second_shard() {
    let pool = pool([5 * MILLIS, 7 * MILLIS, NEVER]);
    assert_eq!(wakes(&pool, 1, 0), Err(16 * MILLIS));
    assert_eq!(wakes(&pool, 2, 0), Err(NEVER), "the first spare thread is the watchdog");
    pool.notifier.request(2);
    assert_eq!(wakes(&pool, 1, 0), Err(14 * MILLIS));
}

#[test]
fn one_shard_with_timers_needs_no_watchdog() {
    let pool = pool([5 * MILLIS, NEVER]);
    assert_eq!(wakes(&pool, 1, 0), Err(NEVER));
    assert_eq!(wakes(&pool, 0, 5 * MILLIS), Ok(0));
    assert_eq!(wakes(&pool, 1, 20 * MILLIS), Err(NEVER));
}

#[test]
fn a_driver_that_does_not_come_back_keeps_what_it_is_at() {
    let pool = pool([5 * MILLIS, 7 * MILLIS, 30 * MILLIS]);
    assert_eq!(wakes(&pool, 0, 6 * MILLIS), Ok(0));
    assert_eq!(wakes(&pool, 1, 7 * MILLIS), Err(16 * MILLIS));
    assert_eq!(wakes(&pool, 1, 16 * MILLIS), Ok(1));
    assert_eq!(wakes(&pool, 2, 16 * MILLIS), Err(39 * MILLIS), "the next one is the watchdog");
    comes_back(&pool, 1, 40 * MILLIS);
    assert_eq!(wakes(&pool, 1, 17 * MILLIS), Err(30 * MILLIS), "it leads");
    comes_back(&pool, 0, 20 * MILLIS);
    assert_eq!(wakes(&pool, 0, 18 * MILLIS), Err(39 * MILLIS), "it is spare, and the watchdog");
    assert_eq!(wakes(&pool, 1, 20 * MILLIS), Ok(0), "it was woken for that");
}

/// A shard that is due at each visit does not keep the others waiting.
#[test]
fn a_search_begins_after_the_shard_that_was_visited_last() {
    let pool = pool([0; 3]);
    for shard in [0, 1, 2, 0, 1] {
        assert_eq!(goes_on(&pool, 0, MILLIS / 2, MILLIS / 2), Ok(shard));
        comes_back(&pool, shard, 0);
    }
}

#[test]
fn a_request_wakes_a_watchdog_that_would_look_too_late() {
    let pool = pool([5 * MILLIS, 7 * MILLIS, NEVER]);
    assert_eq!(wakes(&pool, 0, 5 * MILLIS), Ok(0));
    assert_eq!(wakes(&pool, 1, 6 * MILLIS), Err(16 * MILLIS));
    assert!(!is_notified(&pool, 1, || pool.notifier.ensure_look(15 * MILLIS)), "it looks within the leeway");
    assert!(is_notified(&pool, 1, || pool.notifier.request(2)), "of shard 2 it would look at 14 ms");
    assert_eq!(wakes(&pool, 1, 6 * MILLIS), Err(14 * MILLIS));
    assert!(!is_notified(&pool, 1, || pool.notifier.request(2)));
}

#[test]
fn a_worker_that_comes_back_wakes_a_leader_that_sleeps_for_longer() {
    let pool = pool([5 * MILLIS, 7 * MILLIS]);
    assert_eq!(wakes(&pool, 0, 6 * MILLIS), Ok(0));
    assert_eq!(wakes(&pool, 1, 16 * MILLIS), Ok(1));
    comes_back(&pool, 1, 40 * MILLIS);
    assert_eq!(wakes(&pool, 1, 17 * MILLIS), Err(40 * MILLIS), "it leads");
    comes_back(&pool, 0, 20 * MILLIS);
    assert!(is_notified(&pool, 1, || _ = wakes(&pool, 0, 18 * MILLIS)));
}

#[test]
fn a_thread_that_has_ended_is_not_waited_for() {
    let pool = pool([NEVER; 2]);
    pool.stop();
    assert!(matches!(pool.next(0, MILLIS, MILLIS), Step::Leave));
    assert!(!pool.has_ended(0, Duration::ZERO), "it has only left");
    pool.note_ended(0);
    assert!(pool.has_ended(0, Duration::ZERO));
}

/// The callbacks of shards that are late may block, too.
#[test]
fn shards_that_are_late_get_a_thread_each() {
    let pool = pool([0, 0, 0, NEVER, 0]);
    assert_eq!(wakes(&pool, 0, MILLIS), Ok(0));
    assert_eq!(
        [1, 4, 3, 2].map(|driver| wakes(&pool, driver, 10 * MILLIS)),
        [Ok(1), Ok(2), Ok(4), Err(NEVER)]
    );
}

#[test]
fn a_shard_that_is_closed_is_left_to_the_end() {
    let pool = pool([0; 2]);
    for shard in 0..2 {
        pool.take(shard).expect("it is in");
        pool.put_closed(shard, ());
    }
    assert!(pool.take(0).is_none());
    assert_eq!(wakes(&pool, 0, MILLIS), Err(NEVER), "no shard is visited");
    pool.stop();
    assert_eq!([(); 3].map(|()| pool.take_to_end()), [Some(()), Some(()), None]);
}

#[test]
fn a_watchdog_that_becomes_a_driver_wakes_the_next_one() {
    let pool = pool([5 * MILLIS, 7 * MILLIS, 30 * MILLIS]);
    assert_eq!(wakes(&pool, 0, 6 * MILLIS), Ok(0));
    assert_eq!(wakes(&pool, 1, 7 * MILLIS), Err(16 * MILLIS));
    assert!(is_notified(&pool, 2, || assert_eq!(wakes(&pool, 1, 16 * MILLIS), Ok(1))));
}

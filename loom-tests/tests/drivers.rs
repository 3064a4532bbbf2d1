//! The drivers of a timer: producers request visits while drivers go to sleep, block, or hand the
//! lead on, and while the timer is shut down (hazards 14 to 16).
//!
//! A driver that blocks is a thread that does not go on: it ends in the middle of its visit. A
//! wake-up that is lost leaves a thread parked for ever, which loom reports as a deadlock.

#![cfg(any(shardwheel_loom, shardwheel_model))]
#![allow(missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::testing::drivers::{DriverPool, DriverStep, NEVER};
use shardwheel_loom_tests::{model, thread};

const PATIENCE: u64 = 10;
const NOW: u64 = 5;
/// A time at which what is due at `NOW` is late.
const LATE: u64 = NOW + PATIENCE;

/// A worker is the number of its shard, and counts its ends.
struct Worker(Arc<AtomicUsize>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A pool whose shards are due at these times.
fn pool<const SHARDS: usize>(dues: [u64; SHARDS]) -> (Arc<DriverPool<Worker>>, Arc<AtomicUsize>) {
    let ends = Arc::new(AtomicUsize::new(0));
    let workers = [(); SHARDS].map(|()| Worker(Arc::clone(&ends)));
    (Arc::new(DriverPool::new(workers, |shard| dues[shard], PATIENCE)), ends)
}

/// Drives at that time, until the driver has visited the shard. Nothing is due after a visit.
fn drive_until(pool: &DriverPool<Worker>, driver: usize, now: u64, shard: usize) {
    while visit_next(pool, driver, now) != shard {}
}

/// Drives at that time until the driver has visited a shard.
fn visit_next(pool: &DriverPool<Worker>, driver: usize, now: u64) -> usize {
    let (shard, worker) = begin_visit(pool, driver, now);
    assert!(pool.put_back(shard, worker, NEVER).is_none());
    shard
}

/// Drives at that time until the driver visits a shard. If the caller keeps the worker, the driver
/// blocks.
fn begin_visit(pool: &DriverPool<Worker>, driver: usize, now: u64) -> (usize, Worker) {
    loop {
        match pool.next(driver, now, now) {
            DriverStep::Visit(shard, worker) => return (shard, worker),
            DriverStep::Sleep(until) => {
                assert!(until > now, "it would look again and again");
                pool.wait(driver);
            }
            DriverStep::Leave => unreachable!("the pool is not stopped"),
        }
    }
}

/// Waits until the driver looks in time, `PATIENCE` from now, or visits a shard.
fn watch(pool: &DriverPool<Worker>, driver: usize, now: u64) {
    loop {
        match pool.next(driver, now, now) {
            DriverStep::Sleep(until) if until > now + PATIENCE => pool.wait(driver),
            _ => return,
        }
    }
}

/// Two producers request visits while the leader looks and goes to sleep. It makes both visits.
#[test]
fn hazard_14_requests_against_the_leaders_sleep() {
    model(|| {
        let (pool, _) = pool([NEVER; 2]);
        let producers = [0, 1].map(|shard| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.request(shard))
        });
        pool.set_thread(0);
        let first = visit_next(&pool, 0, NOW);
        drive_until(&pool, 0, NOW, 1 - first);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

/// The leader is blocked. A producer requests a visit while the watchdog takes a shard over, and with
/// it the lead. The producer may notify the wrong driver; the watchdog makes the visit all the same.
#[test]
fn hazard_14_a_request_while_the_watchdog_takes_the_lead() {
    model(|| {
        let (pool, _) = pool([NOW, NOW, NEVER]);
        let _blocked = begin_visit(&pool, 0, NOW);
        let requests = Arc::clone(&pool);
        let producer = thread::spawn(move || requests.request(2));
        pool.set_thread(1);
        drive_until(&pool, 1, LATE, 2);
        producer.join().unwrap();
    });
}

/// A producer requests a visit while a driver comes back that has lost the lead, and becomes spare,
/// and the new leader goes to sleep. One of the two makes the visit.
#[test]
fn hazard_14_a_request_while_a_driver_becomes_spare() {
    model(|| {
        let (pool, _) = pool([NOW, NOW]);
        let (first, worker) = begin_visit(&pool, 0, NOW);
        let (second, other) = begin_visit(&pool, 1, LATE);
        let requests = Arc::clone(&pool);
        let producer = thread::spawn(move || requests.request(first));
        let comes_back = Arc::clone(&pool);
        let spare = thread::spawn(move || {
            comes_back.set_thread(0);
            drop(comes_back.put_back(first, worker, NEVER));
            wait_for_a_visit(&comes_back, 0);
        });
        pool.set_thread(1);
        drop(pool.put_back(second, other, NEVER));
        wait_for_a_visit(&pool, 1);
        producer.join().unwrap();
        spare.join().unwrap();
    });
}

/// Drives until this or another driver visits a shard.
fn wait_for_a_visit(pool: &DriverPool<Worker>, driver: usize) {
    loop {
        match pool.next(driver, LATE, LATE) {
            DriverStep::Sleep(_) => pool.wait(driver),
            DriverStep::Visit(..) => return pool.stop(),
            DriverStep::Leave => return,
        }
    }
}

/// A driver that has lost the lead comes back with a worker that is due soon, while the new leader
/// goes to sleep. One of the two sleeps until then.
#[test]
fn hazard_14_a_worker_comes_back_while_the_leader_goes_to_sleep() {
    model(|| {
        let (pool, _) = pool([NOW, NOW]);
        let (first, worker) = begin_visit(&pool, 0, NOW);
        let (second, other) = begin_visit(&pool, 1, LATE);
        let comes_back = Arc::clone(&pool);
        let driver = thread::spawn(move || {
            drop(comes_back.put_back(first, worker, LATE + 1));
            match comes_back.next(0, LATE, LATE) {
                DriverStep::Sleep(NEVER) => {}
                DriverStep::Sleep(_) => comes_back.stop(),
                _ => unreachable!("nothing is due"),
            }
        });
        pool.set_thread(1);
        drop(pool.put_back(second, other, NEVER));
        while let DriverStep::Sleep(NEVER) = pool.next(1, LATE, LATE) {
            pool.wait(1);
        }
        driver.join().unwrap();
    });
}

/// A producer requests visits to two shards. The leader blocks in one of them, while the watchdog
/// goes to sleep. The watchdog looks in time.
#[test]
fn hazard_15_a_visit_that_blocks_against_the_watchdogs_sleep() {
    model(|| {
        let (pool, _) = pool([NEVER; 2]);
        let watches = Arc::clone(&pool);
        let watchdog = thread::spawn(move || {
            watches.set_thread(1);
            watch(&watches, 1, NOW);
        });
        pool.request(0);
        pool.request(1);
        let _blocked = begin_visit(&pool, 0, NOW);
        watchdog.join().unwrap();
    });
}

/// The leader blocks in a visit. A producer requests one to another shard meanwhile, and the watchdog
/// goes to sleep. The watchdog looks in time.
#[test]
fn hazard_15_a_request_against_a_visit_that_blocks() {
    model(|| {
        let (pool, _) = pool([NOW, NEVER]);
        let watches = Arc::clone(&pool);
        let watchdog = thread::spawn(move || {
            watches.set_thread(1);
            watch(&watches, 1, NOW);
        });
        let requests = Arc::clone(&pool);
        let producer = thread::spawn(move || requests.request(1));
        let _blocked = begin_visit(&pool, 0, NOW);
        producer.join().unwrap();
        watchdog.join().unwrap();
    });
}

/// A driver that does not lead brings a worker back, while the leader blocks in a visit. The driver
/// knows when that worker is due: it leads from then on, or it is the watchdog.
#[test]
fn hazard_15_a_worker_comes_back_while_the_leader_blocks() {
    model(|| {
        let (pool, _) = pool([NOW, NOW]);
        // The leader has overslept.
        let (first, worker) = begin_visit(&pool, 1, LATE);
        let blocks = Arc::clone(&pool);
        let leader = thread::spawn(move || blocks.next(0, LATE, LATE));
        pool.set_thread(1);
        assert!(pool.put_back(first, worker, LATE + 1).is_none());
        watch(&pool, 1, LATE);
        leader.join().unwrap();
    });
}

/// The leader is blocked. The watchdog takes a shard over and blocks, too, while a producer requests
/// a visit to the last shard. The next watchdog looks in time.
#[test]
fn hazard_15_a_request_while_the_watchdog_blocks() {
    model(|| {
        let (pool, _) = pool([NOW, NOW, NEVER]);
        let _blocked = begin_visit(&pool, 0, NOW);
        let blocks = Arc::clone(&pool);
        let watchdog = thread::spawn(move || begin_visit(&blocks, 1, LATE));
        let requests = Arc::clone(&pool);
        let producer = thread::spawn(move || requests.request(2));
        pool.set_thread(2);
        watch(&pool, 2, LATE);
        watchdog.join().unwrap();
        producer.join().unwrap();
    });
}

/// A shutdown while two drivers visit shards. Each worker is ended once, and each driver leaves.
#[test]
fn hazard_16_a_shutdown_against_visits() {
    model(|| {
        let (pool, ends) = pool([NOW, NEVER]);
        let drivers = [0, 1].map(|driver| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                pool.set_thread(driver);
                drive_until_the_end(&pool, driver);
            })
        });
        // What a shutdown does not close it has taken the advancer of.
        [0, 1].into_iter().for_each(|shard| _ = pool.close(shard));
        pool.stop();
        drivers.into_iter().for_each(|driver| driver.join().unwrap());
        assert_eq!(ends.load(Ordering::Relaxed), 2);
    });
}

fn drive_until_the_end(pool: &DriverPool<Worker>, driver: usize) {
    loop {
        match pool.next(driver, NOW, NOW) {
            DriverStep::Visit(shard, worker) => drop(pool.put_back(shard, worker, NEVER)),
            DriverStep::Sleep(_) => pool.wait(driver),
            DriverStep::Leave => break,
        }
    }
    while pool.take_to_end().map(drop).is_some() {}
}

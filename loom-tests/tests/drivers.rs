//! The drivers of a timer: shards change hands while producers ring them, drivers block, and the
//! timer is shut down (hazards 14 to 16).
//!
//! A driver that blocks is a thread that does not go on: it ends in the middle of its round. A
//! wake-up that is lost leaves a thread parked for ever, which loom reports as a deadlock.

#![allow(missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::model::drivers::{Crew, IDLE, Step};
use shardwheel_loom_tests::{model, thread};

const PATIENCE: u64 = 10;
const NOW: u64 = 5;

/// A worker is the number of its shard, and counts its ends.
struct Worker(Arc<AtomicUsize>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Two shards in which nothing is pending, both held by driver 0.
fn crew() -> (Arc<Crew<Worker>>, Arc<AtomicUsize>) {
    let ends = Arc::new(AtomicUsize::new(0));
    let crew = Crew::new([(); 2].map(|()| Worker(Arc::clone(&ends))), PATIENCE);
    put_off(&crew, IDLE);
    (Arc::new(crew), ends)
}

/// Makes both shards due at that time.
fn put_off(crew: &Crew<Worker>, due: u64) {
    for shard in [0, 1] {
        let worker = crew.take(0, shard).expect("driver 0 holds it");
        crew.put_back(shard, worker, due);
    }
}

/// As [`crew`]. The stand-by has announced that it looks soon, as it does while timers fire.
fn watched_crew() -> Arc<Crew<Worker>> {
    let (crew, _) = crew();
    put_off(&crew, NOW - 2);
    assert_eq!(crew.next_look(1), NOW - 2 + PATIENCE);
    put_off(&crew, IDLE);
    crew
}

/// Drives until the driver visits shard 1.
fn drive_until_shard_1(crew: &Crew<Worker>, driver: usize) {
    loop {
        if crew.begin_round(driver, NOW) != Step::Visit {
            crew.wait(driver);
            continue;
        }
        let worker = crew.take(driver, 1);
        let is_found = worker.is_some();
        if let Some(worker) = worker {
            crew.put_back(1, worker, IDLE);
        }
        crew.end_round(driver);
        if is_found {
            return;
        }
    }
}

/// A producer rings a shard while its driver hands it over. The new holder visits it.
#[test]
fn hazard_14_a_ring_against_a_hand_over() {
    model(|| {
        let (crew, _) = crew();
        let rings = Arc::clone(&crew);
        let producer = thread::spawn(move || rings.ring(1));
        let drives = Arc::clone(&crew);
        let second = thread::spawn(move || {
            drives.take_seat(1);
            drive_until_shard_1(&drives, 1);
        });
        crew.take_seat(0);
        assert!(crew.hand_over(1, 0, 1));
        crew.ring(1);
        producer.join().unwrap();
        second.join().unwrap();
    });
}

/// A producer rings a shard while the stand-by takes it from a driver that is blocked. The producer
/// may notify the wrong driver; the stand-by visits the shard all the same.
#[test]
fn hazard_14_a_ring_against_a_take_over() {
    model(|| {
        let (crew, _) = crew();
        let rings = Arc::clone(&crew);
        let producer = thread::spawn(move || rings.ring(1));
        crew.take_seat(1);
        assert!(crew.take_over(1, 0, 1));
        drive_until_shard_1(&crew, 1);
        producer.join().unwrap();
    });
}

/// A driver takes a worker while the stand-by takes the shard over. One of the two has it.
#[test]
fn hazard_14_a_visit_against_a_take_over() {
    model(|| {
        let (crew, _) = crew();
        let visits = Arc::clone(&crew);
        let first = thread::spawn(move || visits.take(0, 1).map(|worker| visits.put_back(1, worker, IDLE)));
        let has_taken_over = crew.take_over(1, 0, 1);
        let worker = crew.take(1, 1);
        assert_eq!(worker.is_some(), has_taken_over, "the holder has it");
        if let Some(worker) = worker {
            crew.put_back(1, worker, IDLE);
        }
        let visited = first.join().unwrap().is_some();
        assert!(visited || has_taken_over);
        let holder = usize::from(has_taken_over);
        assert!(crew.take(1 - holder, 1).is_none() && crew.take(holder, 1).is_some());
    });
}

/// Stands by until a driver could hold a shard up.
fn stand_by(crew: &Crew<Worker>) {
    crew.take_seat(1);
    while crew.begin_round(1, NOW) == Step::StandBy {
        if crew.next_look(1) <= NOW + PATIENCE {
            return;
        }
        crew.wait(1);
    }
    unreachable!("nobody hands it a shard");
}

/// A driver with two shards that are due begins a round and blocks, while the stand-by goes to
/// sleep. The stand-by watches over the round.
#[test]
fn hazard_15_a_round_against_the_stand_bys_sleep() {
    model(|| {
        let crew = watched_crew();
        [0, 1].into_iter().for_each(|shard| crew.ring(shard));
        let stands_by = Arc::clone(&crew);
        let second = thread::spawn(move || stand_by(&stands_by));
        assert_eq!(crew.begin_round(0, NOW), Step::Visit);
        let _blocked = crew.take(0, 0).expect("it was rung");
        second.join().unwrap();
    });
}

/// A driver visits one shard and blocks there. A producer rings another shard of the driver
/// meanwhile, and the stand-by goes to sleep.
#[test]
fn hazard_15_a_ring_against_a_round_that_blocks() {
    model(|| {
        let crew = watched_crew();
        crew.ring(0);
        let stands_by = Arc::clone(&crew);
        let second = thread::spawn(move || stand_by(&stands_by));
        let rings = Arc::clone(&crew);
        let producer = thread::spawn(move || rings.ring(1));
        assert_eq!(crew.begin_round(0, NOW), Step::Visit);
        let _blocked = crew.take(0, 0).expect("it was rung");
        producer.join().unwrap();
        second.join().unwrap();
    });
}

/// A driver visits a shard, puts it back, and blocks in the next one. The stand-by, which the round
/// has woken, finds the first shard: one of the two is always in its slot.
#[test]
fn hazard_15_a_look_while_a_driver_goes_from_shard_to_shard() {
    model(|| {
        let (crew, _) = crew();
        crew.ring(0);
        crew.ring(1);
        crew.begin_round(0, NOW);
        let first = crew.take(0, 0).expect("it is in");
        let visits = Arc::clone(&crew);
        let driver = thread::spawn(move || {
            visits.put_back(0, first, NOW + 1);
            visits.take(0, 1)
        });
        assert_ne!(crew.next_look(1), IDLE, "it sleeps for ever");
        let _blocked = driver.join().unwrap();
    });
}

/// The stand-by gets a shard of its own while a round counts on it, and the round blocks. The next
/// driver without shards watches over it.
#[test]
fn hazard_15_a_round_while_the_stand_by_gets_a_shard() {
    model(|| {
        let ends = Arc::new(AtomicUsize::new(0));
        let crew = Arc::new(Crew::new([(); 3].map(|()| Worker(Arc::clone(&ends))), PATIENCE));
        for shard in [0, 1, 2] {
            let worker = crew.take(0, shard).expect("driver 0 holds it");
            crew.put_back(shard, worker, if shard == 2 { IDLE } else { NOW });
        }
        let blocks = Arc::clone(&crew);
        let first = thread::spawn(move || {
            assert_eq!(blocks.begin_round(0, NOW), Step::Visit);
            blocks.take(0, 0)
        });
        let next = Arc::clone(&crew);
        let third = thread::spawn(move || {
            next.take_seat(2);
            while next.begin_round(2, NOW) == Step::StandBy && next.next_look(2) > NOW + PATIENCE {
                next.wait(2);
            }
        });
        crew.take_seat(1);
        assert!(crew.take_over(2, 0, 1));
        crew.begin_round(1, NOW);
        let _blocked = first.join().unwrap();
        third.join().unwrap();
    });
}

/// A shutdown while a driver hands a shard over. Each worker is ended once, and each driver leaves.
#[test]
fn hazard_16_a_shutdown_against_a_hand_over() {
    model(|| {
        let (crew, ends) = crew();
        let drives = Arc::clone(&crew);
        let first = thread::spawn(move || {
            drives.take_seat(0);
            if drives.hand_over(1, 0, 1) {
                drives.ring(1);
            }
            drive_until_the_end(&drives, 0);
        });
        let drives = Arc::clone(&crew);
        let second = thread::spawn(move || {
            drives.take_seat(1);
            drive_until_the_end(&drives, 1);
        });
        crew.stop();
        if let Some(worker) = crew.take_to_close(1) {
            crew.put_back(1, worker, 0);
            crew.ring(1);
        }
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(ends.load(Ordering::Relaxed), 2);
    });
}

fn drive_until_the_end(crew: &Crew<Worker>, driver: usize) {
    loop {
        match crew.begin_round(driver, NOW) {
            Step::Visit => {
                for shard in [0, 1] {
                    if let Some(worker) = crew.take(driver, shard) {
                        crew.put_back(shard, worker, IDLE);
                    }
                }
                crew.end_round(driver);
            }
            Step::Sleep(_) | Step::StandBy => crew.wait(driver),
            Step::Leave => break,
        }
    }
    crew.leave(driver, drop);
}

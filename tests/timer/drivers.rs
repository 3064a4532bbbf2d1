//! Threads that drive several shards, and which shard a thread schedules on.
//!
//! A shard is known here by its place in `Stats::shards`, a driver by its thread. All tests run in
//! real time. They wait for what must happen, and give it a long time.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use shardwheel::{Drivers, Placement, Timer, TimerBuilder, TimerKey};

use crate::support::ledger::{End, Ledger};
use crate::support::{Built, PATIENCE, after, ms, until};

/// A timer of four shards. The calling thread schedules on all of them in turn.
fn spread() -> TimerBuilder {
    Timer::builder().shards(4).placement(Placement::RoundRobin)
}

/// Schedules one callback on each shard. Returns the threads that run them.
fn threads_of(timer: &Timer) -> HashSet<ThreadId> {
    let (send, receive) = channel();
    for _ in 0..timer.shards() {
        let send = send.clone();
        after(timer, ms(2), move || _ = send.send(thread::current().id()));
    }
    drop(send);
    receive.iter().collect()
}

#[test]
fn one_thread_drives_all_shards_while_there_is_little_work() {
    let timer = spread().built();
    until("the drivers have shared the work", || threads_of(&timer).len() == 1);
    assert!(timer.stats().shards.iter().all(|shard| shard.scheduled > 0), "all shards were used");
}

/// Also where they are pinned, if there are as many cores.
#[test]
fn each_shard_has_its_thread_if_asked_for() {
    let mut builders = vec![(4, spread().drivers(Drivers::OnePerShard))];
    if thread::available_parallelism().map_or(1, usize::from) >= 2 {
        builders.push((2, spread().shards(2).pin_to_cores(true)));
    }
    for (shards, builder) in builders {
        let timer = builder.built();
        // Longer than drivers with little work take to become one.
        let begin = Instant::now();
        while begin.elapsed() < ms(500) {
            assert_eq!(threads_of(&timer).len(), shards);
        }
    }
}

/// A callback blocks while its shard's driver holds other shards in which nothing is pending. Then a
/// timer is scheduled there.
#[test]
fn a_shard_that_was_idle_is_not_held_up_either() {
    let timer = spread().built();
    let (release, wait) = channel();
    let (blocked, is_blocked) = channel();
    let blocks = move || {
        _ = blocked.send(());
        wait.recv_timeout(PATIENCE).is_ok()
    };
    after(&timer, ms(1), move || assert!(blocks(), "the other shard is held up"));
    is_blocked.recv().expect("the callback runs");
    after(&timer, ms(1), move || _ = release.send(()));
    until("the drivers have shared the work", || timer.stats().fired == 2);
    drop(timer.shutdown());
    assert_eq!(timer.stats().panics, 0);
}

/// Callbacks of all shards block at the same time. Each waits for the last of them, so each must have
/// a driver of its own.
#[test]
fn as_many_callbacks_may_block_as_there_are_shards() {
    const SHARDS: usize = 12;
    let timer = Timer::builder().shards(SHARDS).placement(Placement::RoundRobin).built();
    let begun = Arc::new(AtomicUsize::new(0));
    let (done, returned) = channel();
    let due = Instant::now() + ms(5);
    for _ in 0..SHARDS {
        let (begun, done) = (Arc::clone(&begun), done.clone());
        let blocks = move || {
            begun.fetch_add(1, Ordering::Relaxed);
            until("the drivers have shared the work", || begun.load(Ordering::Relaxed) == SHARDS);
            _ = done.send(due.elapsed());
        };
        timer.schedule_at(due, blocks).expect("the timer is open");
    }
    drop(done);
    let late = returned.iter().max();
    println!("{SHARDS} callbacks block at once; all have begun after {late:?}");
    assert_eq!(timer.stats().panics, 0);
    assert!(late.is_some());
}

/// After a split, the work of the first driver ends altogether. It takes the other shard back.
#[test]
fn a_driver_whose_work_has_ended_takes_shards_back() {
    let (timer, threads) =
        (Timer::builder().shards(2).placement(Placement::RoundRobin).built(), Arc::default());
    let busy = keep_busy(&timer, &threads, Duration::from_micros(450));
    until("the drivers have shared the work", || threads.lock().expect("no callback panics").len() > 1);
    // Windows of high load end.
    thread::sleep(ms(300));
    busy.into_iter().for_each(|key| assert!(timer.cancel(key)));
    // Only one shard is in use from now on: either of the two, in turn.
    let names = Arc::new(Mutex::new(HashSet::new()));
    let note = Arc::clone(&names);
    let name = move || _ = note.lock().expect("no callback panics").insert(thread::current().id());
    timer.schedule_every(ms(1), name).expect("the timer is open");
    until("the drivers have shared the work", || {
        names.lock().expect("no callback panics").clear();
        thread::sleep(ms(20));
        let of_the_timer = names.lock().expect("no callback panics").clone();
        let all = threads_of(&timer);
        all.len() == 1 && of_the_timer.is_subset(&all)
    });
}

/// Works for `length` in each tick on each shard.
fn keep_busy(timer: &Timer, threads: &Arc<Mutex<HashSet<ThreadId>>>, length: Duration) -> Vec<TimerKey> {
    let busy = || {
        let threads = Arc::clone(threads);
        move || {
            threads.lock().expect("no callback panics").insert(thread::current().id());
            let begin = Instant::now();
            while begin.elapsed() < length {}
        }
    };
    (0..timer.shards()).map(|_| timer.schedule_every(ms(1), busy()).expect("the timer is open")).collect()
}

/// Callbacks that block for a moment, schedule further ones and end the timer, on eight shards.
#[test]
fn nothing_is_lost_while_shards_change_hands() {
    for round in 0..12 {
        let timer = Timer::builder().shards(8).placement(Placement::RoundRobin).built();
        let ledger = Ledger::with_capacity(4_000);
        thread::scope(|scope| {
            for thread in 0..2 {
                let (timer, ledger) = (&timer, &ledger);
                scope
                    .spawn(move || schedule_all(timer, ledger, fastrand::Rng::with_seed(round * 2 + thread)));
            }
            thread::sleep(ms(15 * round));
            for task in timer.shutdown() {
                drop(task);
            }
        });
        drop(timer);
        ledger.check_drops();
        assert_eq!(ledger.living(), 0, "round {round}");
    }
}

fn schedule_all(timer: &Timer, ledger: &Ledger, mut rng: fastrand::Rng) {
    for _ in 0..1_000 {
        let (payload, blocks) = (ledger.payload(), rng.u32(..100) == 0);
        let weak = timer.clone();
        let callback = move || {
            payload.note(End::Fired);
            if blocks {
                thread::sleep(ms(12));
            }
            drop(weak);
        };
        let scheduled = timer.schedule_after(ms(rng.u64(..60)), callback);
        if let Ok(key) = scheduled
            && rng.u32(..4) == 0
        {
            timer.cancel(key);
        }
    }
}

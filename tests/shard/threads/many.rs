//! Many shards and many threads: what a thread keeps of a shard when either of them ends.

use std::thread;

use fastrand::Rng;
use shardwheel::{Scheduler, Tick};

use super::memory::check_memory;
use super::work::{at_work, hand_back, open, take, times};
use crate::support::ledger::{End, Ledger, Payload};

/// Two threads schedule on more shards than their tables of lanes have room for at first; half of
/// the shards end meanwhile. A key names nothing in another shard, and no shard loses a timer.
#[test]
fn threads_use_more_shards_than_they_cache() {
    const SHARDS: usize = 100;
    let steps = times(40_000);
    let ledger = Ledger::with_capacity(2 * steps);
    let (schedulers, mut advancers): (Vec<_>, Vec<_>) = (0..SHARDS).map(|_| open(8)).unzip();
    let mut ending = advancers.split_off(SHARDS / 2);
    let end_one = || {
        thread::yield_now();
        // The shards end one after the other, evenly over the threads' steps.
        let enough = (SHARDS / 2 - ending.len()) * 2 * steps / (SHARDS / 2);
        if ledger.made() >= enough
            && let Some(mut advancer) = ending.pop()
        {
            take(&mut advancer, 500, usize::MAX);
            hand_back(advancer);
        }
    };
    at_work(2, |seed| visit_shards(&schedulers, &ledger, seed as u64, steps), end_one);
    drop((advancers, ending));
    assert!(schedulers.iter().all(Scheduler::is_empty));
    ledger.check();
}

fn visit_shards(schedulers: &[Scheduler<Payload>], ledger: &Ledger, seed: u64, steps: usize) {
    let (mut rng, mut held) = (Rng::with_seed(seed), Vec::new());
    for _ in 0..steps {
        let (here, deadline) = (rng.usize(..schedulers.len()), rng.u64(..1_000));
        match schedulers[here].schedule(deadline, ledger.payload_due(deadline)) {
            Ok(key) => held.push((here, key)),
            Err(refused) => refused.into_payload().end(End::Refused),
        }
        if held.len() > 200 {
            let (there, key) = held.swap_remove(rng.usize(..held.len()));
            assert!(there == here || schedulers[here].cancel(key).is_none(), "a key of another shard");
            schedulers[there].cancel(key).into_iter().for_each(|payload| payload.end(End::Cancelled));
        }
    }
}

/// Two hundred short-lived threads each schedule a few timers and end: their timers fire, and their
/// free nodes are not lost.
#[test]
fn threads_come_and_go() {
    let (threads, each) = (times(200), 20);
    let ledger = Ledger::with_capacity(threads * each);
    let (scheduler, mut advancer) = open(16);
    for round in 0..threads as Tick / 2 {
        let visit = || {
            let keys = (0..each as Tick).map(|i| (round + i, ledger.payload_due(round + i)));
            let keys = keys
                .map(|(deadline, payload)| scheduler.schedule(deadline, payload).expect("the shard is open"));
            let odd = keys.collect::<Vec<_>>().into_iter().skip(1).step_by(2);
            odd.filter_map(|key| scheduler.cancel(key)).for_each(|payload| payload.end(End::Cancelled));
        };
        // Joined one by one: the end of a scope does not wait for a thread's destructors.
        thread::scope(|scope| {
            [scope.spawn(visit), scope.spawn(visit)]
                .map(|thread| thread.join().expect("the thread does not panic"))
        });
        take(&mut advancer, round, usize::MAX);
    }
    check_memory(&scheduler, &mut advancer);
    take(&mut advancer, Tick::MAX, usize::MAX);
    ledger.check_all_ended();
}

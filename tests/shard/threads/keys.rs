//! Keys of timers that have ended.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use fastrand::Rng;
use shardwheel::{Config, Key, Scheduler, shard};

use super::work::{AtWork, at_work, part_of, times};

/// A thread tries the keys of ended timers, over and over, while others reuse their nodes: no old
/// key ever names a timer, and each timer's own key works.
#[test]
fn a_stale_key_never_names_a_timer() {
    let steps = times(40_000);
    let (scheduler, mut advancer) = shard::<usize>(&Config::default());
    let (give, get) = channel();
    let (parts, at_it) = (Mutex::new((Some(give), Some(get))), AtomicUsize::new(1));
    let work = |part| match part {
        0 => {
            let _at_it = AtWork(&at_it);
            let (mut rng, give) = (Rng::with_seed(60), part_of(&parts, |(give, _)| give.take()));
            (0..steps).for_each(|i| live_and_die(&scheduler, &mut rng, i, &give));
        }
        _ => try_stale_keys(&scheduler, &part_of(&parts, |(_, get)| get.take()), &at_it),
    };
    at_work(2, work, || advancer.advance(scheduler.now() + 1).for_each(drop));
    assert!(scheduler.is_empty());
}

/// Tries the last few thousand keys that it received, until the other thread has finished.
fn try_stale_keys(scheduler: &Scheduler<usize>, get: &Receiver<Key>, at_it: &AtomicUsize) {
    let mut stale = Vec::new();
    while at_it.load(Ordering::Acquire) > 0 {
        stale.extend(get.try_iter().take(100));
        stale.drain(..stale.len().saturating_sub(2_000));
        assert!(stale.iter().all(|&key| scheduler.cancel(key).is_none()), "a stale key cancelled");
        assert!(stale.iter().all(|&key| scheduler.reschedule(key, 1).is_none()), "a stale key moved");
    }
}

/// Sets a far timer, moves it or not, and cancels it; its stale keys go to the other thread.
fn live_and_die(scheduler: &Scheduler<usize>, rng: &mut Rng, i: usize, give: &Sender<Key>) {
    let ahead = |rng: &mut Rng| scheduler.now() + (1 << 40) + (1 << rng.u32(..39));
    let key = scheduler.schedule(ahead(rng), i).expect("the shard is open");
    let moved =
        if rng.bool() { scheduler.reschedule(key, ahead(rng)).expect("the timer is pending") } else { key };
    if moved != key {
        let _ = give.send(key);
    }
    assert_eq!(scheduler.cancel(moved), Some(i));
    let _ = give.send(moved);
}

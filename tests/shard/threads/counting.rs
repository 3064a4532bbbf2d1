//! The count of what is pending, and its limit.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use fastrand::Rng;
use shardwheel::{Advancer, Config, Key, Scheduler, Tick, shard};

use super::work::{PRODUCERS, at_work, part_of, times};

/// Timers that stay pending, at the tick `END` and after it.
const STANDING: usize = 1_000;
const END: Tick = 1 << 30;

/// A thousand timers stand at the far end, and are cascaded, postponed and advanced; others come
/// and go, scheduled by one thread and cancelled by another. The count is never below a thousand.
#[test]
fn the_count_never_falls_below_what_is_pending() {
    let steps = times(40_000);
    let config = Config::builder().wheel_size(8).build().expect("a power of two");
    let (scheduler, mut advancer) = shard::<usize>(&config);
    let standing = (0..STANDING)
        .map(|i| scheduler.schedule(END + i as Tick, i).expect("the shard is open"))
        .collect::<Vec<_>>();
    let (give, get) = channel();
    let parts = Mutex::new((Some(give), Some((standing, get))));
    let work = |part| match part {
        0 => come(&scheduler, steps, part_of(&parts, |(give, _)| give.take())),
        1 => move_and_go(&scheduler, part_of(&parts, |(_, get)| get.take())),
        _ => (0..steps).for_each(|_| assert!(scheduler.len() >= STANDING)),
    };
    let mut rng = Rng::with_seed(40);
    at_work(3, work, || come_nearer(&mut advancer, &mut rng));
    advancer.advance(END - 1).for_each(drop);
    assert_eq!(scheduler.len(), STANDING);
    assert_eq!(advancer.advance(Tick::MAX).count(), STANDING);
}

/// Schedules timers, and passes their keys on.
fn come(scheduler: &Scheduler<usize>, steps: usize, give: Sender<Key>) {
    for i in 0..steps {
        let key = scheduler.schedule(scheduler.now() + (1 << (i % 20)), i).expect("the shard is open");
        give.send(key).expect("a thread that takes it");
    }
}

/// Cancels each timer whose key it receives, and moves one of the standing timers each time.
fn move_and_go(scheduler: &Scheduler<usize>, (mut standing, get): (Vec<Key>, Receiver<Key>)) {
    for (i, key) in get.into_iter().enumerate() {
        let place = i % standing.len();
        let deadline = END + (i as Tick).wrapping_mul(0x9E37_79B9) % 5_000;
        standing[place] = scheduler.reschedule(standing[place], deadline).expect("the timer stands");
        scheduler.cancel(key);
        assert!(scheduler.len() >= STANDING);
    }
}

/// Moves the clock nearer to `END`, so that the standing timers are cascaded level by level.
fn come_nearer(advancer: &mut Advancer<usize>, rng: &mut Rng) {
    let clock = advancer.scheduler().now();
    let nearer = clock + ((END - 1 - clock) >> rng.u32(6..12));
    advancer.advance(nearer).take(rng.usize(..64)).for_each(drop);
}

/// The limit of a small shard.
const LIMIT: usize = 10;

/// Threads take and release the room of a shard with a small limit, by cancels and by refusals: the
/// limit is never exceeded, and no room is lost.
#[test]
fn the_limit_holds_and_no_room_is_lost() {
    let steps = times(40_000);
    let (scheduler, _advancer) =
        shard(&Config::builder().max_pending(LIMIT).build().expect("settings within their limits"));
    let taken = AtomicUsize::new(0);
    at_work(PRODUCERS, |seed| take_places(&scheduler, &taken, seed as u64, steps), thread::yield_now);
    assert!(scheduler.is_empty());
    (0..LIMIT).for_each(|i| assert!(scheduler.schedule(9, i).is_ok(), "place {i} got lost"));
    assert!(scheduler.schedule(9, LIMIT).is_err_and(|refused| refused.is_full()));
}

fn take_places(scheduler: &Scheduler<usize>, taken: &AtomicUsize, seed: u64, steps: usize) {
    let (mut rng, mut held) = (Rng::with_seed(seed), Vec::new());
    for i in 0..steps {
        if let Ok(key) = scheduler.schedule(rng.u64(..1_000), i) {
            assert!(taken.fetch_add(1, Ordering::SeqCst) < LIMIT, "more than there is room for");
            held.push(key);
        }
        let keep = rng.usize(..LIMIT).min(held.len());
        held.drain(keep..).for_each(|key| give_place_back(scheduler, taken, key));
    }
    held.into_iter().for_each(|key| give_place_back(scheduler, taken, key));
}

fn give_place_back(scheduler: &Scheduler<usize>, taken: &AtomicUsize, key: Key) {
    taken.fetch_sub(1, Ordering::SeqCst);
    let key = scheduler.reschedule(key, 500).expect("rescheduling needs no place");
    assert!(scheduler.cancel(key).is_some());
}

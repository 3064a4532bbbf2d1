//! How many nodes the early cascade moves, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::*;
use crate::shard::advancer::early_cascade::EARLY_NODES;
use crate::shard::shared::FEW_PENDING;
use crate::shard::support::{Shard, small};

/// Few timers more than an advance cascades at once, so that they are placed early.
const MANY: u64 = FEW_PENDING as u64 + 3_616;

/// How many nodes of one overflow bucket have been moved early after an advance to each of these
/// ticks, with wheels of four buckets.
fn placed(ticks: &[Tick]) -> Vec<u64> {
    let (scheduler, mut advancer) = small();
    (0..MANY).for_each(|number| assert!(scheduler.schedule(16 + number % 4, 0).is_ok()));
    let placed = ticks.iter().map(|&now| {
        assert_eq!(advancer.advance(now).count(), 0);
        advancer.check_invariants();
        scheduler.stats().cascaded
    });
    placed.collect()
}

#[test]
fn a_share_is_placed_for_each_tick() {
    let each = EARLY_NODES + (MANY + MANY / 4) / 16;
    assert_eq!(placed(&[0, 1, 2, 2, 3]), [0, each, 2 * each, 2 * each, 3 * each]);
    // A clock that comes late in the lead has passed as many ticks.
    assert_eq!(placed(&[12]), [12 * each]);
}

const BURST: u64 = 100_000;

/// A shard in which all timers are due within one overflow bucket, and its expiration.
fn burst() -> (Shard, Tick) {
    let (scheduler, advancer) = crate::shard::<u32>(&crate::Config::default());
    let size = advancer.shared.geometry.wheel_size() as Tick;
    (0..BURST).for_each(|i| assert!(scheduler.schedule(10 * size + i % size, 0).is_ok()));
    ((scheduler, advancer), 10 * size)
}

/// The greatest number of nodes that a tick of the lead may move.
fn most(size: Tick) -> u64 {
    EARLY_NODES + 5 * BURST / (4 * size)
}

/// However many timers wait in one bucket, no tick of its lead moves more than its share.
#[test]
fn a_full_bucket_is_emptied_in_equal_shares() {
    let ((scheduler, mut advancer), expiration) = burst();
    let mut before = 0;
    for now in 1..expiration {
        assert_eq!(advancer.advance(now).count(), 0);
        let placed = scheduler.stats().cascaded;
        assert!(placed - before <= most(expiration / 10), "{} at {now}", placed - before);
        before = placed;
    }
    assert_eq!(before, BURST, "nothing is left for the expiration");
    assert_eq!(advancer.advance(2 * expiration).count() as u64, BURST);
}

/// An event loop that sleeps until the next expiration is woken in time to begin.
#[test]
fn an_event_loop_empties_a_full_bucket_in_equal_shares() {
    let ((scheduler, mut advancer), expiration) = burst();
    let (mut before, mut turns) = (0, 0);
    while let Some(now) = advancer.next_expiration().filter(|&next| next < expiration) {
        assert_eq!(advancer.advance(now).count(), 0);
        let placed = scheduler.stats().cascaded;
        assert!(placed - before <= most(expiration / 10), "{} at {now}", placed - before);
        (before, turns) = (placed, turns + 1);
    }
    assert_eq!(before, BURST, "nothing is left for the expiration");
    assert!(turns <= expiration / 10, "{turns} turns for a lead of {} ticks", expiration / 10);
}

/// An event loop that sleeps while a burst comes is woken by the burst, for its answer was for few
/// timers.
#[test]
fn a_burst_wakes_an_event_loop_that_would_sleep_through_the_lead() {
    let (scheduler, mut advancer) = crate::shard::<u32>(&crate::Config::default());
    let size = advancer.shared.geometry.wheel_size() as Tick;
    let wakes = Arc::new(Wakes::default());
    advancer.register_waker(&Waker::from(Arc::clone(&wakes)));
    let place = |i: Tick| assert!(scheduler.schedule(10 * size + i % size, 0).is_ok());
    let few = FEW_PENDING as Tick;
    place(0);
    assert_eq!(advancer.next_expiration(), Some(10 * size), "a few timers are cascaded at once");
    (1..2 * few - 1).for_each(place);
    assert_eq!(wakes.count(), 0, "nothing is due before the answer");
    (2 * few - 1..BURST).for_each(place);
    assert_eq!(wakes.count(), 1);
    assert_eq!(advancer.advance(1).count(), 0);
    assert_eq!(advancer.next_expiration(), Some(9 * size), "the lead begins");
    (0..few).for_each(place);
    assert_eq!(wakes.count(), 1, "the answer was for many timers");
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wakes {
    fn count(&self) -> usize {
        // Ordering: Relaxed, there is one thread.
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        // Ordering: Relaxed, there is one thread.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

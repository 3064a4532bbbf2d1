//! Memory that cancelled timers give back.

use std::collections::VecDeque;
use std::thread;

use shardwheel::{Key, Tick};

use crate::rig::Rig;

const SECOND: Tick = 1_000;

/// Dead nodes, those of cancelled timers, that a shard may hold however few timers are pending: see
/// promise 5.
const DEAD: usize = 4_096;

/// The most timers that these tests cancel between two calls of the advancer.
const CANCELS: usize = 500;

/// Nodes in use that are neither pending nor dead: this thread's free nodes, and freed nodes that
/// are not yet reusable.
const IN_HAND: usize = 4_096;

/// How often the advancer is called until freed nodes are reusable. They are when no thread can
/// read them any more; an interrupted thread of another test can delay that.
const PATIENCE: usize = 1_000_000;

/// Checks that the dead nodes are within their bound, and that the nodes in use fall to what they
/// may be.
fn check_memory(rig: &mut Rig) {
    let stats = rig.scheduler.stats();
    let tolerated = stats.pending.max(DEAD);
    assert!(stats.dead_nodes <= tolerated + CANCELS, "{stats:?}");
    let within = |_| {
        drop(rig.advancer.advance(0));
        thread::yield_now();
        rig.scheduler.stats().nodes <= stats.pending + tolerated + IN_HAND
    };
    assert!((0..PATIENCE).any(within), "{:?}", rig.scheduler.stats());
}

/// Timeouts of five minutes, a hundred per tick, each cancelled ten ticks later: memory stays near
/// what is pending, long before the first deadline. Promise 5.
#[test]
fn cancelled_timeouts_hold_no_memory() {
    let (per_tick, answer_after) = (100, 10);
    let mut rig = Rig::new(2_048, 0);
    let mut open = VecDeque::new();
    for now in 0..1_500 {
        assert_eq!(rig.at(now), []);
        open.extend((0..per_tick).map(|_| rig.set(now + 300 * SECOND)));
        let answered = open.len().saturating_sub(per_tick * answer_after);
        open.drain(..answered).for_each(|key| assert!(rig.scheduler.cancel(key).is_some()));
        assert_eq!(rig.scheduler.len(), open.len());
        check_memory(&mut rig);
    }
}

/// The same where each timeout is shorter than the one before, so no new timer can use a cancelled
/// node, and the clock stands still: calls of the advancer suffice. Promise 5.
#[test]
fn ever_shorter_cancelled_timeouts_hold_no_memory() {
    let mut rig = Rig::new(2_048, 0);
    let standing = rig.set_all(&[400 * SECOND; 1_000]);
    for round in 0..200 {
        let last = 300 * SECOND - 500 * round;
        let keys = (0..500).map(|i| rig.set(last - i)).collect::<Vec<Key>>();
        keys.into_iter().for_each(|key| assert!(rig.scheduler.cancel(key).is_some()));
        assert_eq!(rig.at(0), []);
        check_memory(&mut rig);
    }
    assert!(standing.into_iter().all(|key| rig.scheduler.cancel(key).is_some()), "the standing ones stand");
}

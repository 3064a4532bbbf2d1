//! The operations of a producer, and the preparation of each.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use shardwheel::Tick;

use crate::first::{Case, Hand};
use crate::scene::{self, FURNITURE, Plan, Scene, VERY_FAR};
use crate::steps::Job;

pub(crate) const NEAR: Tick = 10;
const NEARER: Tick = 7;
pub(crate) const FAR: Tick = 3_000;
/// For a level that has no wheel yet.
pub(crate) const BEYOND: Tick = 1 << 30;

/// Also where it wakes the advancer, because it is pinned while it takes the waker.
const PINS: bool = true;
const KEEPS_UNPINNED: bool = false;

/// The table.
fn cases() -> Vec<Case<Hand>> {
    let case =
        |name, pins, prepare, act| Case { name, prepare, act, pins, may_drop: false, to_its_end: false };
    let moving = |name, prepare, act| Case { may_drop: true, ..case(name, PINS, prepare, act) };
    let ending = |name, prepare| Case { to_its_end: true, ..case(name, PINS, prepare, |_| {}) };
    vec![
        case("schedule near", PINS, warm, |hand| hand.set(NEAR)),
        case("schedule far", PINS, warm, |hand| hand.set(FAR)),
        case("schedule very far", PINS, warm, |hand| hand.set(VERY_FAR + 3)),
        case("schedule into the past", PINS, warm, |hand| hand.set(Tick::MAX)),
        case("schedule for a missing wheel", PINS, warm, |hand| hand.set(BEYOND)),
        case("schedule in a dead node", KEEPS_UNPINNED, leave_dead, |hand| hand.set(NEAR)),
        case("schedule too early for a dead node", PINS, leave_dead_far, |hand| hand.set(NEAR)),
        case("schedule in a new segment", PINS, fill, |hand| hand.set(NEAR)),
        case("schedule for the first time", PINS, |_| {}, |hand| hand.set(NEAR)),
        case("schedule in another's lane", PINS, leave_a_lane, |hand| hand.set(NEAR)),
        case("cancel", KEEPS_UNPINNED, set_near, Hand::cancel),
        case("cancel a second one", KEEPS_UNPINNED, leave_dead_of_two, Hand::cancel),
        case("cancel another's", PINS, anothers, Hand::cancel),
        case("cancel in another segment", PINS, elsewhere, Hand::cancel),
        case("cancel and ask for a sweep", PINS, crowd, Hand::cancel),
        case("reschedule later", KEEPS_UNPINNED, set_near, |hand| hand.move_to(FAR)),
        case("reschedule later in another segment", PINS, elsewhere, |hand| hand.move_to(FAR)),
        moving("reschedule earlier", set_far, |hand| hand.move_to(NEARER)),
        moving("reschedule earlier, with a dead node", set_far_beside_dead, |hand| hand.move_to(NEAR)),
        moving("reschedule far", set_near, |hand| hand.move_to(BEYOND)),
        case("look at the figures", PINS, warm, |hand| _ = hand.scheduler.stats()),
        ending("end a thread", warm),
        ending("end a thread that has a dead node", leave_dead),
    ]
}

pub(crate) fn jobs() -> Vec<Job> {
    let plans = |case| [Plan::Earlier, Plan::Later, Plan::Cancels].map(|plan| (case, plan));
    let job = |(case, plan): (Case<Hand>, Plan)| Job {
        name: format!("{}, {plan:?}", case.name),
        attempt: Arc::new(move |stop, findings| scene::play(case, plan, stop, findings)),
    };
    cases().into_iter().flat_map(plans).map(job).collect()
}

/// The producer has a lane and free nodes.
fn warm(hand: &mut Hand) {
    hand.set(FURNITURE);
}

fn set_near(hand: &mut Hand) {
    hand.set(NEAR);
}

fn set_far(hand: &mut Hand) {
    hand.set(FAR);
}

fn leave_dead(hand: &mut Hand) {
    hand.set(NEAR);
    hand.cancel();
}

fn leave_dead_far(hand: &mut Hand) {
    hand.set(FAR);
    hand.cancel();
}

fn set_far_beside_dead(hand: &mut Hand) {
    leave_dead(hand);
    let next = hand.keys.len();
    // Two timers, as the first takes the dead node.
    (0..2).for_each(|_| hand.set(FAR));
    hand.keys.swap(next, next + 1);
    hand.cancel();
}

/// The producer has a dead node, and another timer is pending.
fn leave_dead_of_two(hand: &mut Hand) {
    (0..2).for_each(|_| hand.set(NEAR));
    hand.cancel();
}

fn anothers(hand: &mut Hand) {
    thread::scope(|scope| scope.spawn(|| set_near(hand)).join()).expect("the thread does not panic");
}

/// Another thread leaves a lane with a dead node and free nodes.
fn leave_a_lane(hand: &mut Hand) {
    thread::scope(|scope| scope.spawn(|| leave_dead(hand)).join()).expect("the thread does not panic");
}

/// The next timer needs a new segment.
fn fill(hand: &mut Hand) {
    let fills = |twin: &mut Scene, hand: &mut Hand| {
        let before = twin.capacity();
        hand.set(FURNITURE);
        twin.capacity() > before
    };
    (1..calls_until(fills)).for_each(|_| hand.set(FURNITURE));
}

/// The producer's free nodes are in another segment than its last timer.
fn elsewhere(hand: &mut Hand) {
    (0..2).for_each(|_| hand.set(NEAR));
    fill(hand);
    hand.set(FURNITURE);
    hand.keys.rotate_left(2);
}

/// The next cancel requests a sweep.
fn crowd(hand: &mut Hand) {
    const CROWD: usize = 5_000;
    let gather = |hand: &mut Hand| (0..CROWD).for_each(|_| hand.set(FURNITURE));
    let asks = |twin: &mut Scene, hand: &mut Hand| {
        if hand.keys.is_empty() {
            gather(hand);
        }
        hand.cancel();
        twin.has_been_woken()
    };
    let cancels = calls_until(asks);
    gather(hand);
    (1..cancels).for_each(|_| hand.cancel());
}

/// The number of calls until `happens` returns true, in a scene like the current one that another
/// thread has made.
fn calls_until(mut happens: impl FnMut(&mut Scene, &mut Hand) -> bool) -> usize {
    const MOST: usize = 100_000;
    let ((give, given), (keep, kept)) = (channel(), channel::<()>());
    let maker = thread::spawn(move || {
        give.send(Scene::new()).expect("the other thread waits");
        // The lane stays that thread's until then.
        let _ = kept.recv();
    });
    let mut twin = given.recv().expect("the thread does not panic");
    let mut hand = twin.hand();
    let calls = (1..=MOST).find(|_| happens(&mut twin, &mut hand));
    drop(keep);
    maker.join().expect("the thread does not panic");
    calls.expect("it happens")
}

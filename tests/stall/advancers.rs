//! The advancer is stopped at each of its steps. Producers schedule, cancel and move timers
//! meanwhile, and when the advancer goes on each timer has its outcome.

use std::sync::Arc;

use shardwheel::stall::Stop;

use crate::cases::{BEYOND, FAR, NEAR};
use crate::first::{Case, First, Hand};
use crate::scene::{FURNITURE, Scene, VERY_FAR};
use crate::steps::{Findings, Job};

pub(crate) fn jobs() -> Vec<Job> {
    let case = |name, act| Case { name, prepare, act, pins: true, may_drop: false, to_its_end: false };
    let cases = [
        case("advance, with nothing due", |scene: &mut Scene| scene.settle(1, &mut Findings::default())),
        case("advance, with some due", |scene| scene.settle(FURNITURE / 2, &mut Findings::default())),
        case("advance by a cascade", |scene| scene.settle(VERY_FAR - 1, &mut Findings::default())),
    ];
    let job = |case: Case<Scene>| Job {
        name: format!("{}, the advancer stopped", case.name),
        attempt: Arc::new(move |stop, findings| play(case, stop, findings)),
    };
    cases.map(job).into()
}

/// Live and dead timers, near and far.
fn prepare(scene: &mut Scene) {
    for deadline in [NEAR, NEAR, FAR, FURNITURE + FAR, VERY_FAR - NEAR] {
        scene.set(deadline);
    }
    let mut hand = scene.hand();
    hand.set_all(&[NEAR, FAR, FURNITURE]);
    (0..2).for_each(|_| hand.cancel());
}

fn play(case: Case<Scene>, stop: &'static Stop, findings: &mut Findings) -> bool {
    let scene = Scene::new();
    let mut hand = scene.hand();
    hand.set_all(&[VERY_FAR, BEYOND, NEAR, FAR]);
    let (advancer, go) = First::prepared(case, scene, stop);
    go();
    let has_stopped = advancer.has_stopped();
    go_about(&mut hand, findings);
    let mut scene = advancer.finish();
    scene.run_out(findings);
    findings.check("all have fired", hand.scheduler.is_empty());
    drop((scene, hand.scheduler));
    findings.check("each timer has one outcome", hand.ledger.dropped_without_an_end() == Some(0));
    has_stopped
}

/// What a producer does while the advancer is stopped; it must end.
fn go_about(hand: &mut Hand, findings: &mut Findings) {
    let pending = hand.keys.len();
    let deadlines = [NEAR, NEAR, FAR, VERY_FAR, BEYOND, u64::MAX];
    hand.set_all(&deadlines);
    findings.check("timers are accepted", hand.keys.len() == pending + deadlines.len());
    // A timer of the past may have been taken already.
    hand.keys.pop();
    hand.move_to(NEAR * 2);
    findings.check("a timer is moved", hand.keys.len() == pending + deadlines.len() - 1);
    (0..2).for_each(|_| hand.cancel());
    hand.set(VERY_FAR);
    // These timers were set before the stop.
    hand.keys.rotate_right(3);
    hand.move_to(VERY_FAR + NEAR);
    hand.cancel();
}

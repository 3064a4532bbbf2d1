//! A shard with a sleeping advancer, and the promises to all others while a producer is stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use shardwheel::stall::{self, Stop};
use shardwheel::{Advancer, Config, Key, Scheduler, Tick, shard};

use crate::first::{self, Case, First, Hand};
use crate::load::Load;
use crate::steps::Findings;
use crate::support::ledger::{End, Ledger};

/// Segments that one stopped producer may keep, besides those in use.
pub(crate) const SEGMENTS_HELD: usize = 2;

/// Segments that an idle shard keeps: one, and one that is not worth freeing.
const SEGMENTS_KEPT: usize = 2;

/// Dead nodes that are always allowed (promise 5).
const DEAD_TOLERATED: usize = 4096;

/// Timers of a burst: they fill several segments, and their cancels exceed the allowed dead nodes.
const BURST: usize = 2 * DEAD_TOLERATED;

/// Moves of the clock within which memory goes back.
const MOVES: Tick = 256;

/// Turns within which an advancer goes back to sleep.
const MOST_TURNS: usize = 1000;

pub(crate) const START: Tick = 1_000_000;
/// The advancer sleeps until then at first.
pub(crate) const FURNITURE: Tick = 20_000;
pub(crate) const VERY_FAR: Tick = 1 << 20;
const BURST_AT: Tick = 1 << 21;

/// What the others do first while the producer is stopped, and when the shard ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// They set a timer earlier than the one that the stopped producer may be waking for; the shard
    /// outlives the stop.
    Earlier,
    /// They set a later timer, and the shard ends before the release.
    Later,
    /// They cancel so many timers that a sweep is needed; the shard outlives the stop.
    Cancels,
}

/// The shard's waker. A producer can be stopped in it too, before or after its effect.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        stall::point();
        self.0.store(true, Ordering::Release);
        stall::point();
    }
}

impl Bell {
    fn has_rung(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// All others: the advancer and a second producer, both on the thread of the attempt.
pub(crate) struct Scene {
    pub(crate) scheduler: Scheduler<Load>,
    advancer: Advancer<Load>,
    bell: Arc<Bell>,
    ledger: Ledger,
    now: Tick,
    /// What `next_expiration` returned when the advancer went to sleep.
    asleep_until: Option<Tick>,
    /// The second producer's pending timers by deadline.
    due: BTreeMap<Tick, Vec<u64>>,
    next_tag: u64,
    /// Nodes in a segment.
    segment: usize,
}

/// Plays a case with that stop. Returns whether the producer reached it.
pub(crate) fn play(case: Case<Hand>, plan: Plan, stop: &'static Stop, findings: &mut Findings) -> bool {
    let mut scene = Scene::new();
    let (first, go) = First::prepared(case, scene.hand(), stop);
    scene.settle(0, findings);
    go();
    let has_stopped = first.has_stopped();
    let ledger = match plan {
        Plan::Earlier => {
            scene.go_about(findings, [5, 3]);
            scene.bury(findings);
            scene.release_and_end(case, first, findings)
        }
        Plan::Later => {
            scene.go_about(findings, [15, 5]);
            scene.end_and_release(first, findings)
        }
        Plan::Cancels => {
            scene.bury(findings);
            scene.go_about(findings, [5, 3]);
            scene.release_and_end(case, first, findings)
        }
    };
    let dropped = ledger.dropped_without_an_end();
    findings.check("each timer has one outcome", dropped.is_some());
    let may_drop = case.may_drop && plan == Plan::Later && dropped == Some(1);
    findings.check("nothing is lost", dropped == Some(0) || may_drop);
    has_stopped
}

impl Scene {
    pub(crate) fn new() -> Self {
        let config = Config::builder().start(START).wheel_size(256).max_pending(1 << 20).build();
        let (scheduler, advancer) = shard(&config.expect("settings within their limits"));
        let (bell, ledger, due) = (Arc::default(), Ledger::default(), BTreeMap::new());
        let (now, asleep_until, next_tag, segment) = (0, None, first::TAG + 1, 0);
        let mut scene = Self { scheduler, advancer, bell, ledger, now, asleep_until, due, next_tag, segment };
        scene.set(FURNITURE);
        scene.set(VERY_FAR);
        scene.segment = scene.capacity();
        scene.settle(0, &mut Findings::default());
        scene
    }

    pub(crate) fn hand(&self) -> Hand {
        let (scheduler, ledger) = (self.scheduler.clone(), self.ledger.clone());
        Hand { scheduler, ledger, keys: Vec::new() }
    }

    pub(crate) fn has_been_woken(&self) -> bool {
        self.bell.has_rung()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.scheduler.stats().node_capacity
    }

    pub(crate) fn set(&mut self, deadline: Tick) -> Key {
        let tag = self.next_tag;
        self.next_tag += 1;
        self.due.entry(deadline).or_default().push(tag);
        let set = self.scheduler.schedule(START + deadline, Load::new(&self.ledger, tag));
        set.unwrap_or_else(|refused| panic!("refused: {refused}"))
    }

    /// Notes that the last timer for that tick is no longer due then.
    fn forget(&mut self, deadline: Tick) -> u64 {
        self.due.get_mut(&deadline).and_then(Vec::pop).expect("it was set")
    }

    fn move_to(&mut self, key: Key, from: Tick, to: Tick, findings: &mut Findings) {
        let moved = self.scheduler.reschedule(key, START + to);
        findings.check("a timer is moved", moved.is_some());
        let tag = self.forget(from);
        self.due.entry(to).or_default().push(tag);
    }

    fn cancel(&mut self, key: Key, deadline: Tick, findings: &mut Findings) {
        let tag = self.scheduler.cancel(key).map(|load| load.end(End::Cancelled));
        findings.check("a timer is cancelled", tag == Some(self.forget(deadline)));
    }

    /// Takes turns at that tick until the advancer can sleep. All due timers fire.
    pub(crate) fn settle(&mut self, now: Tick, findings: &mut Findings) {
        let mut fired = Vec::new();
        let may_sleep = (0..MOST_TURNS).any(|_| self.turn(now, &mut fired));
        findings.check("the advancer goes to sleep", may_sleep);
        self.now = now;
        let later = self.due.split_off(&(now + 1));
        let mut due: Vec<u64> = std::mem::replace(&mut self.due, later).into_values().flatten().collect();
        fired.sort_unstable();
        due.sort_unstable();
        findings.check("timers fire on their ticks", fired == due);
    }

    /// One turn. Returns whether the advancer can sleep.
    fn turn(&mut self, now: Tick, fired: &mut Vec<u64>) -> bool {
        self.bell.0.store(false, Ordering::Release);
        let tags = self.advancer.advance(START + now).map(|fired| fired.payload.end(End::Fired));
        fired.extend(tags.filter(|&tag| tag != first::TAG));
        self.advancer.register_waker(&Waker::from(Arc::clone(&self.bell)));
        self.asleep_until = self.advancer.next_expiration();
        !self.has_been_woken() && self.asleep_until.is_none_or(|next| next > START + now)
    }

    /// Moves the clock from deadline to deadline; nothing fires a tick early.
    fn run_to(&mut self, until: Tick, findings: &mut Findings) {
        while let Some((&deadline, _)) =
            self.due.first_key_value().filter(|(deadline, _)| **deadline <= until)
        {
            self.settle(deadline - 1, findings);
            self.settle(deadline, findings);
        }
        self.settle(until, findings);
    }

    /// Goes on until nothing is pending.
    pub(crate) fn run_out(&mut self, findings: &mut Findings) {
        self.run_to(Tick::MAX / 2, findings);
    }

    /// The second producer wakes the advancer twice, and does everything that a producer does; its
    /// timers fire.
    fn go_about(&mut self, findings: &mut Findings, wakes: [Tick; 2]) {
        for (deadline, what) in wakes.into_iter().zip(["an earlier timer wakes", "and wakes again"]) {
            let is_earlier = self.asleep_until.is_none_or(|next| START + deadline < next);
            self.set(deadline);
            findings.check(what, self.has_been_woken() || !is_earlier);
            self.settle(0, findings);
        }
        let keys = [5_000, 6_000, 30, 7_000].map(|deadline| self.set(deadline));
        self.cancel(keys[1], 6_000, findings);
        self.move_to(keys[2], 30, 60, findings);
        self.move_to(keys[3], 7_000, 45, findings);
        self.run_to(100, findings);
    }

    /// Cancels a burst. The advancer takes a turn only when it is woken.
    fn bury(&mut self, findings: &mut Findings) {
        let keys: Vec<_> = (0..BURST).map(|_| self.set(BURST_AT)).collect();
        for key in keys.into_iter().rev() {
            self.cancel(key, BURST_AT, findings);
            if self.has_been_woken() {
                self.settle(self.now, findings);
            }
        }
        let stats = self.scheduler.stats();
        let is_bounded = stats.dead_nodes <= stats.pending.max(DEAD_TOLERATED);
        findings.check("dead nodes are bounded", is_bounded);
    }

    /// Fires a burst, and moves the clock on.
    fn burn(&mut self, findings: &mut Findings) {
        let at = self.now + 10;
        (0..BURST).for_each(|_| _ = self.set(at));
        self.run_to(at, findings);
        self.wait(findings);
    }

    fn wait(&mut self, findings: &mut Findings) {
        (0..MOVES).for_each(|_| self.settle(self.now + 1, findings));
    }

    fn is_back(&self) -> bool {
        self.capacity() <= (SEGMENTS_KEPT + SEGMENTS_HELD) * self.segment
    }

    fn release_and_end(mut self, case: Case<Hand>, first: First<Hand>, findings: &mut Findings) -> Ledger {
        self.run_to(BURST_AT + 1, findings);
        self.burn(findings);
        findings.check("memory goes back", self.is_back() || case.pins);
        first.finish();
        self.wait(findings);
        findings.check("memory goes back after the release", self.is_back());
        self.run_out(findings);
        findings.check("all have fired", self.scheduler.is_empty());
        self.ledger
    }

    fn end_and_release(mut self, first: First<Hand>, findings: &mut Findings) -> Ledger {
        let mut back: Vec<_> =
            self.advancer.into_pending().map(|(_, load)| load.end(End::HandedBack)).collect();
        back.retain(|&tag| tag != first::TAG);
        back.sort_unstable();
        let mut pending: Vec<_> = self.due.into_values().flatten().collect();
        pending.sort_unstable();
        findings.check("all pending are handed back", back == pending);
        let refused = self.scheduler.schedule(START, Load::new(&self.ledger, self.next_tag)).err();
        findings.check(
            "the end refuses timers",
            refused.map(|refused| refused.into_payload().end(End::Refused)).is_some(),
        );
        self.next_tag += 1;
        first.finish();
        self.ledger
    }
}

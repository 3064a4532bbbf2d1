//! A shard whose clock the test moves, and checks that most cases need.

use std::collections::BTreeMap;

use shardwheel::{Advancer, Config, Key, Scheduler, Tick, shard};

/// Wheel sizes that give many levels, a few, and one that holds most of a case.
pub(crate) const WHEEL_SIZES: [usize; 5] = [2, 8, 16, 256, 2048];

/// How often one timer may wake an event loop: once per level, and the smallest wheel has 64
/// levels.
const WAKES_PER_TIMER: usize = 64;

/// Settings with `wheel_size` buckets a wheel and a clock that starts at `start`.
pub(crate) fn config(wheel_size: usize, start: Tick) -> Config {
    Config::builder()
        .wheel_size(wheel_size)
        .start(start)
        .build()
        .expect("a wheel size that is a power of two")
}

/// Takes all timers that are due at `now`, and checks what holds for every advance: no timer is
/// early, deadlines never decrease, and afterwards the clock is at `now`, or where it was if that
/// is later.
pub(crate) fn drain<P: Send>(advancer: &mut Advancer<P>, now: Tick) -> Vec<(Tick, P)> {
    let clock = advancer.scheduler().now().max(now);
    let fired = advancer.advance(now).map(|fired| (fired.deadline, fired.payload)).collect::<Vec<_>>();
    assert_eq!(advancer.scheduler().now(), clock, "the clock after an advance to {now}");
    assert!(fired.iter().all(|&(deadline, _)| deadline <= clock), "a deadline after {clock} fired");
    assert!(fired.is_sorted_by_key(|&(deadline, _)| deadline), "deadlines decreased within one advance");
    fired
}

/// A shard whose payloads are their deadlines.
pub(crate) struct Rig {
    pub(crate) scheduler: Scheduler<Tick>,
    pub(crate) advancer: Advancer<Tick>,
}

impl Rig {
    /// A shard with `wheel_size` buckets a wheel and a clock at `start`.
    pub(crate) fn new(wheel_size: usize, start: Tick) -> Self {
        let (scheduler, advancer) = shard(&config(wheel_size, start));
        Self { scheduler, advancer }
    }

    /// Schedules one timer.
    pub(crate) fn set(&self, deadline: Tick) -> Key {
        self.scheduler.schedule(deadline, deadline).expect("the shard is open and has no bound")
    }

    /// Schedules a timer for each of `deadlines`.
    pub(crate) fn set_all(&self, deadlines: &[Tick]) -> Vec<Key> {
        deadlines.iter().map(|&deadline| self.set(deadline)).collect()
    }

    /// Advances to `now`, and returns the payloads of the timers that fired.
    pub(crate) fn at(&mut self, now: Tick) -> Vec<Tick> {
        drain(&mut self.advancer, now).into_iter().map(|(_, payload)| payload).collect()
    }

    /// Moves the clock tick by tick to the last of `deadlines`, and checks that each timer fires at
    /// its own tick.
    fn fires_tick_by_tick(&mut self, deadlines: &[Tick]) {
        let mut expected = tally(deadlines);
        let last = deadlines.iter().copied().max().expect("at least one deadline");
        for now in self.scheduler.now()..=last {
            assert_eq!(self.at(now), vec![now; expected.remove(&now).unwrap_or(0)], "at {now}");
        }
        assert!(expected.is_empty() && self.scheduler.is_empty(), "left over: {expected:?}");
    }

    /// Jumps to the tick before each of `deadlines`, where the timer must not fire, and then to the
    /// deadline, where it must.
    pub(crate) fn fires_by_jumps(&mut self, deadlines: &[Tick]) {
        for (deadline, count) in tally(deadlines) {
            if deadline > self.scheduler.now() {
                assert_eq!(self.at(deadline - 1), [], "a tick before {deadline}");
            }
            assert_eq!(self.at(deadline), vec![deadline; count], "at {deadline}");
        }
        assert_eq!(self.scheduler.len(), 0);
    }

    /// Advances only to the ticks that `next_expiration` names, as a thread does that sleeps in
    /// between. Checks that each of `deadlines` fires exactly when it is due, within a bounded
    /// number of wakes.
    pub(crate) fn fires_by_sleeping(&mut self, deadlines: &[Tick]) {
        let mut expected = tally(deadlines);
        for _ in 0..=WAKES_PER_TIMER * (deadlines.len() + 1) {
            let Some(next) = self.advancer.next_expiration() else { break };
            let now = next.max(self.scheduler.now());
            assert_eq!(self.at(now), vec![now; expected.remove(&now).unwrap_or(0)], "woken at {now}");
        }
        assert!(expected.is_empty() && self.scheduler.is_empty(), "left over: {expected:?}");
        assert_eq!(self.advancer.next_expiration(), None, "woken again and again for nothing");
    }
}

/// How often each deadline occurs.
fn tally(deadlines: &[Tick]) -> BTreeMap<Tick, usize> {
    let mut counts = BTreeMap::new();
    deadlines.iter().for_each(|&deadline| *counts.entry(deadline).or_default() += 1);
    counts
}

/// Plays one case in up to three ways, each in a new shard: by jumps, by sleeping, and, if all
/// deadlines are within `near` ticks, tick by tick.
pub(crate) fn fires_exactly(wheel_size: usize, start: Tick, deadlines: &[Tick]) {
    let near = 20_000;
    let rig = || {
        let rig = Rig::new(wheel_size, start);
        rig.set_all(deadlines);
        assert_eq!(rig.scheduler.len(), deadlines.len());
        rig
    };
    rig().fires_by_jumps(deadlines);
    rig().fires_by_sleeping(deadlines);
    if deadlines.iter().all(|&deadline| deadline < start.saturating_add(near)) {
        rig().fires_tick_by_tick(deadlines);
    }
}

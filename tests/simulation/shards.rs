//! Several shards, each moved to arbitrary ticks: backwards, over revolutions, with limited drains,
//! compared with a map that does the same slowly.
//!
//! A seed chooses the operations, or bytes do, so that `tests/model` and the fuzzer `operations` can
//! feed them too.

use std::collections::{BTreeMap, BTreeSet};

use shardwheel::{Advancer, Config, Fired, Key, Scheduler, Tick, shard};

use crate::bytes::Bytes;
use crate::draw::Choices;
use crate::log::{Log, Played};
use crate::support::ledger::{End, Ledger, Payload};

/// Steps of a seed; bytes are played to their end.
const STEPS: u32 = 400;

/// Wheel sizes that bytes choose from: small wheels wrap often, and are quick to check.
const WHEEL_SIZES: [usize; 8] = [4, 8, 4, 2, 4, 8, 16, 32];

/// The most timers of a burst.
const MOST_AT_ONCE: usize = 20_000;

/// Ticks count as milliseconds where times are added.
const TICKS_PER_SECOND: u64 = 1000;

/// The number of a payload, as the model has it.
fn number(payload: &Payload) -> u64 {
    payload.id() as u64
}

/// Notes how a payload came back, and returns its number.
fn end(payload: Payload, end: End) -> u64 {
    let number = number(&payload);
    payload.end(end);
    number
}

/// A timer as the model knows it.
struct Expected {
    key: Key,
    /// One deadline, unless the wheel chooses from several ticks.
    first: Tick,
    last: Tick,
    /// Whether it was set since the current drain began.
    is_new: bool,
}

/// A shard, and its expected contents.
struct Pair {
    scheduler: Scheduler<Payload>,
    /// None once the shard has ended.
    advancer: Option<Advancer<Payload>>,
    limit: usize,
    start: Tick,
    now: Tick,
    pending: BTreeMap<u64, Expected>,
    /// The same, by their latest deadline.
    order: BTreeSet<(Tick, u64)>,
    stale: Vec<Key>,
    scheduled: u64,
    fired: u64,
    cancelled: u64,
    handed_back: u64,
}

struct Scene<'a> {
    draw: Choices<'a>,
    /// The most bits of a delay, and of a move of the clock.
    scale: u32,
    log: Log,
    pairs: Vec<Pair>,
    ledger: Ledger,
    step: u32,
}

/// Plays the choices of a seed.
pub(crate) fn play_seed(seed: u64, log: Log) -> Played {
    let mut scene = Scene::new(Choices::Seed(fastrand::Rng::with_seed(seed)), log);
    scene.play(usize::MAX);
    let passed = |pair: &Pair| (pair.now - pair.start) / TICKS_PER_SECOND;
    Played {
        seconds: scene.pairs.iter().map(passed).max().unwrap_or(0),
        fired: scene.pairs.iter().map(|pair| pair.fired).sum(),
        hash: scene.log.hash(),
    }
}

/// Plays the choices of these bytes on one shard, and panics if it differs from the map. Checks the
/// shard's invariants once in `between_checks` operations.
pub(crate) fn play_bytes(bytes: &[u8], between_checks: usize) {
    Scene::new(Choices::Bytes(Bytes(bytes)), Log::new(false)).play(between_checks);
}

impl<'a> Scene<'a> {
    fn new(mut draw: Choices<'a>, log: Log) -> Self {
        let (shards, scale) = if draw.is_seed() { (1 + draw.below(4), 6 + draw.below(45)) } else { (1, 63) };
        let pairs = (0..shards).map(|_| Pair::new(&mut draw)).collect();
        Self { draw, scale: scale as u32, log, pairs, ledger: Ledger::default(), step: 0 }
    }

    fn play(&mut self, between_checks: usize) {
        while !(self.draw.is_over() || self.draw.is_seed() && self.step == STEPS) {
            self.step += 1;
            let at = if self.pairs.len() > 1 { self.draw.below(self.pairs.len()) } else { 0 };
            self.operate(at);
            self.pairs[at].check();
            self.check_alive();
            if (self.step as usize).is_multiple_of(between_checks) {
                self.pairs[at].check_invariants();
            }
        }
        for at in 0..self.pairs.len() {
            self.pairs[at].check_invariants();
            self.end(at);
        }
        self.check_alive();
        self.ledger.check();
    }

    fn check_alive(&self) {
        let pending: usize = self.pairs.iter().map(|pair| pair.pending.len()).sum();
        assert_eq!(self.ledger.living(), pending, "payloads alive, against timers pending");
    }

    fn operate(&mut self, at: usize) {
        match self.draw.below(24) {
            0..6 => self.advance(at),
            6 if self.draw.once_in(20) => self.end(at),
            7 if self.draw.is_seed() && self.draw.once_in(60) => self.burst(at),
            _ => (0..=self.draw.below(4)).for_each(|_| self.produce(at)),
        }
    }

    /// What a producer does, also during a drain.
    fn produce(&mut self, at: usize) {
        match self.draw.below(16) {
            0..6 => self.schedule(at),
            6 => self.schedule_within(at),
            7..9 => self.cancel(at),
            9..14 => self.reschedule(at),
            _ => self.use_stale(at),
        }
    }

    /// Sets thousands of timers and cancels most of them, enough for nodes and memory to be freed.
    fn burst(&mut self, at: usize) {
        (0..=self.draw.below(MOST_AT_ONCE)).for_each(|_| self.schedule(at));
        (0..=self.draw.below(MOST_AT_ONCE)).for_each(|_| self.cancel(at));
    }

    /// A random tick near that shard's clock.
    fn tick(&mut self, at: usize) -> Tick {
        let (now, ticks) = (self.pairs[at].now, self.draw.ticks(self.scale));
        match self.draw.below(32) {
            0 => Tick::MAX - self.draw.below(3) as Tick,
            1..4 => now.saturating_sub(ticks),
            _ => now.saturating_add(ticks),
        }
    }

    fn payload(&mut self) -> (u64, Payload) {
        let payload = self.ledger.payload();
        (number(&payload), payload)
    }

    fn schedule(&mut self, at: usize) {
        let deadline = self.tick(at);
        let (id, payload) = self.payload();
        self.log.add(("schedule", at, id, deadline));
        let result = self.pairs[at].scheduler.schedule(deadline, payload);
        self.pairs[at].note_scheduled(id, (deadline, deadline), result);
    }

    fn schedule_within(&mut self, at: usize) {
        let (one, other) = (self.tick(at), self.tick(at));
        let window = (one.min(other), one.max(other));
        let (id, payload) = self.payload();
        self.log.add(("schedule within", at, id, window));
        let result = self.pairs[at].scheduler.schedule_within(window.0..=window.1, payload);
        self.pairs[at].note_scheduled(id, window, result);
    }

    fn pick(&mut self, at: usize) -> Option<u64> {
        let from = self.draw.below(self.ledger.made() + 1) as u64;
        let pending = &self.pairs[at].pending;
        pending.range(from..).next().or_else(|| pending.iter().next()).map(|(&id, _)| id)
    }

    fn cancel(&mut self, at: usize) {
        let Some(id) = self.pick(at) else { return };
        self.log.add(("cancel", at, id));
        let pair = &mut self.pairs[at];
        let expected = pair.remove(id);
        let cancelled = pair.scheduler.cancel(expected.key).map(|payload| end(payload, End::Cancelled));
        assert_eq!(cancelled, Some(id), "what a cancel gave back");
        pair.cancelled += 1;
        pair.stale.push(expected.key);
    }

    fn reschedule(&mut self, at: usize) {
        let Some(id) = self.pick(at) else { return };
        let deadline = self.tick(at);
        self.log.add(("reschedule", at, id, deadline));
        let pair = &mut self.pairs[at];
        let former = pair.remove(id).key;
        let key = pair.scheduler.reschedule(former, deadline).expect("a pending timer can be rescheduled");
        if key != former {
            pair.stale.push(former);
        }
        pair.insert(id, key, (deadline, deadline));
    }

    /// A key of an ended timer names nothing, in its own shard and in any other.
    fn use_stale(&mut self, at: usize) {
        let Some(which) = self.draw.any(self.pairs[at].stale.len()) else { return };
        let (key, other) = (self.pairs[at].stale[which], self.draw.below(self.pairs.len()));
        for pair in [&self.pairs[at], &self.pairs[other]] {
            assert!(pair.scheduler.cancel(key).is_none(), "a stale key has cancelled: {key:?}");
            assert_eq!(pair.scheduler.reschedule(key, pair.now), None, "a stale key has moved");
        }
    }

    /// The next time on the clock: it may go back, or jump over revolutions.
    fn clock(&mut self, at: usize) -> Tick {
        let now = self.pairs[at].now;
        let first = self.pairs[at].order.first().map_or(now, |&(due, _)| due);
        let furthest = now.saturating_add(1 << self.scale);
        let next = self.pairs[at].advancer.as_ref().and_then(Advancer::next_expiration);
        match self.draw.below(16) {
            0..3 => now.saturating_sub(self.draw.ticks(self.scale)),
            3..5 => first.min(furthest),
            5 => first.min(furthest).saturating_sub(1),
            6..9 => next.unwrap_or(now).min(furthest),
            _ => now.saturating_add(self.draw.ticks(self.scale)),
        }
    }

    /// Moves a shard's clock, and takes all or some of the due timers while producers go on.
    fn advance(&mut self, at: usize) {
        let clock = self.clock(at);
        let budget = if self.draw.once_in(2) { usize::MAX } else { self.draw.below(12) };
        let is_quiet = self.draw.once_in(2);
        self.log.add(("advance", at, clock, budget));
        let Some(mut advancer) = self.pairs[at].advancer.take() else { return };
        self.pairs[at].begin_drain(clock);
        let due = self.pairs[at].due();
        let (mut last, mut count) = (0, 0);
        for fired in advancer.advance(clock).take(budget) {
            count += 1;
            self.note_fired(at, &mut last, &fired);
            if !is_quiet && self.draw.once_in(3) {
                self.produce(at);
            }
        }
        self.pairs[at].advancer = Some(advancer);
        assert!(!is_quiet || count >= due.min(budget), "{count} have fired, of {due} and at most {budget}");
        if budget == usize::MAX {
            self.pairs[at].check_drained();
        }
    }

    fn note_fired(&mut self, at: usize, last: &mut Tick, fired: &Fired<Payload>) {
        self.log.add(("fired", at, number(&fired.payload), fired.deadline));
        let deadline = fired.deadline;
        assert!(deadline >= *last, "timer {}: {deadline} comes after {last}", number(&fired.payload));
        *last = deadline;
        self.pairs[at].note_fired(fired);
    }

    /// Ends a shard: what is pending comes back, or is dropped with the advancer.
    fn end(&mut self, at: usize) {
        let (keeps, pair) = (self.draw.once_in(2), &mut self.pairs[at]);
        self.log.add(("end", at, keeps, pair.pending.len()));
        let Some(advancer) = pair.advancer.take() else { return };
        let left = std::mem::take(&mut pair.pending);
        pair.order.clear();
        pair.handed_back += left.len() as u64;
        pair.stale.extend(left.values().map(|expected| expected.key));
        if keeps {
            let back = advancer.into_pending().map(|(tick, payload)| (end(payload, End::HandedBack), tick));
            let back: BTreeMap<_, _> = back.collect();
            assert!(back.keys().eq(left.keys()), "what was handed back");
            let is_within =
                |(&tick, expected): (&Tick, &Expected)| (expected.first..=expected.last).contains(&tick);
            assert!(back.values().zip(left.values()).all(is_within), "handed back with other deadlines");
        }
    }
}

impl Pair {
    fn new(draw: &mut Choices<'_>) -> Self {
        let start = if draw.once_in(2) { 0 } else { draw.ticks(60) };
        let limit = if draw.once_in(4) { 1 + draw.below(39) } else { usize::MAX };
        let size = if draw.is_seed() { 2 << draw.below(11) } else { WHEEL_SIZES[draw.below(8)] };
        let config = Config::builder().wheel_size(size).start(start).max_pending(limit);
        let (scheduler, advancer) = shard(&config.build().expect("settings within their limits"));
        Self {
            scheduler,
            advancer: Some(advancer),
            limit,
            start,
            now: start,
            pending: BTreeMap::new(),
            order: BTreeSet::new(),
            stale: Vec::new(),
            scheduled: 0,
            fired: 0,
            cancelled: 0,
            handed_back: 0,
        }
    }

    fn insert(&mut self, id: u64, key: Key, (first, last): (Tick, Tick)) {
        self.pending.insert(id, Expected { key, first, last, is_new: true });
        self.order.insert((last, id));
    }

    fn remove(&mut self, id: u64) -> Expected {
        let expected = self.pending.remove(&id).expect("a timer that is pending");
        self.order.remove(&(expected.last, id));
        expected
    }

    fn note_scheduled(
        &mut self,
        id: u64,
        window: (Tick, Tick),
        result: Result<Key, shardwheel::ScheduleError<Payload>>,
    ) {
        match result {
            Ok(key) => {
                assert!(self.pending.len() < self.limit, "timer {id} was taken, though the shard was full");
                self.insert(id, key, window);
                self.scheduled += 1;
            }
            Err(refused) if refused.is_full() => {
                assert!(self.pending.len() == self.limit, "timer {id} was refused, though there was room");
                assert_eq!(end(refused.into_payload(), End::Refused), id);
            }
            Err(refused) => assert!(self.scheduler.is_empty() && refused.is_shut_down()),
        }
    }

    fn begin_drain(&mut self, clock: Tick) {
        self.now = self.now.max(clock);
        self.pending.values_mut().for_each(|expected| expected.is_new = false);
    }

    fn note_fired(&mut self, fired: &Fired<Payload>) {
        let (id, deadline) = (number(&fired.payload), fired.deadline);
        assert!(self.pending.contains_key(&id), "timer {id} has fired, and was not pending");
        let expected = self.remove(id);
        assert_eq!(fired.key, expected.key, "of timer {id}");
        let (first, last) = (expected.first, expected.last);
        assert!((first..=last).contains(&deadline), "timer {id}: {deadline}, not {first} to {last}");
        assert!(deadline <= self.now, "timer {id} is early: {deadline} at {}", self.now);
        let passed = self.order.range(..(deadline, 0)).find(|(_, other)| !self.pending[other].is_new);
        assert_eq!(passed, None, "is due before timer {id}, of {deadline}, and has not fired");
        fired.payload.note(End::Fired);
        self.fired += 1;
        self.stale.push(fired.key);
    }

    /// How many timers are surely due.
    fn due(&self) -> usize {
        self.order.range(..=(self.now, u64::MAX)).count()
    }

    fn check_invariants(&self) {
        #[cfg(debug_assertions)]
        self.advancer.iter().for_each(Advancer::check_invariants);
    }

    /// After a complete drain nothing is left that was due when it began.
    fn check_drained(&self) {
        let left = self.order.range(..=(self.now, u64::MAX)).find(|(_, id)| !self.pending[id].is_new);
        assert_eq!(left, None, "is due by {}, and has not fired", self.now);
        assert_eq!(self.scheduler.now(), self.now, "the last tick flushed");
    }

    fn check(&self) {
        let stats = self.scheduler.stats();
        let counted = (stats.scheduled, stats.fired, stats.cancelled, stats.handed_back);
        assert_eq!(counted, (self.scheduled, self.fired, self.cancelled, self.handed_back), "the statistics");
        assert_eq!((stats.pending, self.scheduler.len()), (self.pending.len(), self.pending.len()));
        let Some(advancer) = &self.advancer else { return };
        let (next, first) = (advancer.next_expiration(), self.order.first());
        assert_eq!(next.is_some(), first.is_some(), "whether something is pending");
        if let (Some(next), Some(&(first, _))) = (next, first) {
            assert!(next <= first.max(self.now), "the next expiration is {next}, but {first} is due before");
        }
    }
}

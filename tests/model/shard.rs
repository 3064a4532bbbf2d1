//! A shard, moved to arbitrary ticks: backwards, over revolutions, with limited drains, compared
//! with a map that does the same slowly. Bytes choose the operations: those of a property test
//! (`main.rs`), or those of the fuzzer `operations`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::LazyLock;

use shardwheel::{Advancer, Config, Fired, Key, ScheduleError, Scheduler, Tick, shard};

use crate::bytes::Bytes;
use crate::ledger::{End, Ledger, Payload};

/// Wheel sizes that bytes choose from: small wheels wrap often, and are quick to check.
const WHEEL_SIZES: [usize; 8] = [4, 8, 4, 2, 4, 8, 16, 32];

/// Prints what `event` says, if the environment has `SHARDWHEEL_MODEL_LOG`.
fn log(event: impl Debug) {
    static IS_PRINTED: LazyLock<bool> = LazyLock::new(|| std::env::var_os("SHARDWHEEL_MODEL_LOG").is_some());
    if *IS_PRINTED {
        println!("{event:?}");
    }
}

/// Notes how a payload came back, and returns its number.
fn end(payload: Payload, end: End) -> usize {
    let number = payload.id();
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
struct Game<'a> {
    bytes: Bytes<'a>,
    ledger: Ledger,
    scheduler: Scheduler<Payload>,
    /// None once the shard has ended.
    advancer: Option<Advancer<Payload>>,
    limit: usize,
    now: Tick,
    pending: BTreeMap<usize, Expected>,
    /// The same, by their latest deadline.
    order: BTreeSet<(Tick, usize)>,
    stale: Vec<Key>,
    scheduled: u64,
    fired: u64,
    cancelled: u64,
    handed_back: u64,
}

/// Plays the choices of these bytes, and panics if the shard differs from the map. Checks the
/// shard's invariants once in `between_checks` operations.
pub(crate) fn play(bytes: &[u8], between_checks: usize) {
    let mut game = Game::new(Bytes(bytes));
    for step in 1_usize.. {
        if game.bytes.is_empty() {
            break;
        }
        game.operate();
        game.check();
        if step.is_multiple_of(between_checks) {
            game.check_invariants();
        }
    }
    game.check_invariants();
    game.end();
    game.check();
    game.ledger.check();
}

impl<'a> Game<'a> {
    fn new(mut bytes: Bytes<'a>) -> Self {
        let start = if bytes.once_in(2) { 0 } else { bytes.ticks() };
        let limit = if bytes.once_in(4) { 1 + bytes.below(39) } else { usize::MAX };
        let size = WHEEL_SIZES[bytes.below(8)];
        let config = Config::builder().wheel_size(size).start(start).max_pending(limit);
        let (scheduler, advancer) = shard(&config.build().expect("settings within their limits"));
        Self {
            bytes,
            ledger: Ledger::default(),
            scheduler,
            advancer: Some(advancer),
            limit,
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

    fn operate(&mut self) {
        match self.bytes.below(24) {
            0..6 => self.advance(),
            6 if self.bytes.once_in(20) => self.end(),
            _ => (0..=self.bytes.below(4)).for_each(|_| self.produce()),
        }
    }

    /// What a producer does, also during a drain.
    fn produce(&mut self) {
        match self.bytes.below(16) {
            0..6 => self.schedule(),
            6 => self.schedule_within(),
            7..9 => self.cancel(),
            9..14 => self.reschedule(),
            _ => self.use_stale(),
        }
    }

    /// A random tick near the shard's clock.
    fn tick(&mut self) -> Tick {
        let ticks = self.bytes.ticks();
        match self.bytes.below(32) {
            0 => Tick::MAX - self.bytes.below(3) as Tick,
            1..4 => self.now.saturating_sub(ticks),
            _ => self.now.saturating_add(ticks),
        }
    }

    fn schedule(&mut self) {
        let (deadline, payload) = (self.tick(), self.ledger.payload());
        let id = payload.id();
        log(("schedule", id, deadline));
        let result = self.scheduler.schedule(deadline, payload);
        self.note_scheduled(id, (deadline, deadline), result);
    }

    fn schedule_within(&mut self) {
        let (one, other) = (self.tick(), self.tick());
        let window = (one.min(other), one.max(other));
        let payload = self.ledger.payload();
        let id = payload.id();
        log(("schedule within", id, window));
        let result = self.scheduler.schedule_within(window.0..=window.1, payload);
        self.note_scheduled(id, window, result);
    }

    fn note_scheduled(
        &mut self,
        id: usize,
        window: (Tick, Tick),
        result: Result<Key, ScheduleError<Payload>>,
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

    fn pick(&mut self) -> Option<usize> {
        let from = self.bytes.below(self.ledger.made() + 1);
        self.pending.range(from..).next().or_else(|| self.pending.iter().next()).map(|(&id, _)| id)
    }

    fn cancel(&mut self) {
        let Some(id) = self.pick() else { return };
        log(("cancel", id));
        let expected = self.remove(id);
        let cancelled = self.scheduler.cancel(expected.key).map(|payload| end(payload, End::Cancelled));
        assert_eq!(cancelled, Some(id), "what a cancel gave back");
        self.cancelled += 1;
        self.stale.push(expected.key);
    }

    fn reschedule(&mut self) {
        let Some(id) = self.pick() else { return };
        let deadline = self.tick();
        log(("reschedule", id, deadline));
        let former = self.remove(id).key;
        let key = self.scheduler.reschedule(former, deadline).expect("a pending timer can be rescheduled");
        if key != former {
            self.stale.push(former);
        }
        self.insert(id, key, (deadline, deadline));
    }

    /// A key of an ended timer names nothing.
    fn use_stale(&mut self) {
        if self.stale.is_empty() {
            return;
        }
        let key = self.stale[self.bytes.below(self.stale.len())];
        if self.bytes.once_in(2) {
            assert!(self.scheduler.cancel(key).is_none(), "a stale key has cancelled: {key:?}");
        } else {
            assert_eq!(self.scheduler.reschedule(key, self.now), None, "a stale key has moved");
        }
    }

    /// The next time on the clock: it may go back, or jump over revolutions.
    fn clock(&mut self) -> Tick {
        let now = self.now;
        let first = self.order.first().map_or(now, |&(due, _)| due);
        let furthest = now.saturating_add(1 << 63);
        let next = self.advancer.as_ref().and_then(Advancer::next_expiration);
        match self.bytes.below(16) {
            0..3 => now.saturating_sub(self.bytes.ticks()),
            3..5 => first.min(furthest),
            5 => first.min(furthest).saturating_sub(1),
            6..9 => next.unwrap_or(now).min(furthest),
            _ => now.saturating_add(self.bytes.ticks()),
        }
    }

    /// Moves the clock, and takes all or some of the due timers while producers go on.
    fn advance(&mut self) {
        let clock = self.clock();
        let budget = if self.bytes.once_in(2) { usize::MAX } else { self.bytes.below(12) };
        let is_quiet = self.bytes.once_in(2);
        log(("advance", clock, budget));
        let Some(mut advancer) = self.advancer.take() else { return };
        self.now = self.now.max(clock);
        self.pending.values_mut().for_each(|expected| expected.is_new = false);
        let due = self.order.range(..=(self.now, usize::MAX)).count();
        let (mut last, mut count) = (0, 0);
        for fired in advancer.advance(clock).take(budget) {
            count += 1;
            assert!(fired.deadline >= last, "{} comes after {last}", fired.deadline);
            last = fired.deadline;
            self.note_fired(&fired);
            if !is_quiet && self.bytes.once_in(3) {
                self.produce();
            }
        }
        self.advancer = Some(advancer);
        assert!(!is_quiet || count >= due.min(budget), "{count} have fired, of {due} and at most {budget}");
        if budget == usize::MAX {
            assert_eq!(self.overdue((self.now, usize::MAX)), None, "is due by {}", self.now);
            assert_eq!(self.scheduler.now(), self.now, "the last tick flushed");
        }
    }

    fn note_fired(&mut self, fired: &Fired<Payload>) {
        let (id, deadline) = (fired.payload.id(), fired.deadline);
        log(("fired", id, deadline));
        assert!(self.pending.contains_key(&id), "timer {id} has fired, and was not pending");
        let expected = self.remove(id);
        assert_eq!(fired.key, expected.key, "of timer {id}");
        let (first, last) = (expected.first, expected.last);
        assert!((first..=last).contains(&deadline), "timer {id}: {deadline}, not {first} to {last}");
        assert!(deadline <= self.now, "timer {id} is early: {deadline} at {}", self.now);
        assert_eq!(self.overdue((deadline, 0)), None, "is due before timer {id}, of {deadline}");
        fired.payload.note(End::Fired);
        self.fired += 1;
        self.stale.push(fired.key);
    }

    /// A timer that comes before that place in the order, and was set before the current drain.
    fn overdue(&self, before: (Tick, usize)) -> Option<(Tick, usize)> {
        self.order.range(..before).find(|(_, id)| !self.pending[id].is_new).copied()
    }

    /// Ends the shard: what is pending comes back, or is dropped with the advancer.
    fn end(&mut self) {
        let keeps = self.bytes.once_in(2);
        log(("end", keeps, self.pending.len()));
        let Some(advancer) = self.advancer.take() else { return };
        let left = std::mem::take(&mut self.pending);
        self.order.clear();
        self.handed_back += left.len() as u64;
        self.stale.extend(left.values().map(|expected| expected.key));
        if keeps {
            let back = advancer.into_pending().map(|(tick, payload)| (end(payload, End::HandedBack), tick));
            let back: BTreeMap<_, _> = back.collect();
            assert!(back.keys().eq(left.keys()), "what was handed back");
            let is_within =
                |(&tick, expected): (&Tick, &Expected)| (expected.first..=expected.last).contains(&tick);
            assert!(back.values().zip(left.values()).all(is_within), "handed back with other deadlines");
        }
    }

    fn insert(&mut self, id: usize, key: Key, (first, last): (Tick, Tick)) {
        self.pending.insert(id, Expected { key, first, last, is_new: true });
        self.order.insert((last, id));
    }

    fn remove(&mut self, id: usize) -> Expected {
        let expected = self.pending.remove(&id).expect("a timer that is pending");
        self.order.remove(&(expected.last, id));
        expected
    }

    fn check_invariants(&self) {
        #[cfg(debug_assertions)]
        self.advancer.iter().for_each(Advancer::check_invariants);
    }

    fn check(&self) {
        let stats = self.scheduler.stats();
        let counted = (stats.scheduled, stats.fired, stats.cancelled, stats.handed_back);
        assert_eq!(counted, (self.scheduled, self.fired, self.cancelled, self.handed_back), "the statistics");
        assert_eq!((stats.pending, self.scheduler.len()), (self.pending.len(), self.pending.len()));
        assert_eq!(self.ledger.living(), self.pending.len(), "payloads alive, against timers pending");
        let Some(advancer) = &self.advancer else { return };
        let (next, first) = (advancer.next_expiration(), self.order.first());
        assert_eq!(next.is_some(), first.is_some(), "whether something is pending");
        if let (Some(next), Some(&(first, _))) = (next, first) {
            assert!(next <= first.max(self.now), "the next expiration is {next}, but {first} is due before");
        }
    }
}

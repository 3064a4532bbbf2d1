//! Random operations on a shard, compared with a map that does the same slowly.
//!
//! Operations are read from bytes, so that a property test and a fuzzer can both feed them. After
//! each operation all observable state is compared; the shard's invariants are checked as often as
//! the caller asks.

use std::collections::BTreeMap;

use shardwheel::{Advancer, Config, Fired, Key, Scheduler, Tick, shard};

use super::bytes::Bytes;

/// Wheel sizes; small ones are the most frequent.
const WHEEL_SIZES: [usize; 8] = [4, 8, 4, 2, 4, 8, 16, 32];

/// A timer as the map knows it.
struct Expected {
    key: Key,
    deadline: Tick,
}

/// A shard, and its expected contents.
struct Play {
    scheduler: Scheduler<u64>,
    max_pending: usize,
    now: Tick,
    /// By payload, which is the order of scheduling.
    pending: BTreeMap<u64, Expected>,
    ended: Vec<Key>,
    scheduled: u64,
    fired: u64,
    cancelled: u64,
}

/// Plays the operations that the bytes encode. Checks the invariants once in `between_checks`
/// operations, and at the end.
///
/// # Panics
///
/// Panics if the shard and the map differ, or if an invariant of the shard does not hold.
pub(crate) fn play(data: &[u8], between_checks: usize) {
    let mut bytes = Bytes(data);
    // Small wheels wrap often, and are quick to check.
    let wheel_size = WHEEL_SIZES[usize::from(bytes.byte()) % WHEEL_SIZES.len()];
    let start = if bytes.byte().is_multiple_of(4) { bytes.ticks() } else { 0 };
    let max_pending = if bytes.byte().is_multiple_of(8) { 1 + usize::from(bytes.byte()) } else { usize::MAX };
    let config = Config::builder().wheel_size(wheel_size).start(start).max_pending(max_pending);
    let (scheduler, mut advancer) = shard(&config.build().expect("in range"));
    let mut play = Play::new(scheduler, max_pending, start);
    let mut played = 0;
    while !bytes.is_empty() {
        play.operation(&mut advancer, &mut bytes);
        play.check(&advancer);
        played += 1;
        if played % between_checks == 0 {
            #[cfg(debug_assertions)]
            advancer.check_invariants();
        }
    }
    #[cfg(debug_assertions)]
    advancer.check_invariants();
    play.end(advancer);
}

impl Play {
    fn new(scheduler: Scheduler<u64>, max_pending: usize, now: Tick) -> Self {
        let (pending, ended) = (BTreeMap::new(), Vec::new());
        Self { scheduler, max_pending, now, pending, ended, scheduled: 0, fired: 0, cancelled: 0 }
    }

    fn operation(&mut self, advancer: &mut Advancer<u64>, bytes: &mut Bytes<'_>) {
        match bytes.byte() % 16 {
            0..=3 => self.advance(advancer, bytes),
            _ => self.produce(bytes),
        }
    }

    /// What a producer may do, also during a drain.
    fn produce(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.byte() % 8 {
            0..=2 => self.schedule(bytes),
            3 => self.schedule_within(bytes),
            4 => self.cancel(bytes),
            5 | 6 => self.reschedule(bytes),
            _ => self.try_stale_keys(bytes),
        }
    }

    /// A deadline near the clock: mostly after it, sometimes before.
    fn deadline(&self, bytes: &mut Bytes<'_>) -> Tick {
        let before = bytes.byte().is_multiple_of(8);
        let ticks = bytes.ticks();
        if before { self.now.saturating_sub(ticks) } else { self.now.saturating_add(ticks) }
    }

    fn schedule(&mut self, bytes: &mut Bytes<'_>) {
        let deadline = self.deadline(bytes);
        let result = self.scheduler.schedule(deadline, self.scheduled);
        if self.pending.len() == self.max_pending {
            let refused = result.expect_err("the shard is full");
            assert!(refused.is_full() && refused.into_payload() == self.scheduled);
        } else {
            self.note(result.expect("there is room"), deadline);
        }
    }

    fn note(&mut self, key: Key, deadline: Tick) {
        self.pending.insert(self.scheduled, Expected { key, deadline });
        self.scheduled += 1;
    }

    fn schedule_within(&mut self, bytes: &mut Bytes<'_>) {
        let start = self.deadline(bytes);
        let end = start.saturating_add(bytes.ticks());
        if let Ok(key) = self.scheduler.schedule_within(start..=end, self.scheduled) {
            // The chosen tick is unknown; rescheduling sets a known one.
            let now = self.scheduler.now();
            let chosen = self.scheduler.reschedule(key, end).expect("the timer is pending");
            self.note(chosen, end);
            assert!(now <= self.now);
        }
    }

    fn pick(&self, bytes: &mut Bytes<'_>) -> Option<u64> {
        let at = bytes.byte() as usize;
        let count = self.pending.len();
        (count > 0).then(|| *self.pending.keys().nth(at % count).expect("in range"))
    }

    fn cancel(&mut self, bytes: &mut Bytes<'_>) {
        let Some(payload) = self.pick(bytes) else { return };
        let expected = self.pending.remove(&payload).expect("picked");
        assert_eq!(self.scheduler.cancel(expected.key), Some(payload));
        assert_eq!(self.scheduler.cancel(expected.key), None);
        self.ended.push(expected.key);
        self.cancelled += 1;
    }

    fn reschedule(&mut self, bytes: &mut Bytes<'_>) {
        let Some(payload) = self.pick(bytes) else { return };
        let deadline = self.deadline(bytes);
        let expected = self.pending.get_mut(&payload).expect("picked");
        let former = expected.key;
        expected.key = self.scheduler.reschedule(former, deadline).expect("the timer is pending");
        expected.deadline = deadline;
        if expected.key != former {
            self.ended.push(former);
        }
    }

    fn try_stale_keys(&mut self, bytes: &mut Bytes<'_>) {
        let skip = bytes.byte() as usize;
        for &key in self.ended.iter().rev().skip(skip).take(8) {
            assert_eq!(self.scheduler.cancel(key), None);
            assert_eq!(self.scheduler.reschedule(key, Tick::MAX), None);
        }
    }

    /// Moves the clock, and takes all or some of the due timers, with other operations in between.
    fn advance(&mut self, advancer: &mut Advancer<u64>, bytes: &mut Bytes<'_>) {
        let (how, budget) = (bytes.byte(), bytes.byte());
        let budget = if budget < 128 { usize::MAX } else { usize::from(budget - 128) };
        let target = match how % 4 {
            0 => advancer.next_expiration().unwrap_or(self.now),
            1 => self.now.saturating_sub(bytes.ticks()),
            _ => self.now.saturating_add(bytes.ticks()),
        };
        self.now = self.now.max(target);
        let due = self.pending.values().filter(|expected| expected.deadline <= self.now).count();
        let fired = self.drain(advancer, target, budget, bytes, how >= 192);
        if how < 192 {
            assert_eq!(fired, due.min(budget), "of what is due by {}", self.now);
        }
    }

    fn drain(
        &mut self,
        advancer: &mut Advancer<u64>,
        target: Tick,
        budget: usize,
        bytes: &mut Bytes<'_>,
        reentrant: bool,
    ) -> usize {
        let (mut count, mut last) = (0, 0);
        let mut expired = advancer.advance(target);
        while count < budget {
            let Some(fired) = expired.next() else {
                drop(expired);
                assert_eq!(self.scheduler.now(), self.now);
                return count;
            };
            assert!(fired.deadline >= last, "{} after {last}", fired.deadline);
            last = fired.deadline;
            count += 1;
            self.note_fired(&fired);
            if reentrant && !bytes.is_empty() {
                self.produce(bytes);
            }
        }
        count
    }

    fn note_fired(&mut self, fired: &Fired<u64>) {
        let expected = self.pending.remove(&fired.payload).expect("fired once, and not cancelled");
        assert_eq!((fired.key, fired.deadline), (expected.key, expected.deadline));
        assert!(fired.deadline <= self.now, "{} fired early, at {}", fired.deadline, self.now);
        assert_eq!(self.scheduler.cancel(fired.key), None);
        self.ended.push(fired.key);
        self.fired += 1;
    }

    fn check(&self, advancer: &Advancer<u64>) {
        let first = self.pending.values().map(|expected| expected.deadline).min();
        match (advancer.next_expiration(), first) {
            (None, first) => assert_eq!(first, None),
            (Some(answer), first) => assert!(answer <= first.expect("something is pending").max(self.now)),
        }
        let stats = self.scheduler.stats();
        assert_eq!(self.scheduler.len(), self.pending.len());
        assert_eq!(stats.pending, self.pending.len());
        assert_eq!(
            (stats.scheduled, stats.fired, stats.cancelled),
            (self.scheduled, self.fired, self.cancelled)
        );
    }

    fn end(mut self, advancer: Advancer<u64>) {
        let mut left: BTreeMap<u64, Tick> = BTreeMap::new();
        for (deadline, payload) in advancer.into_pending() {
            assert_eq!(left.insert(payload, deadline), None, "handed back twice");
        }
        let expected = self.pending.iter().map(|(&payload, expected)| (payload, expected.deadline)).collect();
        assert_eq!(left, expected);
        assert!(self.scheduler.is_empty());
        self.pending.clear();
        let refused = self.scheduler.schedule(0, 7).expect_err("the advancer is gone");
        assert!(refused.is_shut_down() && refused.into_payload() == 7);
    }
}

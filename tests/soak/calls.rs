//! How timers are made, cancelled and moved, what must hold for each call, and what callbacks do.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use shardwheel::{Every, Missed, ScheduleErrorKind, TimerKey};

use crate::scene::{BY_ITSELF, Nanos, Scene, WITH_EXECUTOR};
use crate::support::ledger::{End, Payload};
use crate::support::ms;

/// Nanoseconds of some twenty years, which every system's clock can represent.
const MOST_AHEAD: Nanos = 600_000_000_000_000_000;

/// A timer that is due after this, and that no other thread knows, is pending.
const A_WHILE: Nanos = 2_000_000_000;

/// What deliberate panics carry.
pub(crate) struct Made;

/// The key of a timer.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) which: usize,
    pub(crate) key: TimerKey,
    /// The number of its payload.
    id: usize,
    due: Nanos,
    /// Whether two pools have the key. Such a timer is only cancelled.
    pub(crate) is_shared: bool,
    recurring: Option<Arc<Recurring>>,
}

impl Held {
    pub(crate) fn recurs(&self) -> bool {
        self.recurring.is_some()
    }
}

/// What a recurring callback and the holder of its key share.
#[derive(Default)]
struct Recurring {
    key: OnceLock<TimerKey>,
    /// How often it was moved; so many occurrences may be early.
    moves: AtomicU64,
}

/// A random delay, mostly short, seldom some seconds.
pub(crate) fn delay(rng: &mut Rng) -> Nanos {
    let most = 1 << rng.u32(10..=32);
    rng.u64(..most)
}

impl Scene {
    /// Makes a timer that fires once, after `after` or at a time that may have passed.
    pub(crate) fn once(
        self: &Arc<Self>,
        which: usize,
        after: Option<Duration>,
        rng: &mut Rng,
    ) -> Option<Held> {
        let at = (self.now() + delay(rng)).saturating_sub(1 << 25);
        let earliest = |after: Duration| {
            let after = Nanos::try_from(after.as_nanos()).unwrap_or(Nanos::MAX);
            self.now().saturating_add(after)
        };
        let due = after.map_or(at, earliest);
        let (payload, seed, scene) = (self.ledger.payload_due(due), rng.u64(..), Arc::clone(self));
        let id = payload.id();
        let callback = move || scene.call(which, payload, seed);
        let timer = &self.timers[which];
        let taken = if let Some(after) = after {
            timer.schedule_after(after, callback).map_err(|refused| refused.kind())
        } else {
            // Too large for a timer's node.
            let content = [seed; 6];
            let checked = move || {
                assert_eq!(content, [seed; 6], "what was captured has changed");
                callback();
            };
            timer.schedule_at(self.instant(at), checked).map_err(|refused| refused.kind())
        };
        self.held(which, id, due, taken)
    }

    fn held(
        &self,
        which: usize,
        id: usize,
        due: Nanos,
        taken: Result<TimerKey, ScheduleErrorKind>,
    ) -> Option<Held> {
        match taken {
            Ok(key) => return Some(Held { which, key, id, due, is_shared: false, recurring: None }),
            Err(ScheduleErrorKind::ShutDown) => assert!(self.is_shut(which), "refused without an end"),
            Err(ScheduleErrorKind::Full { .. }) => assert_eq!(which, WITH_EXECUTOR, "has no limit"),
            Err(kind) => panic!("refused: {kind}"),
        }
        self.ledger.note(id, End::Refused);
        None
    }

    /// The callback of a timer that fires once.
    fn call(self: &Arc<Self>, which: usize, payload: Payload, seed: u64) {
        self.runs.one();
        if self.has_ended(which) {
            return payload.end(End::HandedBack);
        }
        payload.fire_at(self.now());
        self.act(&mut Rng::with_seed(seed));
    }

    /// Makes a timer that recurs, until it is cancelled.
    pub(crate) fn recurring(self: &Arc<Self>, rng: &mut Rng) -> Option<Held> {
        let period = rng.u64(200_000..200_000_000);
        let missed = [Missed::Burst, Missed::Skip, Missed::Delay][rng.usize(..3)];
        let (payload, shared, scene) = (self.ledger.payload(), Arc::<Recurring>::default(), Arc::clone(self));
        let (id, own, made, mut rng) = (payload.id(), Arc::clone(&shared), self.now(), rng.fork());
        let (mut times, mut was_late) = (0, false);
        let callback = move || {
            scene.runs.one();
            times += 1;
            let regular: u64 = times - own.moves.load(Ordering::Relaxed).min(times);
            assert!(made + regular * period <= scene.now(), "{times} times, every {period}, since {made}");
            // The occurrence that was under way at the cancel may begin after it.
            let is_late = scene.ledger.has(payload.id(), End::Cancelled);
            assert!(!(is_late && was_late), "fired after a cancel");
            was_late |= is_late;
            match own.key.get().filter(|_| rng.u32(..100) == 0) {
                Some(&key) if scene.timers[BY_ITSELF].cancel(key) => {
                    scene.stopped.one();
                    payload.note(End::Cancelled);
                }
                _ => scene.act(&mut rng),
            }
        };
        let every = Every::new(Duration::from_nanos(period)).missed(missed);
        let taken = self.timers[BY_ITSELF].schedule_with(every, callback).map_err(|refused| refused.kind());
        let held = self.held(BY_ITSELF, id, 0, taken)?;
        shared.key.get_or_init(|| held.key);
        Some(Held { recurring: Some(shared), ..held })
    }

    /// Whether it must be pending: it is due in a while, no other pool has its key, and its timer
    /// has not ended.
    fn is_surely_pending(&self, held: &Held, before: Nanos) -> bool {
        !held.is_shared && held.due > before.saturating_add(A_WHILE) && !self.is_shut(held.which)
    }

    /// Cancels a timer. Its callback is dropped at once, unless it recurs and is being called.
    pub(crate) fn cancel(&self, held: &Held) {
        let before = self.now();
        if self.timers[held.which].cancel(held.key) {
            self.ledger.note(held.id, End::Cancelled);
            let recurs = held.recurs();
            assert!(recurs || self.ledger.is_dropped(held.id), "cancelled, and not dropped");
            (0..usize::from(recurs)).for_each(|_| self.stopped.one());
        } else {
            assert!(!self.is_surely_pending(held, before), "pending, but there was nothing to cancel");
        }
    }

    /// Moves a timer. Returns a key that names it no more, if there is one.
    pub(crate) fn reschedule(&self, held: &mut Held, rng: &mut Rng) -> Option<TimerKey> {
        if held.is_shared || self.is_quiet() {
            return None;
        }
        let before = self.now();
        let to = match rng.bool() {
            true if before < held.due => rng.u64(before..held.due),
            _ => held.due.max(before).saturating_add(delay(rng)),
        };
        let to = to.min(before + MOST_AHEAD);
        if let Some(recurring) = &held.recurring {
            recurring.moves.fetch_add(1, Ordering::Relaxed);
        } else if to <= held.due {
            self.ledger.due_from(held.id, to);
        }
        let moved = if rng.bool() {
            self.timers[held.which].reschedule_at(held.key, self.instant(to))
        } else {
            self.timers[held.which].reschedule_after(held.key, Duration::from_nanos(to - before))
        };
        let Some(key) = moved else {
            assert!(!self.is_surely_pending(held, before), "pending, but there was nothing to move");
            return None;
        };
        if held.recurring.is_none() {
            held.due = to;
            self.ledger.due(held.id, to);
        }
        let former = std::mem::replace(&mut held.key, key);
        (former != key).then_some(former)
    }

    /// A key of an ended timer names nothing.
    pub(crate) fn try_stale(&self, (which, key): (usize, TimerKey)) {
        let timer = &self.timers[which];
        assert!(!timer.cancel(key), "a stale key has cancelled: {key:?}");
        assert_eq!(timer.reschedule_after(key, ms(4_000)), None, "a stale key has moved a timer");
    }

    /// Many timers at once; every third is cancelled early, in another order.
    pub(crate) fn burst(self: &Arc<Self>, timers: usize, rng: &mut Rng) {
        let which = rng.usize(..2);
        let set = |_| self.once(which, Some(Duration::from_nanos(delay(rng))), rng);
        let mut held: Vec<_> = (0..timers).filter_map(set).collect();
        rng.shuffle(&mut held);
        held.iter().step_by(3).for_each(|held| self.cancel(held));
    }

    /// What callbacks do: mostly nothing; sometimes they are slow, make and cancel timers, and
    /// panic.
    fn act(self: &Arc<Self>, rng: &mut Rng) {
        match rng.u32(..20_000) {
            0..3 => thread::sleep(ms(rng.u64(1..=50))),
            3..203 => {
                let after = Duration::from_nanos(delay(rng));
                let held = self.once(rng.usize(..2), Some(after), rng);
                // If no pool is free, no thread has its key.
                self.free_pool(rng).into_iter().for_each(|mut pool| pool.held.extend(held.clone()));
            }
            203..303 => {
                let held = self.free_pool(rng).and_then(|mut pool| pool.held.pop());
                held.iter().for_each(|held| self.cancel(held));
            }
            303..353 => {
                self.panics.one();
                // Without a message on standard error.
                resume_unwind(Box::new(Made));
            }
            _ => {}
        }
    }
}

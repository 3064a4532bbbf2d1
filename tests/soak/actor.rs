//! What a thread does, at random from its seed.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use shardwheel::{Missed, TimerKey};

use crate::placing::{self, Held, Rhythm, When, delay};
use crate::scene::{Nanos, Scene};
use crate::waits::Wait;

/// Steps between two rests.
const BATCH: usize = 256;
/// Timers whose keys a thread keeps.
const MOST_HELD: usize = 20_000;
const MOST_RECURRING: usize = 40;
const MOST_WAITS: usize = 200;
/// Keys of ended timers, some of them old.
const MOST_STALE: usize = 20_000;

/// Timers of a burst, and the time between bursts.
const BURST: usize = 100_000;
const BETWEEN_BURSTS: Duration = Duration::from_secs(7);

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

pub(crate) struct Actor {
    scene: Arc<Scene>,
    rng: Rng,
    next_burst: Option<Instant>,
    remains: Remains,
}

/// What a thread leaves.
#[derive(Default)]
pub(crate) struct Remains {
    pub(crate) held: Vec<Held>,
    pub(crate) waits: Vec<Wait>,
    recurring: Vec<Held>,
    stale: Vec<(usize, TimerKey)>,
}

impl Actor {
    pub(crate) fn new(scene: &Arc<Scene>, seed: u64, bursts: bool) -> Self {
        let next_burst = bursts.then(Instant::now);
        Self { scene: Arc::clone(scene), rng: Rng::with_seed(seed), next_burst, remains: Remains::default() }
    }

    pub(crate) fn work(mut self) -> Remains {
        while !self.scene.has_stopped() {
            let crowded = self.scene.is_crowded();
            if !crowded && self.next_burst.is_some_and(|at| at <= Instant::now()) {
                self.next_burst = Some(Instant::now() + BETWEEN_BURSTS);
                self.burst();
            }
            (0..BATCH).for_each(|_| self.step(crowded));
            thread::sleep(Duration::from_micros(self.rng.u64(500..6_000)));
        }
        self.remains
    }

    fn step(&mut self, crowded: bool) {
        match self.rng.u32(..1_000) {
            0..340 if !crowded => self.schedule(),
            340..345 if !crowded => self.schedule_recurring(),
            345..355 if !crowded => self.schedule_far(),
            355..480 => self.cancel(),
            480..720 => self.reschedule(),
            720..780 => self.trade(),
            780..840 => self.remains.try_stale(&self.scene, &mut self.rng),
            840..960 => self.wait(),
            _ => {}
        }
    }

    /// A timer that fires once. Its time may have passed.
    fn schedule(&mut self) {
        let delay = delay(&mut self.rng);
        let when = match self.rng.u32(..10) {
            0 => When::At(self.scene.instant((self.scene.now() + delay).saturating_sub(1 << 25))),
            1 => When::At(self.scene.instant(self.scene.now() + delay)),
            2 => When::After(Duration::ZERO),
            _ => When::After(Duration::from_nanos(delay)),
        };
        let held = self.once(when);
        if self.rng.bool() {
            self.keep(held);
        }
    }

    fn once(&mut self, when: When) -> Option<Held> {
        placing::once(&self.scene, self.rng.usize(..2), when, self.rng.u64(..))
    }

    fn schedule_far(&mut self) {
        let years = [1, 20, 500, 10_000][self.rng.usize(..4)];
        let after = if self.rng.u32(..5) == 0 { Duration::MAX } else { years * YEAR };
        let held = self.once(When::After(after));
        self.keep(held);
    }

    fn schedule_recurring(&mut self) {
        if self.remains.recurring.len() == MOST_RECURRING {
            if self.rng.u32(..50) == 0 {
                let held = take_any(&mut self.remains.recurring, &mut self.rng);
                self.end(held);
            }
            return;
        }
        let period = Duration::from_micros(self.rng.u64(200..200_000));
        let rhythm = match self.rng.u32(..5) {
            0 => Rhythm::Every(period, Missed::Burst),
            1 => Rhythm::Every(period, Missed::Skip),
            2 => Rhythm::Every(period, Missed::Delay),
            _ => Rhythm::Times(period, self.rng.u32(1..20)),
        };
        let held = placing::recurring(&self.scene, self.rng.usize(..2), rhythm, self.rng.u64(..));
        self.remains.recurring.extend(held);
    }

    /// A hundred thousand timers at once; every third is cancelled early, in another order.
    fn burst(&mut self) {
        let which = self.rng.usize(..2);
        let mut held = Vec::with_capacity(BURST);
        for _ in 0..BURST {
            let when = When::After(Duration::from_nanos(delay(&mut self.rng)));
            held.extend(placing::once(&self.scene, which, when, self.rng.u64(..)));
        }
        self.rng.shuffle(&mut held);
        held.truncate(BURST / 3);
        held.iter().for_each(Held::cancel);
    }

    fn cancel(&mut self) {
        let held = take_any(&mut self.remains.held, &mut self.rng);
        self.end(held);
    }

    fn end(&mut self, held: Option<Held>) {
        if let Some(held) = held {
            held.cancel();
            self.outlived(held.account.which, held.key);
        }
    }

    fn reschedule(&mut self) {
        let recurring = self.rng.u32(..500) == 0;
        let held = if recurring { &mut self.remains.recurring } else { &mut self.remains.held };
        let Some(at) = any(held, &mut self.rng) else { return };
        let which = held[at].account.which;
        if let Some(former) = held[at].reschedule(&mut self.rng) {
            self.outlived(which, former);
        }
    }

    /// Gives a timer to another thread, takes one, or gives a second key of one.
    fn trade(&mut self) {
        let given = match self.rng.u32(..3) {
            0 => take_any(&mut self.remains.held, &mut self.rng),
            1 => any(&self.remains.held, &mut self.rng).map(|at| self.remains.held[at].copy()),
            _ => self.scene.take(&mut self.rng),
        };
        let taken = given.and_then(|held| if self.rng.bool() { self.scene.give(held) } else { Some(held) });
        self.keep(taken);
    }

    fn keep(&mut self, held: Option<Held>) {
        self.remains.held.extend(held);
        if self.remains.held.len() > MOST_HELD {
            self.cancel();
        }
    }

    fn outlived(&mut self, which: usize, key: TimerKey) {
        let stale = &mut self.remains.stale;
        if stale.len() < MOST_STALE {
            stale.push((which, key));
        } else {
            stale[self.rng.usize(..MOST_STALE)] = (which, key);
        }
    }

    fn wait(&mut self) {
        let (waits, rng) = (&mut self.remains.waits, &mut self.rng);
        if waits.len() < MOST_WAITS {
            waits.push(Wait::new(&self.scene, rng));
        }
        let at = rng.usize(..waits.len());
        let over = match rng.u32(..20) {
            0 => true,
            1..4 => {
                waits[at].reset(rng);
                false
            }
            _ => waits[at].poll(rng),
        };
        if over {
            drop(waits.swap_remove(at));
        }
    }
}

impl Remains {
    /// A key of an ended timer names nothing.
    fn try_stale(&self, scene: &Scene, rng: &mut Rng) {
        if let Some(at) = any(&self.stale, rng) {
            try_stale(scene, self.stale[at]);
        }
    }

    pub(crate) fn try_all_stale(&self, scene: &Scene) {
        self.stale.iter().for_each(|&stale| try_stale(scene, stale));
    }
}

fn try_stale(scene: &Scene, (which, key): (usize, TimerKey)) {
    let (timer, books) = (scene.timer(which), scene.books(which));
    books.expect(!timer.cancel(key), format_args!("a stale key has cancelled: {key:?}"));
    let moved = timer.reschedule_after(key, Duration::from_nanos(Nanos::from(u32::MAX)));
    books.expect(moved.is_none(), format_args!("a stale key has moved: {key:?}"));
}

fn any<T>(list: &[T], rng: &mut Rng) -> Option<usize> {
    (!list.is_empty()).then(|| rng.usize(..list.len()))
}

fn take_any<T>(list: &mut Vec<T>, rng: &mut Rng) -> Option<T> {
    any(list, rng).map(|at| list.swap_remove(at))
}

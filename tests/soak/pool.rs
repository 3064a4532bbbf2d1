//! What a thread does at random, with a pool of keys and of sleeps, which are polled by hand with
//! changing wakers, reset and dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use fastrand::Rng;
use shardwheel::{Sleep, TimerKey};

use crate::calls::{Held, delay};
use crate::scene::{Nanos, Scene, WITH_EXECUTOR};
use crate::support::{before_poll, poll};

/// The most of each that a pool has.
const MOST_HELD: usize = 20_000;
const MOST_RECURRING: usize = 10;
const MOST_SLEEPS: usize = 100;
const MOST_STALE: usize = 20_000;

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) held: Vec<Held>,
    pub(crate) recurring: Vec<Held>,
    sleeps: Vec<Wait>,
    /// Keys of ended timers, some of them old.
    stale: Vec<(usize, TimerKey)>,
}

fn take_any<T>(list: &mut Vec<T>, rng: &mut Rng) -> Option<T> {
    (!list.is_empty()).then(|| list.swap_remove(rng.usize(..list.len())))
}

impl Scene {
    /// One step of a thread, most often with its own pool.
    pub(crate) fn step(self: &Arc<Self>, number: usize, rng: &mut Rng) {
        let mut pool = self.pool(if rng.u32(..8) == 0 { rng.usize(..) } else { number });
        let is_crowded = self.is_crowded();
        match rng.u32(..1_000) {
            0..340 if !is_crowded => pool.schedule(self, rng),
            340..345 if !is_crowded => pool.set_recurring(self, rng),
            355..480 => pool.cancel(self, rng),
            480..720 => pool.reschedule(self, rng),
            720..780 => pool.share(self, rng),
            780..840 => rng.choice(&pool.stale).into_iter().for_each(|&stale| self.try_stale(stale)),
            840..960 => pool.wait(self, rng),
            _ => {}
        }
    }
}

impl Pool {
    fn schedule(&mut self, scene: &Arc<Scene>, rng: &mut Rng) {
        let after = match rng.u32(..40) {
            0 => Some([1, 20, 500, 10_000][rng.usize(..4)] * YEAR),
            1 => Some(Duration::MAX),
            2..8 => Some(Duration::ZERO),
            8..16 => None,
            _ => Some(Duration::from_nanos(delay(rng))),
        };
        let held = scene.once(rng.usize(..2), after, rng);
        if rng.bool() || after > Some(YEAR) {
            self.held.extend(held);
        }
        if self.held.len() > MOST_HELD {
            self.cancel(scene, rng);
        }
    }

    fn set_recurring(&mut self, scene: &Arc<Scene>, rng: &mut Rng) {
        if self.recurring.len() < MOST_RECURRING {
            self.recurring.extend(scene.recurring(rng));
        } else {
            let held = take_any(&mut self.recurring, rng);
            self.end(scene, held, rng);
        }
    }

    fn cancel(&mut self, scene: &Scene, rng: &mut Rng) {
        let held = take_any(&mut self.held, rng);
        self.end(scene, held, rng);
    }

    fn end(&mut self, scene: &Scene, held: Option<Held>, rng: &mut Rng) {
        if let Some(held) = held {
            scene.cancel(&held);
            self.outlived((held.which, held.key), rng);
        }
    }

    fn outlived(&mut self, stale: (usize, TimerKey), rng: &mut Rng) {
        if self.stale.len() >= MOST_STALE {
            self.stale.swap_remove(rng.usize(..MOST_STALE));
        }
        self.stale.push(stale);
    }

    fn reschedule(&mut self, scene: &Scene, rng: &mut Rng) {
        let list = if rng.u32(..500) == 0 { &mut self.recurring } else { &mut self.held };
        let Some(mut held) = take_any(list, rng) else { return };
        let former = scene.reschedule(&mut held, rng);
        former.into_iter().for_each(|former| self.outlived((held.which, former), rng));
        if held.recurs() { &mut self.recurring } else { &mut self.held }.push(held);
    }

    /// Gives another pool a second key of a timer.
    fn share(&mut self, scene: &Scene, rng: &mut Rng) {
        let (Some(held), Some(mut other)) = (rng.choice(&mut self.held), scene.free_pool(rng)) else {
            return;
        };
        held.is_shared = true;
        other.held.push(held.clone());
    }

    fn wait(&mut self, scene: &Arc<Scene>, rng: &mut Rng) {
        if self.sleeps.len() < MOST_SLEEPS {
            self.sleeps.push(Wait::new(scene, rng));
        }
        let at = rng.usize(..self.sleeps.len());
        let over = match rng.u32(..20) {
            0 => true,
            1..4 => self.sleeps[at].reset(rng),
            _ => self.sleeps[at].poll(rng.u32(..4) == 0),
        };
        if over {
            drop(self.sleeps.swap_remove(at));
        }
    }

    pub(crate) fn try_all_stale(&self, scene: &Scene) {
        self.stale.iter().for_each(|&stale| scene.try_stale(stale));
    }

    /// Checks that each sleep of that timer that was due by then has been woken.
    pub(crate) fn check_woken(&self, which: usize, by: Nanos) {
        self.sleeps.iter().filter(|sleep| sleep.which == which).for_each(|sleep| sleep.check_woken(by));
    }

    /// The timers have been shut down: each sleep has been woken, and is ready.
    pub(crate) fn check_over(&mut self) {
        for sleep in &mut self.sleeps {
            sleep.check_woken(Nanos::MAX);
            sleep.poll(false);
            assert!(!sleep.is_armed, "a sleep is pending after the shutdown");
        }
    }
}

/// A sleep, and when it may be ready.
struct Wait {
    which: usize,
    sleep: Sleep,
    due: Nanos,
    bell: Arc<Bell>,
    /// Whether the last poll returned pending, so that the waker must be woken.
    is_armed: bool,
}

/// A waker that notes its wake.
struct Bell {
    scene: Arc<Scene>,
    has_rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.scene.runs.one();
        self.has_rung.store(true, Ordering::Release);
    }
}

impl Bell {
    fn new(scene: &Arc<Scene>) -> Arc<Self> {
        Arc::new(Self { scene: Arc::clone(scene), has_rung: AtomicBool::new(false) })
    }
}

impl Wait {
    fn new(scene: &Arc<Scene>, rng: &mut Rng) -> Self {
        let (which, delay) = (rng.usize(..2), delay(rng));
        let due = scene.now() + delay;
        let sleep = match rng.bool() {
            true => scene.timers[which].sleep(Duration::from_nanos(delay)),
            false => scene.timers[which].sleep_until(scene.instant(due)),
        };
        Self { which, sleep, due, bell: Bell::new(scene), is_armed: false }
    }

    /// Polls it, perhaps with another waker. Returns true if it has ended; its result must be due.
    fn poll(&mut self, with_another: bool) -> bool {
        if with_another {
            self.bell = Bell::new(&self.bell.scene);
        }
        before_poll();
        self.bell.has_rung.store(false, Ordering::Release);
        let polled = poll(&mut self.sleep, &Waker::from(Arc::clone(&self.bell)));
        self.is_armed = polled.is_pending();
        let (scene, which) = (&self.bell.scene, self.which);
        match polled {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => assert!(self.due <= scene.now(), "a sleep ends early"),
            Poll::Ready(Err(error)) => {
                let is_expected = if error.is_full() {
                    which == WITH_EXECUTOR
                } else {
                    error.is_shut_down() && scene.is_shut(which)
                };
                assert!(is_expected, "a sleep fails: {error}");
            }
        }
        polled.is_ready()
    }

    /// Gives the sleep another deadline. It has not ended.
    fn reset(&mut self, rng: &mut Rng) -> bool {
        let scene = &self.bell.scene;
        if !scene.is_quiet() {
            self.due = scene.now().saturating_add(delay(rng)).saturating_sub(delay(rng));
            self.sleep.reset(scene.instant(self.due));
        }
        false
    }

    /// Checks that it has been woken if it was due by then.
    fn check_woken(&self, by: Nanos) {
        let is_asleep = self.is_armed && self.due <= by && !self.bell.has_rung.load(Ordering::Acquire);
        assert!(!is_asleep, "a sleep was not woken that was due {}, by {by}", self.due);
    }
}

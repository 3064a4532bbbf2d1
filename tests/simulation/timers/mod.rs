//! Timers on a manual clock, with a model of what must become of each.
//!
//! One thread does everything: it produces, moves the clock, and runs the callbacks and wakers that
//! become due. These do all that a producer does, let time pass, panic and shut timers down.
//!
//! | file | what it holds |
//! |---|---|
//! | `rhythm.rs`, `books.rs` | when a recurring timer is due next; one timer's settings, ticks and counts |
//! | `model.rs` | all callbacks and waits, and what each may do now |
//! | `payload.rs` | what a callback captures and does |
//! | `acts.rs`, `waits.rs` | what producers do; futures that are polled by hand |
//! | `drive.rs`, `ending.rs` | moving the clock; shutting down |

mod acts;
mod books;
mod drive;
mod ending;
mod model;
mod payload;
mod rhythm;
mod waits;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use shardwheel::{ManualClock, Timer};

use crate::draw::{magnitude, once_in};
use crate::log::{Log, Played};
use books::Books;
use model::Model;
use waits::Wait;

/// Nanoseconds on the clock.
type Nanos = u64;

const STEPS: u32 = 300;

/// More timers than a shard fires in one turn.
const BURST: u32 = 4000;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A simulation. The player holds it, and so does each callback and waker.
struct Scene {
    clock: ManualClock,
    /// The instant at which the clock was at zero.
    begin: Instant,
    timers: Vec<Timer>,
    /// Locked briefly, never during a call of a timer or the clock.
    model: Mutex<Model>,
    /// The waits that are not being polled.
    waits: Mutex<Vec<Wait>>,
}

pub(crate) fn play(seed: u64, log: Log) -> Played {
    let scene = Scene::new(seed, log);
    let mut step = 0;
    while step < STEPS && scene.model().fault.is_none() {
        step += 1;
        scene.model().log.add(("step", step));
        scene.step();
        scene.check();
    }
    if scene.model().fault.is_none() {
        step += 1;
        scene.end();
    }
    let model = scene.model();
    if let Some(what) = &model.fault {
        panic!("step {step}: {what}");
    }
    Played {
        seconds: scene.now() / NANOS_PER_SECOND,
        fired: model.books.iter().map(|books| books.fired).sum(),
        hash: model.log.hash(),
    }
}

impl Scene {
    fn new(seed: u64, mut log: Log) -> Arc<Self> {
        let mut rng = Rng::with_seed(seed);
        let clock = ManualClock::new();
        let begin = shardwheel::Clock::now(&clock);
        let mut books = Vec::new();
        let timers = (0..rng.usize(1..=3)).map(|_| {
            clock.advance(Duration::from_nanos(magnitude(&mut rng, 30)));
            let (timer, its_books) = build(&mut rng, &clock);
            log.add(&its_books);
            books.push(its_books);
            timer
        });
        let timers = timers.collect();
        let model = Mutex::new(Model::new(rng, log, books));
        Arc::new(Self { clock, begin, timers, model, waits: Mutex::default() })
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waits(&self) -> MutexGuard<'_, Vec<Wait>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Nanos {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn instant(&self, at: Nanos) -> Instant {
        self.begin + Duration::from_nanos(at)
    }

    fn step(self: &Arc<Self>) {
        let (what, which) = self.draw(|rng| (rng.u32(..64), rng.usize(..self.timers.len())));
        let acts = self.draw(|rng| rng.u32(1..=5));
        match what {
            0..20 => self.drive(),
            20 if self.draw(|rng| once_in(rng, 8)) => self.shut(which),
            21 if self.draw(|rng| once_in(rng, 25)) => (0..BURST).for_each(|_| self.schedule_once()),
            _ => (0..acts).for_each(|_| self.produce()),
        }
    }

    fn draw<R>(&self, draw: impl FnOnce(&mut Rng) -> R) -> R {
        draw(&mut self.model().rng)
    }

    /// Compares the timers with the model while nothing else happens.
    fn check(&self) {
        for (which, timer) in self.timers.iter().enumerate() {
            let stats = timer.stats();
            let identity = stats.fired + stats.cancelled + stats.handed_back + stats.pending as u64;
            let mut model = self.model();
            model.expect(stats.scheduled + stats.recurred == identity, || format!("no balance: {stats:?}"));
            let expected = model.books[which].counts();
            let counts = books::counts_of(&stats);
            model.expect(counts == expected, || {
                format!("timer {which} counts {counts:?}, and should {expected:?}")
            });
        }
        self.model().check_alive();
    }
}

/// A timer, and its part of the model.
fn build(rng: &mut Rng, clock: &ManualClock) -> (Timer, Books) {
    let tick = magnitude(rng, 42).max(1);
    let limit = if once_in(rng, 3) { rng.usize(1..40) } else { usize::MAX };
    let wheel_size = 1 << rng.u32(1..=11);
    let builder = Timer::builder().tick(Duration::from_nanos(tick)).wheel_size(wheel_size);
    let builder = builder.shards(rng.usize(1..=3)).max_pending(limit).clock(clock.clone());
    let start = u64::try_from(clock.elapsed().as_nanos()).expect("the clock has hardly moved");
    (builder.build().expect("settings within their limits"), Books::new(tick, start, limit))
}

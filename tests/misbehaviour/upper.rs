//! Cases of a `Timer`: places on a shard's thread, and on the user's thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::Waker;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use shardwheel::{Drivers, Job, ManualClock, Schedule, Sleep, Timer, TimerBuilder};

use crate::scene::{Act, Scene, lock};
use crate::support::ledger::End;
use crate::support::{HOUR, Tampered, To, hooked, is_balanced, ms, on_shard, poll, until};

/// Where user code is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    OneShot,
    Recurring,
    ScheduleNext,
    ScheduleIsDue,
    WakerWake,
    WakerClone,
    WakerDrop,
    PayloadDrop,
    Execute,
    ClockNow,
    PanicHook,
    ThreadEnd,
    BatchKeys,
}

/// How a case is played.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) driven: Driven,
    /// Whether shutdown is called while the place is held.
    pub(crate) shut_early: bool,
}

impl How {
    fn is_by_hand(self) -> bool {
        self.driven == Driven::ByHand
    }
}

/// What drives the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driven {
    ByHand,
    AsNeeded,
    OnePerShard,
}

/// What drives the shards in the cases of a place. An executor and a clock know their shard by its
/// thread, so each shard must have one.
pub(crate) fn driven_by(place: Place) -> &'static [Driven] {
    match place {
        Place::Execute | Place::ClockNow => &[Driven::ByHand, Driven::OnePerShard],
        _ => &[Driven::ByHand, Driven::AsNeeded, Driven::OnePerShard],
    }
}

impl Place {
    /// Whether the place is on the user's thread, so that no shard is held.
    fn is_users(self) -> bool {
        matches!(self, Self::WakerClone | Self::WakerDrop | Self::ThreadEnd | Self::BatchKeys)
    }

    /// Whether the case is left out; the module `main` says why.
    pub(crate) fn leaves_out(self, act: Act) -> bool {
        self == Self::ThreadEnd && act == Act::Panics
    }
}

/// The thread that works as a shard's thread: with a manual clock, the thread that moves the clock.
const DRIVER: &str = "driver-0";

fn is_first_shards_thread() -> bool {
    thread::current().name().is_some_and(|name| name == DRIVER || name == "subject-0")
}

fn build(place: Place, driven: Driven, scene: &Arc<Scene>, clock: Option<&ManualClock>) -> Timer {
    let drivers = if driven == Driven::AsNeeded { Drivers::AsNeeded } else { Drivers::OnePerShard };
    let builder = Timer::builder().shards(2).drivers(drivers).thread_name("subject");
    let builder = with_place(builder, place, scene);
    let builder = match (place, clock) {
        (Place::ClockNow, _) => {
            let now = Arc::clone(scene);
            let before = move || {
                if is_first_shards_thread() {
                    now.misbehave();
                }
            };
            builder.clock(Tampered { before, manual: clock.cloned() })
        }
        (_, Some(clock)) => builder.clock(clock.clone()),
        (_, None) => builder,
    };
    builder.build().expect("settings within their limits")
}

fn with_place(builder: TimerBuilder, place: Place, scene: &Arc<Scene>) -> TimerBuilder {
    let scene = Arc::clone(scene);
    match place {
        Place::Execute => builder.executor(move |job: Job| {
            if is_first_shards_thread() {
                scene.misbehave();
            }
            job.run();
        }),
        Place::PanicHook => builder.on_panic(move |_| scene.misbehave()),
        _ => builder,
    }
}

/// A schedule of two occurrences, which misbehaves when it is asked for the second, or whether the
/// first is due.
struct Misbehaves(Arc<Scene>, Place, u32);

impl Schedule for Misbehaves {
    fn next(&mut self, previous: Instant) -> Option<Instant> {
        self.2 += 1;
        if self.1 == Place::ScheduleNext && self.2 == 2 {
            self.0.misbehave();
        }
        (self.2 < 3).then(|| previous + ms(5))
    }

    fn is_due(&mut self) -> bool {
        if self.1 == Place::ScheduleIsDue && self.2 == 1 {
            self.0.misbehave();
        }
        true
    }
}

/// Misbehaves when it is dropped.
struct InDrop(Arc<Scene>);

impl Drop for InDrop {
    fn drop(&mut self) {
        self.0.misbehave();
    }
}

thread_local! {
    static AT_THE_END: RefCell<Option<InDrop>> = const { RefCell::new(None) };
}

/// A waker that misbehaves at that operation.
fn misbehaves(scene: &Arc<Scene>, at: To) -> Waker {
    let scene = Arc::clone(scene);
    hooked(move |to| {
        if to == at {
            scene.misbehave();
        }
    })
}

/// Sets up the place on the calling thread's shard. Returns the work for a thread of the user's.
fn set_up(place: Place, scene: &Arc<Scene>, timer: &Timer) -> Option<Box<dyn FnOnce() + Send>> {
    let (own, payload, delay) = (Arc::clone(scene), scene.ledger.payload(), ms(5));
    let mut sleep = timer.sleep(if place == Place::WakerWake { delay } else { HOUR });
    match place {
        Place::OneShot | Place::Recurring => {
            let callback = move || {
                payload.note(End::Fired);
                own.misbehave();
            };
            let recurs = place == Place::Recurring;
            let key = if recurs {
                timer.schedule_every(delay, callback).ok()
            } else {
                timer.schedule_after(delay, callback).ok()
            };
            *lock(&scene.key) = key;
        }
        Place::ScheduleNext | Place::ScheduleIsDue => {
            drop(timer.schedule_with(Misbehaves(own, place, 0), move || payload.note(End::Fired)))
        }
        Place::PayloadDrop => {
            let once = move |previous: Instant| {
                let is_first = std::mem::take(&mut *lock(&own.first));
                is_first.then(|| previous + ms(5))
            };
            let in_drop = InDrop(Arc::clone(scene));
            drop(timer.schedule_with(once, move || _ = (&in_drop, payload.note(End::Fired))));
        }
        Place::Execute => drop(timer.schedule_after(delay, move || payload.note(End::Fired))),
        // The shard reads its clock again and again, also after the fuse was set.
        Place::ClockNow => drop(timer.schedule_every(delay, move || payload.note(End::Fired))),
        Place::PanicHook => {
            drop(timer.schedule_after(delay, move || panic!("on purpose, of {}", payload.id())))
        }
        Place::WakerWake => {
            // If this thread does not run for 5 ms, the sleep is over, and wakes nobody.
            while poll(&mut sleep, &misbehaves(scene, To::Wake)).is_ready() {
                sleep = timer.sleep(delay);
            }
            *lock(&scene.sleep) = Some(sleep);
        }
        Place::WakerClone | Place::WakerDrop | Place::ThreadEnd | Place::BatchKeys => {
            return Some(users(place, own, sleep));
        }
    }
    None
}

/// The work for a thread of the user's.
fn users(place: Place, own: Arc<Scene>, mut sleep: Sleep) -> Box<dyn FnOnce() + Send> {
    Box::new(move || match place {
        Place::WakerClone => _ = poll(&mut sleep, &misbehaves(&own, To::Clone)),
        Place::WakerDrop => {
            _ = poll(&mut sleep, &std::mem::ManuallyDrop::new(misbehaves(&own, To::Drop)));
            drop(sleep);
        }
        Place::BatchKeys => {
            let timer = own.timer().expect("the timer is open");
            let keys: Vec<_> = (0..20).filter_map(|_| own.schedule(&timer, 3_600_000)).collect();
            let each = |(i, key)| {
                if i >= 12 {
                    own.misbehave();
                    // Again, if the batch goes on over its keys.
                    assert!(own.act != Act::Panics, "on purpose");
                }
                key
            };
            timer.cancel_batch(keys.into_iter().enumerate().map(each));
        }
        _ => {
            // Older than all thread-locals of this crate.
            AT_THE_END.set(Some(InDrop(Arc::clone(&own))));
            if let Some(timer) = own.timer() {
                own.schedule(&timer, 1);
            }
            let (other, clock) = crate::support::manual();
            drop(other.schedule_after(ms(1), || ()));
            clock.advance(ms(1));
        }
    })
}

/// Timers beside the case that do not fire.
const FAR_ONES: usize = 2;

/// A case under way.
struct Play {
    place: Place,
    how: How,
    scene: Arc<Scene>,
    clock: Option<ManualClock>,
    /// The user's threads, and the thread that moves the clock.
    threads: Vec<JoinHandle<()>>,
}

/// Plays a case: panics if a check fails, and hangs if the timer hangs.
pub(crate) fn play(place: Place, act: Act, how: How) {
    let clock = how.is_by_hand().then(ManualClock::new);
    let mut play = Play { place, how, scene: Scene::new(act), clock, threads: Vec::new() };
    play.begin();
    play.while_held();
    play.release();
    play.afterwards();
    play.end();
}

impl Play {
    fn begin(&mut self) {
        let (scene, timer) =
            (&self.scene, build(self.place, self.how.driven, &self.scene, self.clock.as_ref()));
        let neighbours = [0, 1].map(|shard| {
            scene.schedule_on(&timer, shard, 10);
            scene.schedule_on(&timer, shard, 3_600_000)
        });
        *lock(&scene.key) = neighbours[0];
        scene.open(timer.clone());
        let (place, own) = (self.place, Arc::clone(scene));
        let light = || own.fuse.set(1);
        // The clock is read during the set-up, too.
        let set_up = || {
            if place != Place::ClockNow {
                light();
            }
            set_up(place, &own, &timer)
        };
        let work = on_shard(&timer, 0, set_up).flatten();
        drop(timer);
        if place == Place::ClockNow {
            light();
        }
        self.threads.extend(work.map(|work| spawn("user", work)));
        if let Some(clock) = self.clock.clone().filter(|_| !self.place.is_users()) {
            self.threads.push(spawn(DRIVER, Box::new(move || clock.advance(ms(100)))));
        }
        until("the place is reached", || self.scene.begun.get() == 1);
    }

    /// Whether a shard is held for ever.
    fn is_lost(&self) -> bool {
        self.scene.act == Act::NeverReturns && !self.place.is_users()
    }

    fn while_held(&mut self) {
        let act = self.scene.act;
        if !act.can_be_released() && act != Act::NeverReturns {
            return;
        }
        let Some(timer) = self.scene.timer() else { return };
        if !self.how.is_by_hand() {
            self.fires_on(&timer, 1);
        }
        let key = self.scene.schedule(&timer, 3_600_000).expect("the timer is open");
        assert!(timer.cancel(key));
        if self.how.shut_early {
            let scene = Arc::clone(&self.scene);
            self.threads.push(spawn("shuts", Box::new(move || scene.shut_down(&timer))));
            thread::sleep(ms(30));
        }
    }

    fn release(&mut self) {
        if self.scene.act != Act::NeverReturns {
            self.scene.hold.release();
            // A thread that panicked was meant to.
            self.threads.drain(..).for_each(|thread| drop(thread.join()));
        }
        let comes_back = !matches!(self.scene.act, Act::Panics | Act::NeverReturns);
        until("the misbehaviour ends", || self.scene.done.get() == usize::from(comes_back));
    }

    /// Checks that a timer on that shard fires.
    fn fires_on(&self, timer: &Timer, shard: usize) {
        let before = self.scene.ledger.noted(End::Fired);
        assert!(self.scene.schedule_on(timer, shard, 1).is_some(), "it is open");
        if let Some(clock) = &self.clock {
            clock.advance(ms(5));
        }
        until("the timer fires", || self.scene.ledger.noted(End::Fired) > before);
    }

    fn afterwards(&self) {
        let is_over = self.how.shut_early || self.scene.act.ends_the_timer();
        if let Some(timer) = self.scene.timer().filter(|_| !is_over) {
            if !self.is_lost() {
                self.fires_on(&timer, 0);
            }
            if !self.is_lost() || !self.how.is_by_hand() {
                self.fires_on(&timer, 1);
            }
        }
    }

    fn end(self) {
        let timer = self.scene.close();
        if self.is_lost() && self.place != Place::Execute {
            std::mem::forget(timer);
            return;
        }
        if let Some(timer) = timer {
            self.scene.shut_down(&timer);
            let cancelled = usize::from(self.scene.act == Act::Cancels);
            assert!(
                self.scene.clear() + cancelled >= FAR_ONES || self.is_lost(),
                "what is pending comes back"
            );
            if !self.is_lost() {
                until("no timer is pending", || timer.stats().pending == 0);
                is_balanced(&timer);
            }
        }
        self.scene.clear();
        let ledger = &self.scene.ledger;
        let kept = usize::from(self.scene.act == Act::NeverReturns);
        until("each payload is dropped", || ledger.dropped() + kept >= ledger.made());
        ledger.check_drops();
    }
}

fn spawn(name: &str, work: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).expect("a thread starts")
}

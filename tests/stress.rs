//! Many threads on one shard, and every payload accounted for.
//!
//! Each payload has an entry in a [`Ledger`]: what became of it, how often it was dropped, the deadline in
//! force and the time at which it fired. A test lets threads loose on a shard, waits for them, and has the
//! ledger checked: each payload had one outcome and one drop, and none fired early.
//!
//! The work is bounded by operations, never by time; set `SHARDWHEEL_STRESS` to a whole number for that many
//! times as much. The tests are written to run under a thread sanitizer too.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Wake, Waker};
use std::thread;

use fastrand::Rng;
use shardwheel::{Advancer, Config, Key, Scheduler, Tick, shard};

/// Threads that schedule at once, beside the one that advances.
const PRODUCERS: usize = 3;

/// How many operations a test does: `base`, times what the environment asks for.
fn times(base: usize) -> usize {
    let factor = |text: String| text.parse::<usize>().expect("SHARDWHEEL_STRESS is a whole number");
    base * std::env::var("SHARDWHEEL_STRESS").map_or(1, factor)
}

fn open<'a>(wheel_size: usize) -> (Scheduler<Payload<'a>>, Advancer<Payload<'a>>) {
    shard(&Config::builder().wheel_size(wheel_size).build().expect("a wheel size that is a power of two"))
}

// The ledger.

#[derive(Clone, Copy)]
enum End {
    Fired,
    Cancelled,
    HandedBack,
    Refused,
}

/// What is known of one payload. All of it is compared only when the threads have been joined.
#[derive(Default)]
struct Record {
    ends: [AtomicU8; 4],
    drops: AtomicU8,
    /// The deadline that the last successful call gave it.
    due: AtomicU64,
    /// The time at which it fired.
    fired_at: AtomicU64,
    /// The last time at which it may fire, where a test says so.
    latest: AtomicU64,
}

impl Record {
    fn count(&self, end: End) -> u8 {
        self.ends[end as usize].load(Ordering::Relaxed)
    }

    fn on_time(&self) -> bool {
        self.fired_at.load(Ordering::Relaxed) <= self.latest.load(Ordering::Relaxed)
    }

    fn ends(&self) -> u8 {
        self.ends.iter().map(|end| end.load(Ordering::Relaxed)).sum()
    }
}

struct Ledger {
    records: Vec<Record>,
    made: AtomicUsize,
}

/// A payload that reports to the ledger. The box makes a double drop, or a read after the drop, a matter for
/// the sanitizers.
struct Payload<'a> {
    id: Box<usize>,
    ledger: &'a Ledger,
}

impl Ledger {
    /// A ledger for at most `capacity` payloads.
    fn new(capacity: usize) -> Self {
        let mut records = Vec::new();
        records.resize_with(capacity, Record::default);
        Self { records, made: AtomicUsize::new(0) }
    }

    /// The next payload, due at `deadline`.
    fn payload(&self, deadline: Tick) -> Payload<'_> {
        let id = self.made.fetch_add(1, Ordering::Relaxed);
        self.due(id, deadline);
        Payload { id: Box::new(id), ledger: self }
    }

    fn due(&self, id: usize, deadline: Tick) {
        self.records[id].due.store(deadline, Ordering::Relaxed);
    }

    fn made(&self) -> &[Record] {
        &self.records[..self.made.load(Ordering::Relaxed)]
    }

    /// How many payloads came to this end.
    fn count(&self, end: End) -> usize {
        self.made().iter().filter(|record| record.count(end) > 0).count()
    }

    /// How many have come to no end yet.
    fn pending(&self) -> usize {
        self.made().iter().filter(|record| record.ends() == 0).count()
    }

    /// The deadline and the time of all that have fired.
    fn fired(&self) -> impl Iterator<Item = (Tick, Tick)> {
        let fired = self.made().iter().filter(|record| record.count(End::Fired) > 0);
        fired.map(|record| (record.due.load(Ordering::Relaxed), record.fired_at.load(Ordering::Relaxed)))
    }

    /// To be called when the threads and the shard are done: each payload was dropped once, had at most one
    /// end (none where it was dropped with its shard), and if it fired, then not before it was due.
    fn check(&self) {
        for (id, record) in self.made().iter().enumerate() {
            assert_eq!(record.drops.load(Ordering::Relaxed), 1, "drops of {id}");
            assert!(record.ends() <= 1, "{id} ended more than once: {:?}", record.ends);
        }
        let early = self.fired().find(|(due, fired_at)| due > fired_at);
        assert_eq!(early, None, "fired before it was due");
    }

    /// Moreover, none was dropped with the shard.
    fn check_all_ended(&self) {
        self.check();
        assert_eq!(self.pending(), 0, "payloads without an outcome");
    }

    /// Moreover, what fired did so exactly when it was due.
    fn check_exact(&self) {
        self.check_all_ended();
        let inexact = self.fired().find(|(due, fired_at)| due != fired_at);
        assert_eq!(inexact, None, "due, and fired at");
    }
}

impl Payload<'_> {
    fn end(self, end: End) {
        self.ledger.records[*self.id].ends[end as usize].fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Payload<'_> {
    fn drop(&mut self) {
        self.ledger.records[*self.id].drops.fetch_add(1, Ordering::Relaxed);
    }
}

// Who does what.

/// Advances to `now` and takes at most `budget` of what is due.
fn take(advancer: &mut Advancer<Payload<'_>>, now: Tick, budget: usize) {
    let now = advancer.scheduler().now().max(now);
    for fired in advancer.advance(now).take(budget) {
        assert!(fired.deadline <= now, "{} fired at {now}", fired.deadline);
        let record = &fired.payload.ledger.records[*fired.payload.id];
        record.fired_at.store(now, Ordering::Relaxed);
        fired.payload.end(End::Fired);
    }
}

fn hand_back(advancer: Advancer<Payload<'_>>) {
    advancer.into_pending().for_each(|(_, payload)| payload.end(End::HandedBack));
}

fn let_go(advancer: Advancer<Payload<'_>>) {
    drop(advancer);
}

/// By how much the clock moves: mostly little, sometimes nearly 2^`bits` ticks.
fn jump(rng: &mut Rng, bits: u32) -> Tick {
    let most = 1 << rng.u32(..bits);
    rng.u64(..most)
}

/// Says, while it lives, that a thread is at work; so a thread that panics does not leave others waiting.
struct AtWork<'a>(&'a AtomicUsize);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// A timer, as the threads pass it among themselves: whoever has it may cancel or reschedule it.
type Timer = (Key, usize);

/// A thread that schedules, cancels, reschedules, and passes timers on to the next such thread.
struct Producer<'a> {
    scheduler: Scheduler<Payload<'a>>,
    ledger: &'a Ledger,
    rng: Rng,
    held: Vec<Timer>,
    give: Sender<Timer>,
    get: Receiver<Timer>,
    refused: bool,
}

impl<'a> Producer<'a> {
    /// As many producers as a test has, in a ring.
    fn ring(scheduler: &Scheduler<Payload<'a>>, ledger: &'a Ledger, seed: u64) -> Vec<Self> {
        let (mut gives, gets): (Vec<_>, Vec<_>) = (0..PRODUCERS).map(|_| channel()).unzip();
        gives.rotate_left(1);
        let ends = gives.into_iter().zip(gets).zip(seed..);
        let new = |((give, get), seed)| Self {
            scheduler: scheduler.clone(),
            ledger,
            rng: Rng::with_seed(seed),
            held: Vec::new(),
            give,
            get,
            refused: false,
        };
        ends.map(new).collect()
    }

    fn step(&mut self) {
        match self.rng.u8(..16) {
            0..=7 => self.schedule(),
            8..=10 => self.cancel(),
            11..=13 => self.reschedule(),
            _ => self.exchange(),
        }
    }

    /// The past, the present, soon, some time, or the last ticks there are.
    fn deadline(&mut self) -> Tick {
        let now = self.scheduler.now();
        match self.rng.u8(..10) {
            0 => self.rng.u64(..=now),
            1 => now,
            2..=5 => now + self.rng.u64(..64),
            6..=7 => now + (1 << self.rng.u32(..40)),
            8 => Tick::MAX - self.rng.u64(..1_000),
            _ => Tick::MAX,
        }
    }

    fn schedule(&mut self) {
        let deadline = self.deadline();
        let payload = self.ledger.payload(deadline);
        let id = *payload.id;
        match self.scheduler.schedule(deadline, payload) {
            Ok(key) => {
                assert!(!self.refused, "accepted after one was refused");
                self.held.push((key, id));
            }
            Err(refused) => {
                assert!(refused.is_shut_down(), "{refused}");
                self.refused = true;
                refused.into_payload().end(End::Refused);
            }
        }
    }

    /// Takes some timer out of those that this thread has.
    fn pick(&mut self) -> Option<Timer> {
        let at = self.rng.usize(..self.held.len().max(1));
        (at < self.held.len()).then(|| self.held.swap_remove(at))
    }

    fn cancel(&mut self) {
        let Some((key, id)) = self.pick() else { return };
        if let Some(payload) = self.scheduler.cancel(key) {
            assert_eq!(*payload.id, id, "another timer was cancelled");
            payload.end(End::Cancelled);
        }
        assert!(self.scheduler.cancel(key).is_none(), "cancelled twice");
    }

    fn reschedule(&mut self) {
        let Some((key, id)) = self.pick() else { return };
        let deadline = self.deadline();
        if let Some(key) = self.scheduler.reschedule(key, deadline) {
            self.ledger.due(id, deadline);
            self.held.push((key, id));
        }
    }

    fn exchange(&mut self) {
        self.held.extend(self.get.try_iter());
        if let Some(timer) = self.pick() {
            // A neighbour that has finished takes nothing more; the timer then runs on without a key.
            let _ = self.give.send(timer);
        }
    }
}

/// Lets the producers do `steps` steps each, while this thread advances, now by a tick, now by thousands, and
/// takes a few or many of what is due, until `enough` says so or they are done; then ends the shard, with the
/// producers still at work if they are not done.
fn produce<'a>(
    (scheduler, mut advancer): (Scheduler<Payload<'a>>, Advancer<Payload<'a>>),
    ledger: &'a Ledger,
    (seed, steps, enough): (u64, usize, usize),
    end: impl FnOnce(Advancer<Payload<'a>>),
) {
    let (at_work, done) = (AtomicUsize::new(PRODUCERS), AtomicUsize::new(0));
    let (at_work, done) = (&at_work, &done);
    thread::scope(|scope| {
        for mut producer in Producer::ring(&scheduler, ledger, seed) {
            scope.spawn(move || {
                let _at_work = AtWork(at_work);
                for _ in 0..steps {
                    producer.step();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let (mut rng, mut now) = (Rng::with_seed(!seed), 0);
        while at_work.load(Ordering::Acquire) > 0 && done.load(Ordering::Relaxed) < enough {
            now += jump(&mut rng, 12);
            take(&mut advancer, now, rng.usize(..64));
        }
        end(advancer);
    });
}

/// Runs `work` in that many threads, each with its number, and `meanwhile` in this one, again and again until
/// they are done.
fn at_work(threads: usize, work: impl Fn(usize) + Sync, mut meanwhile: impl FnMut()) {
    let (at_work, work) = (&AtomicUsize::new(threads), &work);
    thread::scope(|scope| {
        for number in 0..threads {
            scope.spawn(move || {
                let _at_work = AtWork(at_work);
                work(number);
            });
        }
        while at_work.load(Ordering::Acquire) > 0 {
            meanwhile();
        }
    });
}

/// Starts both at once, as nearly as two threads can.
fn together<R>(left: impl FnOnce() + Send, right: impl FnOnce() -> R) -> R {
    let ready = AtomicUsize::new(0);
    let start = || {
        ready.fetch_add(1, Ordering::Relaxed);
        while ready.load(Ordering::Relaxed) < 2 {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            start();
            left();
        });
        start();
        right()
    })
}

// Conservation.

/// What was scheduled has fired, was cancelled, or is handed out by an advance to the end of time; the count
/// is right when the producers have stopped.
#[test]
fn conservation_with_a_drain_at_the_end() {
    for (seed, wheel_size) in [(1, 2), (2, 16), (3, 2_048)] {
        let steps = times(12_000);
        let ledger = Ledger::new(PRODUCERS * steps);
        produce(open(wheel_size), &ledger, (seed, steps, usize::MAX), |mut advancer| {
            assert_eq!(advancer.scheduler().len(), ledger.pending());
            take(&mut advancer, Tick::MAX, usize::MAX);
            assert_eq!(advancer.scheduler().len(), 0);
            let stats = advancer.scheduler().stats();
            assert_eq!(stats.fired, ledger.count(End::Fired) as u64);
            assert_eq!(stats.scheduled, stats.fired + stats.cancelled);
        });
        ledger.check_all_ended();
    }
}

/// What was scheduled has fired, was cancelled, or is handed back at the end.
#[test]
fn conservation_with_the_rest_handed_back() {
    for (seed, wheel_size) in [(11, 2), (12, 16), (13, 2_048)] {
        let steps = times(12_000);
        let ledger = Ledger::new(PRODUCERS * steps);
        produce(open(wheel_size), &ledger, (seed, steps, usize::MAX), |advancer| {
            let pending = ledger.pending();
            assert_eq!(advancer.scheduler().len(), pending);
            hand_back(advancer);
            assert_eq!(ledger.count(End::HandedBack), pending);
        });
        ledger.check_all_ended();
    }
}

/// The shard ends while producers are at work: from then on each schedule is an error that hands the payload
/// back, and nothing that was accepted is left behind, though a scheduler lives on.
fn ends_at_work(seed: u64, end: impl Fn(Advancer<Payload<'_>>), check: impl Fn(&Ledger)) {
    for seed in seed..seed + 8 {
        let steps = times(4_000);
        let ledger = Ledger::new(PRODUCERS * steps + 1);
        let (scheduler, advancer) = open(64);
        produce((scheduler.clone(), advancer), &ledger, (seed, steps, PRODUCERS * steps / 2), |advancer| {
            end(advancer);
            let refused = scheduler.schedule(1, ledger.payload(1)).expect_err("the shard has ended");
            refused.into_payload().end(End::Refused);
        });
        assert_eq!(scheduler.len(), 0);
        check(&ledger);
    }
}

/// The advancer is dropped while producers are at work: what it had is dropped, once.
#[test]
fn the_advancer_is_dropped_while_producers_are_at_work() {
    ends_at_work(20, let_go, Ledger::check);
}

/// What is pending is handed back while producers are at work: all that was accepted, and nothing twice.
#[test]
fn the_rest_is_handed_back_while_producers_are_at_work() {
    ends_at_work(30, hand_back, Ledger::check_all_ended);
}

// Counting, and being on time.

/// Timers that stand throughout, at the tick `END` and after it.
const STANDING: usize = 1_000;
const END: Tick = 1 << 30;

/// A thousand timers stand at the far end, and are cascaded, put off and brought nearer; others come and go,
/// scheduled by one thread and cancelled by another. The count never says less than a thousand.
#[test]
fn the_count_never_dips() {
    let steps = times(40_000);
    let config = Config::builder().wheel_size(8).build().expect("a power of two");
    let (scheduler, mut advancer) = shard::<usize>(&config);
    let standing =
        (0..STANDING).map(|i| scheduler.schedule(END + i as Tick, i).expect("open")).collect::<Vec<_>>();
    let (give, get) = channel();
    let parts = Mutex::new((Some(give), Some((standing, get))));
    let work = |part| match part {
        0 => come(&scheduler, steps, part_of(&parts, |(give, _)| give.take())),
        1 => move_and_go(&scheduler, part_of(&parts, |(_, get)| get.take())),
        _ => (0..steps).for_each(|_| assert!(scheduler.len() >= STANDING)),
    };
    let mut rng = Rng::with_seed(40);
    at_work(3, work, || come_nearer(&mut advancer, &mut rng));
    advancer.advance(END - 1).for_each(drop);
    assert_eq!(scheduler.len(), STANDING);
    assert_eq!(advancer.advance(Tick::MAX).count(), STANDING);
}

/// What one thread alone is to have of what the threads of a test are given.
fn part_of<P, Q>(parts: &Mutex<P>, which: impl FnOnce(&mut P) -> Option<Q>) -> Q {
    which(&mut parts.lock().expect("no thread panics with it")).expect("only one thread takes it")
}

/// Schedules timers and passes them on.
fn come(scheduler: &Scheduler<usize>, steps: usize, give: Sender<Key>) {
    for i in 0..steps {
        let key = scheduler.schedule(scheduler.now() + (1 << (i % 20)), i).expect("open");
        give.send(key).expect("a thread that takes it");
    }
}

/// Cancels whatever it gets, and for each moves one of the standing timers nearer to `END` or away from it.
fn move_and_go(scheduler: &Scheduler<usize>, (mut standing, get): (Vec<Key>, Receiver<Key>)) {
    for (i, key) in get.into_iter().enumerate() {
        let place = i % standing.len();
        let deadline = END + (i as Tick).wrapping_mul(0x9E37_79B9) % 5_000;
        standing[place] = scheduler.reschedule(standing[place], deadline).expect("it stands");
        scheduler.cancel(key);
        assert!(scheduler.len() >= STANDING);
    }
}

/// Moves the clock ever nearer to `END`, so that what stands there is cascaded level by level.
fn come_nearer(advancer: &mut Advancer<usize>, rng: &mut Rng) {
    let clock = advancer.scheduler().now();
    let nearer = clock + ((END - 1 - clock) >> rng.u32(6..12));
    advancer.advance(nearer).take(rng.usize(..64)).for_each(drop);
}

/// Timers are set a few ticks ahead, or behind, while the clock goes tick by tick: each fires at its
/// deadline, or where that was passed while it was being set, in the advance after the one then under way.
#[test]
fn nothing_is_late() {
    for wheel_size in [2, 8, 256] {
        let steps = times(10_000);
        let ledger = Ledger::new(PRODUCERS * steps);
        let (scheduler, mut advancer) = open(wheel_size);
        let work = |seed| {
            let mut rng = Rng::with_seed(seed as u64);
            (0..steps).for_each(|_| set_soon(&scheduler, &ledger, rng.u64(..20)));
        };
        let mut now = 0;
        let mut tick = || {
            now += 1;
            take(&mut advancer, now, usize::MAX);
        };
        at_work(PRODUCERS, work, &mut tick);
        (0..20).for_each(|_| tick());
        ledger.check_all_ended();
        assert!(ledger.made().iter().all(Record::on_time), "a timer was late, in a wheel of {wheel_size}");
    }
}

/// Schedules for about `ahead` ticks from now and notes by when that must have fired: the clock that is read
/// afterwards may be one behind the advance under way, and that one may have begun too early to see it.
fn set_soon<'a>(scheduler: &Scheduler<Payload<'a>>, ledger: &'a Ledger, ahead: Tick) {
    let deadline = (scheduler.now() + ahead).saturating_sub(2);
    let payload = ledger.payload(deadline);
    let id = *payload.id;
    scheduler.schedule(deadline, payload).expect("open");
    ledger.records[id].latest.store(deadline.max(scheduler.now() + 2), Ordering::Relaxed);
}

/// Fresh shards, in which several threads at once set the first timers of every level: whoever creates the
/// wheels for them, all fire exactly when they are due.
#[test]
fn threads_race_to_create_the_overflow_wheels() {
    let rounds = times(100);
    let ledger = Ledger::new(rounds * 2 * 60);
    for round in 0..rounds {
        let (scheduler, mut advancer) = open([2, 8, 64, 256][round % 4]);
        let far = |bit: usize| 1 << (if round % 8 < 4 { bit } else { 59 - bit });
        let set = || {
            for deadline in (0..60).map(far) {
                scheduler.schedule(deadline, ledger.payload(deadline)).expect("open");
            }
        };
        together(set, set);
        assert_eq!(scheduler.len(), 120);
        (0..60).for_each(|bit| take(&mut advancer, 1 << bit, usize::MAX));
    }
    ledger.check_exact();
}

// Duels: two sides reach for the same timers.

/// Timers in a round of a duel.
const BATCH: usize = 64;

/// The ticks of a round, counted from its start: timers are due at `DUE`; some are brought nearer, to `NEAR`,
/// or put off, to `FAR`.
const NEAR: Tick = 50;
const DUE: Tick = 100;
const FAR: Tick = 1_100;
const ROUND: Tick = 10_000;

/// What a side of a duel works with.
struct Side<'s, 'a> {
    scheduler: &'s Scheduler<Payload<'a>>,
    ledger: &'a Ledger,
    base: Tick,
}

impl Side<'_, '_> {
    fn set(&self) -> Timer {
        let payload = self.ledger.payload(self.base + DUE);
        let id = *payload.id;
        (self.scheduler.schedule(self.base + DUE, payload).expect("open"), id)
    }

    fn cancel(&self, (key, id): Timer) {
        let Some(payload) = self.scheduler.cancel(key) else { return };
        assert_eq!(*payload.id, id);
        payload.end(End::Cancelled);
    }

    fn reschedule(&self, (key, id): Timer, to: Tick) -> Option<Timer> {
        let key = self.scheduler.reschedule(key, self.base + to)?;
        self.ledger.due(id, self.base + to);
        Some((key, id))
    }
}

/// Has `left` treat each timer of a batch in one thread while `right` does as it likes with the advancer and
/// the batch in another, round after round. What is left then fires, and the ledger is handed out for checks.
fn duel(
    left: impl Fn(&Side<'_, '_>, Timer) + Sync,
    right: impl Fn(&Side<'_, '_>, &mut Advancer<Payload<'_>>, &[Timer]),
    check: impl Fn(&Ledger),
) {
    let rounds = times(150);
    let ledger = Ledger::new(rounds * BATCH);
    let (scheduler, mut advancer) = open(16);
    for round in 0..rounds {
        let side = Side { scheduler: &scheduler, ledger: &ledger, base: round as Tick * ROUND };
        let timers = (0..BATCH).map(|_| side.set()).collect::<Vec<_>>();
        let order = there_or_back(&timers, round);
        together(|| order.for_each(|timer| left(&side, timer)), || right(&side, &mut advancer, &timers));
        [NEAR, DUE, FAR].iter().for_each(|tick| take(&mut advancer, side.base + tick, usize::MAX));
        assert_eq!(scheduler.len(), 0);
    }
    ledger.check_all_ended();
    check(&ledger);
}

/// The timers from either end by turns, so that two sides meet, whichever way the advancer takes a batch.
fn there_or_back(timers: &[Timer], round: usize) -> impl Iterator<Item = Timer> + Send + '_ {
    let last = timers.len() - 1;
    (0..timers.len()).map(move |i| timers[if round.is_multiple_of(2) { i } else { last - i }])
}

/// The right side fires what is due.
fn fire(side: &Side<'_, '_>, advancer: &mut Advancer<Payload<'_>>, _: &[Timer]) {
    take(advancer, side.base + DUE, usize::MAX);
}

/// The right side moves the clock close enough for cascades, not far enough for anything to fire.
fn cascade(side: &Side<'_, '_>, advancer: &mut Advancer<Payload<'_>>, _: &[Timer]) {
    (0..NEAR).step_by(3).for_each(|tick| take(advancer, side.base + tick, usize::MAX));
}

/// The right side cancels.
fn cancel(side: &Side<'_, '_>, _: &mut Advancer<Payload<'_>>, timers: &[Timer]) {
    timers.iter().for_each(|&timer| side.cancel(timer));
}

/// One of them gets the payload.
#[test]
fn cancel_races_fire() {
    duel(|side, timer| side.cancel(timer), fire, Ledger::check_exact);
}

/// A timer that is being cascaded is pending, so the canceller gets it.
#[test]
fn cancel_races_cascade() {
    duel(|side, timer| side.cancel(timer), cascade, |ledger| assert_eq!(ledger.count(End::Fired), 0));
}

/// One of two cancellers gets the payload, and one of them does.
#[test]
fn two_cancels_race() {
    duel(|side, timer| side.cancel(timer), cancel, |ledger| assert_eq!(ledger.count(End::Fired), 0));
}

/// Either it fires when it was due, or it is put off and fires then; and what was put off can be cancelled.
#[test]
fn extend_races_fire() {
    let extend = |side: &Side<'_, '_>, timer: Timer| {
        let Some((key, id)) = side.reschedule(timer, FAR) else { return };
        if id % 2 == 0 {
            side.scheduler.cancel(key).expect("it was put off").end(End::Cancelled);
        }
    };
    duel(extend, fire, Ledger::check_exact);
}

/// A timer that is being cascaded can be put off, and does not fire before its new deadline.
#[test]
fn extend_races_cascade() {
    let extend = |side: &Side<'_, '_>, timer| assert!(side.reschedule(timer, FAR).is_some());
    duel(extend, cascade, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == FAR));
    });
}

/// One of them has it: if it cannot be put off it is cancelled.
#[test]
fn extend_races_cancel() {
    let extend = |side: &Side<'_, '_>, timer| {
        side.reschedule(timer, FAR);
    };
    duel(extend, cancel, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == FAR), "neither put off nor cancelled");
    });
}

/// Two threads put it off to the same tick: one timer is left, and fires there.
#[test]
fn two_extends_race() {
    let extend = |side: &Side<'_, '_>, timer| {
        side.reschedule(timer, FAR);
    };
    let right = |side: &Side<'_, '_>, _: &mut Advancer<Payload<'_>>, timers: &[Timer]| {
        timers.iter().for_each(|&timer| extend(side, timer));
    };
    duel(extend, right, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == FAR), "neither could put it off");
    });
}

/// One of them has it: either it fires as it is, or it is brought nearer and fires then.
#[test]
fn shorten_races_fire() {
    let shorten = |side: &Side<'_, '_>, timer| {
        side.reschedule(timer, NEAR);
    };
    duel(shorten, fire, |ledger| assert_eq!(ledger.count(End::Fired), ledger.made().len()));
}

/// A timer that is being cascaded can be brought nearer, and fires at its new deadline.
#[test]
fn shorten_races_cascade() {
    let shorten = |side: &Side<'_, '_>, timer| assert!(side.reschedule(timer, NEAR).is_some());
    duel(shorten, cascade, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == NEAR));
    });
}

/// One of them has it: if it cannot be brought nearer it is cancelled.
#[test]
fn shorten_races_cancel() {
    let shorten = |side: &Side<'_, '_>, timer| {
        side.reschedule(timer, NEAR);
    };
    duel(shorten, cancel, |ledger| {
        ledger.check_exact();
        assert!(ledger.fired().all(|(due, _)| due % ROUND == NEAR), "neither brought nearer nor cancelled");
    });
}

// Keys, limits, and threads.

/// A thread tries the keys of timers that have ended, over and over, while others use their nodes again: no
/// old key ever names a timer, and every timer answers to its own.
#[test]
fn a_stale_key_is_harmless_for_ever() {
    let steps = times(40_000);
    let (scheduler, mut advancer) = shard::<usize>(&Config::default());
    let (give, get) = channel();
    let (parts, at_it) = (Mutex::new((Some(give), Some(get))), AtomicUsize::new(1));
    let work = |part| match part {
        0 => {
            let _at_it = AtWork(&at_it);
            let (mut rng, give) = (Rng::with_seed(60), part_of(&parts, |(give, _)| give.take()));
            (0..steps).for_each(|i| live_and_die(&scheduler, &mut rng, i, &give));
        }
        _ => try_stale_keys(&scheduler, &part_of(&parts, |(_, get)| get.take()), &at_it),
    };
    at_work(2, work, || advancer.advance(scheduler.now() + 1).for_each(drop));
    assert!(scheduler.is_empty());
}

/// Tries the last few thousand keys that it got, until the other thread is no longer at it.
fn try_stale_keys(scheduler: &Scheduler<usize>, get: &Receiver<Key>, at_it: &AtomicUsize) {
    let mut stale = Vec::new();
    while at_it.load(Ordering::Acquire) > 0 {
        stale.extend(get.try_iter().take(100));
        stale.drain(..stale.len().saturating_sub(2_000));
        assert!(stale.iter().all(|&key| scheduler.cancel(key).is_none()), "a stale key cancelled");
        assert!(stale.iter().all(|&key| scheduler.reschedule(key, 1).is_none()), "a stale key moved");
    }
}

/// One timer, set far ahead, moved or not, and cancelled; its keys, when stale, go to the other thread.
fn live_and_die(scheduler: &Scheduler<usize>, rng: &mut Rng, i: usize, give: &Sender<Key>) {
    let ahead = |rng: &mut Rng| scheduler.now() + (1 << 40) + (1 << rng.u32(..39));
    let key = scheduler.schedule(ahead(rng), i).expect("open");
    let moved = if rng.bool() { scheduler.reschedule(key, ahead(rng)).expect("it is pending") } else { key };
    if moved != key {
        let _ = give.send(key);
    }
    assert_eq!(scheduler.cancel(moved), Some(i));
    let _ = give.send(moved);
}

/// Places in a shard with room for few.
const LIMIT: usize = 10;

/// Threads take and give back the places of a shard with room for few, by cancelling and by being refused:
/// never are more of them taken than there are, and none gets lost.
#[test]
fn the_limit_holds_and_no_place_is_lost() {
    let steps = times(40_000);
    let (scheduler, _advancer) = shard(&Config::builder().max_pending(LIMIT).build().expect("within limits"));
    let taken = AtomicUsize::new(0);
    at_work(PRODUCERS, |seed| take_places(&scheduler, &taken, seed as u64, steps), thread::yield_now);
    assert!(scheduler.is_empty());
    (0..LIMIT).for_each(|i| assert!(scheduler.schedule(9, i).is_ok(), "place {i} got lost"));
    assert!(scheduler.schedule(9, LIMIT).is_err_and(|refused| refused.is_full()));
}

fn take_places(scheduler: &Scheduler<usize>, taken: &AtomicUsize, seed: u64, steps: usize) {
    let (mut rng, mut held) = (Rng::with_seed(seed), Vec::new());
    for i in 0..steps {
        if let Ok(key) = scheduler.schedule(rng.u64(..1_000), i) {
            assert!(taken.fetch_add(1, Ordering::SeqCst) < LIMIT, "more than there is room for");
            held.push(key);
        }
        let keep = rng.usize(..LIMIT).min(held.len());
        held.drain(keep..).for_each(|key| give_place_back(scheduler, taken, key));
    }
    held.into_iter().for_each(|key| give_place_back(scheduler, taken, key));
}

fn give_place_back(scheduler: &Scheduler<usize>, taken: &AtomicUsize, key: Key) {
    taken.fetch_sub(1, Ordering::SeqCst);
    let key = scheduler.reschedule(key, 500).expect("rescheduling needs no place");
    assert!(scheduler.cancel(key).is_some());
}

/// Two threads schedule on more shards than a thread is likely to keep a small cache for; half of the shards
/// end meanwhile. A key names nothing in another shard, and nothing is lost in any.
#[test]
fn few_threads_many_shards() {
    const SHARDS: usize = 100;
    let steps = times(40_000);
    let ledger = Ledger::new(2 * steps);
    let (schedulers, mut advancers): (Vec<_>, Vec<_>) = (0..SHARDS).map(|_| open(8)).unzip();
    let mut ending = advancers.split_off(SHARDS / 2);
    let end_one = || {
        thread::yield_now();
        // One after the other, evenly over what the threads have to do.
        let enough = (SHARDS / 2 - ending.len()) * 2 * steps / (SHARDS / 2);
        if ledger.made().len() >= enough
            && let Some(mut advancer) = ending.pop()
        {
            take(&mut advancer, 500, usize::MAX);
            hand_back(advancer);
        }
    };
    at_work(2, |seed| visit_shards(&schedulers, &ledger, seed as u64, steps), end_one);
    drop((advancers, ending));
    assert!(schedulers.iter().all(Scheduler::is_empty));
    ledger.check();
}

fn visit_shards<'a>(schedulers: &[Scheduler<Payload<'a>>], ledger: &'a Ledger, seed: u64, steps: usize) {
    let (mut rng, mut held) = (Rng::with_seed(seed), Vec::new());
    for _ in 0..steps {
        let (here, deadline) = (rng.usize(..schedulers.len()), rng.u64(..1_000));
        match schedulers[here].schedule(deadline, ledger.payload(deadline)) {
            Ok(key) => held.push((here, key)),
            Err(refused) => refused.into_payload().end(End::Refused),
        }
        if held.len() > 200 {
            let (there, key) = held.swap_remove(rng.usize(..held.len()));
            assert!(there == here || schedulers[here].cancel(key).is_none(), "a key of another shard");
            schedulers[there].cancel(key).into_iter().for_each(|payload| payload.end(End::Cancelled));
        }
    }
}

/// Shards come and go, used by the same two threads: what a thread keeps of a shard that is no more does no
/// harm to the next.
#[test]
fn shards_come_and_go() {
    let rounds = times(200);
    let ledger = Ledger::new(rounds * 40);
    let (give, get) = channel::<Scheduler<Payload<'_>>>();
    let set = |scheduler: &Scheduler<_>| {
        let accepted = |deadline| match scheduler.schedule(deadline, ledger.payload(deadline)) {
            Ok(key) => Some(key),
            Err(refused) => {
                refused.into_payload().end(End::Refused);
                None
            }
        };
        let keys = (0..20).filter_map(accepted).collect::<Vec<_>>();
        let odd = keys.into_iter().skip(1).step_by(2);
        odd.filter_map(|key| scheduler.cancel(key)).for_each(|payload| payload.end(End::Cancelled));
    };
    thread::scope(|scope| {
        scope.spawn(move || get.into_iter().for_each(|scheduler| set(&scheduler)));
        for _ in 0..rounds {
            let (scheduler, mut advancer) = open(4);
            give.send(scheduler.clone()).expect("the other thread is at work");
            set(&scheduler);
            take(&mut advancer, 10, usize::MAX);
        }
        drop(give);
    });
    ledger.check();
}

/// Two hundred short-lived threads each schedule a little and leave: their timers fire, and what nodes they
/// had in hand is not lost with them.
#[test]
fn threads_come_and_go() {
    let (threads, each) = (times(200), 20);
    let ledger = Ledger::new(threads * each);
    let (scheduler, mut advancer) = open(16);
    for round in 0..threads as Tick / 2 {
        let visit = || {
            let keys = (0..each as Tick).map(|i| (round + i, ledger.payload(round + i)));
            let keys = keys.map(|(deadline, payload)| scheduler.schedule(deadline, payload).expect("open"));
            let odd = keys.collect::<Vec<_>>().into_iter().skip(1).step_by(2);
            odd.filter_map(|key| scheduler.cancel(key)).for_each(|payload| payload.end(End::Cancelled));
        };
        // Joined one by one: a scope's own end does not wait for what a thread does last of all.
        thread::scope(|scope| {
            [scope.spawn(visit), scope.spawn(visit)].map(|thread| thread.join().expect("no panic"))
        });
        take(&mut advancer, round, usize::MAX);
    }
    check_memory(&scheduler, &mut advancer);
    take(&mut advancer, Tick::MAX, usize::MAX);
    ledger.check_all_ended();
}

// Memory.

/// Dead nodes, those of cancelled timers, that a shard may hold however few timers are pending.
const DEAD: usize = 4_096;

/// Cancels between two calls of the advancer: by so many there may be more dead nodes than that.
const CANCELS: usize = 1_000;

/// Nodes in use that are neither pending nor dead: those handed to threads, a word of 64 or two for each, and
/// those given back that are not yet reusable.
const IN_HAND: usize = 4_096;

/// How often the advancer is called until nodes that were given back are reusable. They are when no thread
/// can be reading them any more, and a thread of another test that is interrupted while it reads puts that
/// off.
const PATIENCE: usize = 1_000_000;

/// How far apart the deadlines of cancelled timers are, so that they fill many buckets.
const APART: Tick = 7_919;

/// The dead nodes are within their bound, and the nodes in use come down to what they may be.
fn check_memory<T>(scheduler: &Scheduler<T>, advancer: &mut Advancer<T>) {
    let stats = scheduler.stats();
    let tolerated = stats.pending.max(DEAD);
    assert!(stats.dead_nodes <= tolerated + CANCELS, "{stats:?}");
    let within = |_| {
        drop(advancer.advance(0));
        thread::yield_now();
        scheduler.stats().nodes <= stats.pending + tolerated + IN_HAND
    };
    assert!((0..PATIENCE).any(within), "{:?}", scheduler.stats());
}

/// Sets and cancels `count` timers in rounds, each with deadlines nearer than the round before, so that none
/// lies where the next could use its node; the clock stands still, and the advancer is called after each
/// round.
fn cancelled_nodes_stay_bounded(standing: usize, count: usize, round: impl Fn(&Scheduler<usize>, Tick)) {
    let (scheduler, mut advancer) = shard::<usize>(&Config::default());
    (0..standing).for_each(|i| assert!(scheduler.schedule(Tick::MAX - i as Tick, i).is_ok()));
    let mut last = 1 << 40;
    for _ in 0..count / CANCELS {
        round(&scheduler, last);
        assert_eq!(advancer.advance(0).count(), 0);
        check_memory(&scheduler, &mut advancer);
        last -= APART * CANCELS as Tick;
    }
    assert_eq!(scheduler.len(), standing);
}

/// With nothing pending.
#[test]
fn cancelled_nodes_stay_bounded_in_an_empty_shard() {
    cancelled_nodes_stay_bounded(0, times(600_000), |scheduler, last| {
        set_and_cancel(scheduler, last, CANCELS)
    });
}

/// With ten thousand pending, and two threads at it.
#[test]
fn cancelled_nodes_stay_bounded_among_others() {
    cancelled_nodes_stay_bounded(10_000, times(600_000), |scheduler, last| {
        let half = || set_and_cancel(scheduler, last, CANCELS / 2);
        together(half, half);
    });
}

fn set_and_cancel(scheduler: &Scheduler<usize>, first: Tick, count: usize) {
    let deadlines = (0..count).map(|i| (i, first - APART * i as Tick));
    let keys = deadlines.map(|(i, deadline)| scheduler.schedule(deadline, i).expect("open"));
    for (i, key) in keys.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(scheduler.cancel(key), Some(i));
    }
}

/// The same where the advancer is called only when it has asked for it, by its waker. One timer is pending
/// that is due before all the others, so none of those wakes for its own sake.
#[test]
fn a_sweep_that_is_owed_wakes() {
    let (scheduler, mut advancer) = shard::<usize>(&Config::default());
    scheduler.schedule(1, 0).expect("open");
    let mut bell = Bell::hung_in(&mut advancer);
    assert_eq!(advancer.next_expiration(), Some(1));
    let (mut most, mut last, mut calls) = (0, 1 << 40, 0);
    for _ in 0..times(250) {
        set_and_cancel(&scheduler, last, CANCELS / 4);
        last -= APART * CANCELS as Tick / 4;
        if bell.rung() > 0 {
            assert_eq!(advancer.advance(0).count(), 0);
            bell = Bell::hung_in(&mut advancer);
            assert_eq!(advancer.next_expiration(), Some(1));
            calls += 1;
        }
        most = most.max(scheduler.stats().dead_nodes);
    }
    assert!(most <= DEAD + CANCELS, "{most} dead nodes, after {calls} calls");
    assert!(calls <= times(250) / 2, "{calls} calls are more than were owed");
    check_memory(&scheduler, &mut advancer);
}

// Waking.

/// A waker that counts.
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl Bell {
    /// A new bell, which the shard is to ring from now on.
    fn hung_in<T>(advancer: &mut Advancer<T>) -> Arc<Self> {
        let bell = Arc::new(Self(AtomicUsize::new(0)));
        advancer.register_waker(&Waker::from(Arc::clone(&bell)));
        bell
    }

    fn rung(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// A timer earlier than the answer of `next_expiration` rings before `schedule` returns, and so does one that
/// is brought nearer; one that is not earlier does not ring.
#[test]
fn an_earlier_timer_wakes_before_schedule_returns() {
    let (scheduler, mut advancer) =
        shard::<Tick>(&Config::builder().start(1_000_000).build().expect("valid"));
    let key = scheduler.schedule(Tick::MAX, 0).expect("open");
    for (earlier, by_moving) in
        [(1 << 40, false), (1 << 30, true), (1 << 21, false), (1_000_001, true), (5, false)]
    {
        let bell = Bell::hung_in(&mut advancer);
        let answer = advancer.next_expiration().expect("one is pending");
        scheduler.schedule(answer.saturating_add(1), 0).expect("open");
        assert_eq!(bell.rung(), 0, "no earlier than {answer}");
        if by_moving {
            let far = scheduler.schedule(Tick::MAX, 0).expect("open");
            scheduler.reschedule(far, earlier).expect("it is pending");
        } else {
            scheduler.schedule(earlier, 0).expect("open");
        }
        assert!(bell.rung() > 0, "{earlier} is earlier than {answer}");
    }
    assert!(scheduler.cancel(key).is_some());
}

/// With nothing pending the answer is none, and a timer is earlier than that, whenever it is due.
fn wakes_an_empty_shard(deadline: Tick) {
    let (scheduler, mut advancer) = shard(&Config::default());
    let bell = Bell::hung_in(&mut advancer);
    assert_eq!(advancer.next_expiration(), None);
    scheduler.schedule(deadline, ()).expect("open");
    assert!(bell.rung() > 0, "{deadline} is earlier than never");
}

#[test]
fn a_timer_wakes_an_empty_shard() {
    [0, 1, 5_000, 1 << 40, Tick::MAX - 1].into_iter().for_each(wakes_an_empty_shard);
}

/// The last tick there is comes before never, too.
#[test]
fn a_timer_for_the_last_tick_wakes_an_empty_shard() {
    wakes_an_empty_shard(Tick::MAX);
}

/// While the advancer hangs up its bell and asks for the next expiration, two threads schedule: each of their
/// timers is in the answer, or rings the bell.
#[test]
fn a_timer_is_in_the_answer_or_wakes() {
    let (scheduler, mut advancer) = shard(&Config::default());
    let mut rng = Rng::with_seed(70);
    for _ in 0..times(300) {
        let now = scheduler.now() + rng.u64(..5_000);
        advancer.advance(now).for_each(drop);
        let [left, right] = [(); 2].map(|()| now + 1 + (1 << rng.u32(..20)));
        let set = |deadline| scheduler.schedule(deadline, ()).map(drop).expect("open");
        let (answer, bell) = thread::scope(|scope| {
            scope.spawn(|| set(left));
            together(
                || set(right),
                || {
                    let bell = Bell::hung_in(&mut advancer);
                    (advancer.next_expiration(), bell)
                },
            )
        });
        let first = left.min(right);
        assert!(
            answer.is_some_and(|answer| answer <= first) || bell.rung() > 0,
            "{first} is not in {answer:?}"
        );
    }
}

/// A thread that sleeps until the tick that `next_expiration` named, or until it is woken; the clock is the
/// test's own, so that nothing here takes time.
#[derive(Default)]
struct Sleeper {
    state: Mutex<SleeperState>,
    changed: Condvar,
}

#[derive(Default)]
struct SleeperState {
    clock: Tick,
    woken: bool,
    ended: bool,
    /// While it sleeps: the tick at which it will wake by itself, or none if never.
    asleep: Option<Option<Tick>>,
    fired: usize,
}

impl SleeperState {
    fn must_wake(&self) -> bool {
        let alarm = self.asleep.flatten();
        self.woken || self.ended || alarm.is_some_and(|alarm| alarm <= self.clock)
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.change(|state| state.woken = true);
    }
}

impl Sleeper {
    fn lock(&self) -> MutexGuard<'_, SleeperState> {
        self.state.lock().expect("no thread panics with it")
    }

    fn change(&self, how: impl FnOnce(&mut SleeperState)) {
        how(&mut self.lock());
        self.changed.notify_all();
    }

    /// Sleeps, and answers with the time at which it woke, or none at the end.
    fn sleep(&self, alarm: Option<Tick>) -> Option<Tick> {
        self.change(|state| state.asleep = Some(alarm));
        let asleep = self.changed.wait_while(self.lock(), |state| !state.must_wake());
        let mut state = asleep.expect("no thread panics with it");
        (state.asleep, state.woken) = (None, false);
        (!state.ended).then_some(state.clock)
    }

    /// Waits until it sleeps with nothing to wake it, and answers with its alarm and with how many have
    /// fired.
    fn settle(&self) -> (Option<Tick>, usize) {
        let sound = self.changed.wait_while(self.lock(), |state| state.asleep.is_none() || state.must_wake());
        let state = sound.expect("no thread panics with it");
        (state.asleep.expect("asleep"), state.fired)
    }

    /// The loop of a thread that drives a shard.
    fn drive(self: &Arc<Self>, mut advancer: Advancer<()>) {
        let waker = Waker::from(Arc::clone(self));
        let mut alarm = Some(0);
        while let Some(now) = self.sleep(alarm) {
            let count = advancer.advance(now).count();
            self.change(|state| state.fired += count);
            advancer.register_waker(&waker);
            alarm = advancer.next_expiration();
        }
    }
}

/// Ends the sleeper's loop also when the test panics.
struct EndOf<'a>(&'a Sleeper);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.ended = true);
    }
}

/// A thread drives a shard and sleeps in between; others schedule while it does. Whenever it has settled to
/// sleep its alarm is no later than the earliest timer, and when the clock reaches that, it fires.
#[test]
fn a_sleeping_thread_misses_no_earlier_timer() {
    let sleeper = Arc::new(Sleeper::default());
    let (scheduler, advancer) = shard(&Config::default());
    thread::scope(|scope| {
        let _end = EndOf(&sleeper);
        scope.spawn(|| sleeper.drive(advancer));
        let (mut rng, mut clock, mut pending) = (Rng::with_seed(80), 0, Vec::new());
        let mut fired_before = 0;
        for _ in 0..times(200) {
            let [left, right] = [(); 2].map(|()| clock + 1 + (1 << rng.u32(..24)));
            let set = |deadline| scheduler.schedule(deadline, ()).map(drop).expect("open");
            together(|| set(left), || set(right));
            pending.extend([left, right]);
            let first = pending.iter().copied().min().expect("at least these two");
            let (alarm, _) = sleeper.settle();
            assert!(
                alarm.is_some_and(|alarm| alarm <= first),
                "asleep until {alarm:?}, one is due at {first}"
            );
            clock = first;
            sleeper.change(|state| state.clock = clock);
            pending.retain(|&deadline| deadline > clock);
            let (_, fired) = sleeper.settle();
            assert_eq!(scheduler.len(), pending.len());
            assert!(fired > fired_before);
            fired_before = fired;
        }
    });
}

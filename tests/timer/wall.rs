//! Schedules by a wall clock that is set forward and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shardwheel::{Job, ManualClock, ScheduleErrorKind, Timer, WallSchedule};

use crate::support::{Built, Count, HOUR, Log, is_balanced, manual, ms, secs, threads, until};

const MINUTE: Duration = secs(60);
const DAY: Duration = secs(24 * 3600);

/// The wall clock shows this when a test begins.
const BEGIN: SystemTime = UNIX_EPOCH;

/// A wall clock that goes with a manual clock, and can be set.
#[derive(Clone)]
struct Wall {
    clock: ManualClock,
    /// In milliseconds.
    set_by: Arc<AtomicI64>,
}

impl Wall {
    fn new(clock: &ManualClock) -> Self {
        // A day, so that it can be set back.
        Self { clock: clock.clone(), set_by: Arc::new(AtomicI64::new(DAY.as_millis() as i64)) }
    }

    fn now(&self) -> SystemTime {
        let millis = self.clock.elapsed().as_millis() as i64 + self.set_by.load(Ordering::SeqCst);
        BEGIN + ms(millis.try_into().expect("no test sets it before its beginning"))
    }

    fn forward(&self, by: Duration) {
        self.set_by.fetch_add(by.as_millis() as i64, Ordering::SeqCst);
    }

    fn back(&self, by: Duration) {
        self.set_by.fetch_sub(by.as_millis() as i64, Ordering::SeqCst);
    }

    /// The hour of the day, and the rest of it, after the day with which a test begins.
    fn time(&self) -> Duration {
        self.now().duration_since(BEGIN + DAY).expect("no test looks at a time before")
    }
}

/// The first whole number of periods after that time.
fn every(period: Duration) -> impl FnMut(SystemTime) -> Option<SystemTime> + Send + Clone + 'static {
    move |after| {
        let since = after.duration_since(BEGIN).ok()?.as_millis();
        let next = (since / period.as_millis() + 1) * period.as_millis();
        Some(BEGIN + Duration::from_millis(next.try_into().ok()?))
    }
}

/// A timer by a manual clock, its wall clock, and the wall clock's times at which it has called back.
fn hourly() -> (Timer, Wall, Log<Duration>) {
    let (timer, clock) = manual();
    let (wall, log) = (Wall::new(&clock), Log::new());
    schedule(&timer, &wall, &log, every(HOUR));
    (timer, wall, log)
}

fn schedule(
    timer: &Timer,
    wall: &Wall,
    log: &Log<Duration>,
    dates: impl FnMut(SystemTime) -> Option<SystemTime> + Send + 'static,
) {
    let (source, wall, entries) = (wall.clone(), wall.clone(), log.clone());
    let dates = WallSchedule::new(dates).clock(move || source.now());
    timer.schedule_with(dates, move || entries.add(wall.time())).expect("the timer is open");
}

/// It is found out within a minute, and what was skipped is due once.
#[test]
fn a_clock_that_is_set_forward_calls_back_once() {
    let (_timer, wall, log) = hourly();
    wall.clock.advance(MINUTE / 2);
    wall.forward(5 * HOUR);
    wall.clock.advance(MINUTE);
    assert_eq!(log.take(), [5 * HOUR + MINUTE], "the look that came next");
    wall.clock.advance(HOUR);
    assert_eq!(log.take(), [6 * HOUR], "and then by the new time");
}

/// Promise 1: no callback before its date.
#[test]
fn a_clock_that_is_set_back_puts_the_date_off() {
    let (_timer, wall, log) = hourly();
    wall.clock.advance(HOUR - secs(1));
    wall.back(HOUR / 2);
    wall.clock.advance(HOUR / 2 + secs(1) - ms(1));
    assert_eq!(log.take(), []);
    wall.clock.advance(ms(1));
    assert_eq!(log.take(), [HOUR]);
}

/// Promise 2: a date is due once.
#[test]
fn a_clock_that_goes_back_over_a_date_does_not_repeat_it() {
    let (_timer, wall, log) = hourly();
    wall.clock.advance(2 * HOUR);
    assert_eq!(log.take(), [HOUR, 2 * HOUR]);
    wall.back(HOUR + HOUR / 2);
    wall.clock.advance(HOUR + HOUR / 2);
    assert_eq!(log.take(), [], "one and two o'clock have been");
    wall.clock.advance(HOUR);
    assert_eq!(log.take(), [3 * HOUR]);
}

/// The first of the dates that the clock skipped has been due. The others come when the clock, set
/// back, reaches them.
#[test]
fn a_clock_that_was_wrong_for_a_moment_loses_no_date() {
    let (_timer, wall, log) = hourly();
    wall.forward(5 * HOUR + MINUTE);
    wall.clock.advance(2 * MINUTE);
    assert_eq!(log.len(), 1);
    log.take();
    wall.back(5 * HOUR + MINUTE);
    wall.clock.advance(3 * HOUR - 2 * MINUTE);
    assert_eq!(log.take(), [2 * HOUR, 3 * HOUR]);
}

/// Dates that pass while the callback runs are due once, and none is lost.
#[test]
fn dates_that_pass_while_the_callback_runs_are_due_once() {
    let (timer, clock) = manual();
    let (wall, log) = (Wall::new(&clock), Log::new());
    let (source, slow, entries) = (wall.clone(), wall.clone(), log.clone());
    let dates = WallSchedule::new(every(MINUTE)).clock(move || source.now());
    let callback = move || {
        entries.add(slow.time());
        if entries.len() == 1 {
            slow.clock.advance(4 * MINUTE + secs(1));
        }
    };
    timer.schedule_with(dates, callback).expect("the timer is open");
    clock.advance(7 * MINUTE);
    assert_eq!(log.take(), [MINUTE, 5 * MINUTE + secs(1), 6 * MINUTE, 7 * MINUTE]);
}

/// A wall clock that moves between a look and the question for the next date: the date between the
/// two is not left out.
#[test]
fn a_date_between_two_readings_is_due() {
    let (timer, clock) = manual();
    let (count, readings) = (Count::default(), Count::default());
    // Ten seconds later at each reading.
    let wall = move || BEGIN + secs(10) * u32::try_from(readings.one_more()).expect("few readings");
    let dates = WallSchedule::new(every(secs(10))).clock(wall).look_every(ms(1));
    timer.schedule_with(dates, count.adds()).expect("the timer is open");
    clock.advance(ms(100));
    assert!(count.get() >= 99, "{} calls, of a hundred looks", count.get());
}

#[test]
fn the_time_between_looks_can_be_set() {
    for (look_every, looks) in [(10 * MINUTE, 5), (secs(1), 3_599), (HOUR, 0)] {
        let (timer, clock) = manual();
        let (wall, count) = (Wall::new(&clock), Count::default());
        let counted = count.clone();
        let dates = WallSchedule::new(every(HOUR)).clock(move || wall.now()).look_every(look_every);
        timer.schedule_with(dates, move || counted.one()).expect("the timer is open");
        clock.advance(HOUR);
        assert_eq!((count.get(), timer.stats().fired), (1, looks + 1), "{look_every:?}");
    }
}

/// Promise 4: no loop without end.
#[test]
fn looks_without_a_pause_come_at_each_tick() {
    let (timer, clock) = manual();
    let wall = Wall::new(&clock);
    let dates = WallSchedule::new(every(HOUR)).clock(move || wall.now()).look_every(Duration::ZERO);
    timer.schedule_with(dates, || ()).expect("the timer is open");
    clock.advance(secs(1));
    assert_eq!(timer.stats().fired, 1_000);
}

/// Promise 8: the callback comes back.
#[test]
fn a_schedule_without_a_later_date_makes_no_timer() {
    type Dates = fn(SystemTime) -> Option<SystemTime>;
    for dates in [|_| None, |after| Some(after), |_| Some(UNIX_EPOCH)] as [Dates; 3] {
        let (timer, _clock) = manual();
        let refused = timer.schedule_with(WallSchedule::new(dates), || ()).expect_err("there is no date");
        assert_eq!(refused.kind(), ScheduleErrorKind::NoOccurrence);
        refused.into_payload()();
        assert_eq!(timer.stats().scheduled, 0);
    }
}

#[test]
fn the_last_date_ends_the_timer() {
    let (timer, clock) = manual();
    let (wall, log) = (Wall::new(&clock), Log::new());
    let mut hours = every(HOUR);
    let last = wall.now() + 2 * HOUR;
    schedule(&timer, &wall, &log, move |after| hours(after).filter(|&date| date <= last));
    clock.advance(DAY);
    assert_eq!((log.take(), timer.stats().pending), (vec![HOUR, 2 * HOUR], 0));
    is_balanced(&timer);
}

/// The wall clock is read where the callback runs: a job that waits in an executor while the clock is
/// set back does not call it. Promise 1.
#[test]
fn a_job_that_waited_looks_at_the_clock_again() {
    let (jobs, waiting) = std::sync::mpsc::channel::<Job>();
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor_fn(move |job| drop(jobs.send(job))).built();
    let (wall, log) = (Wall::new(&clock), Log::new());
    schedule(&timer, &wall, &log, every(MINUTE));
    clock.advance(MINUTE);
    let job = waiting.recv().expect("it is due");
    wall.back(MINUTE / 2);
    job.run();
    assert_eq!(log.take(), []);
    clock.advance(MINUTE);
    waiting.recv().expect("it is due").run();
    assert_eq!(log.take().len(), 1);
}

/// A panic of the wall clock or of the dates ends the timer, as that of any schedule. Promise 7.
#[test]
fn a_panic_of_the_wall_clock_ends_the_timer() {
    let (timer, clock) = manual();
    let (wall, readings) = (Wall::new(&clock), Count::default());
    let source = move || {
        assert!(readings.one_more() != 4, "on purpose");
        wall.now()
    };
    let count = Count::default();
    let counted = count.clone();
    let dates = WallSchedule::new(every(MINUTE)).clock(source);
    timer.schedule_with(dates, move || counted.one()).expect("the timer is open");
    clock.advance(HOUR);
    let stats = timer.stats();
    assert_eq!((count.get(), stats.panics, stats.pending), (1, 1, 0));
    is_balanced(&timer);
}

/// By the real clocks, a date is not early. Promise 1.
#[test]
fn dates_are_not_early_in_real_time() {
    let (timer, log) = (threads(1), Log::new());
    let entries = log.clone();
    let date = SystemTime::now() + ms(50);
    let once = WallSchedule::new(move |after| (after < date).then_some(date));
    timer.schedule_with(once, move || entries.add(SystemTime::now())).expect("the timer is open");
    until("the schedule ends", || timer.stats().pending == 0);
    let seen = log.take();
    assert!(seen.len() == 1 && seen[0] >= date, "{seen:?}, due at {date:?}");
}

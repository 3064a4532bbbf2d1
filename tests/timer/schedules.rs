//! Schedules of recurring timers: closures, fixed rates, missed occurrences, and schedules that do
//! not advance.

use std::time::{Duration, Instant};

use shardwheel::{Every, ManualClock, Missed, Schedule, ScheduleErrorKind, Timer};

use crate::support::{Count, HOUR, Log, in_time, is_balanced, manual, ms, secs};

/// A timer with that schedule, and a log of the time at each occurrence.
fn log_occurrences(timer: &Timer, clock: &ManualClock, schedule: impl Schedule) -> Log<Duration> {
    let log = Log::new();
    let (entries, clock) = (log.clone(), clock.clone());
    timer.schedule_with(schedule, move || entries.add(clock.elapsed())).expect("the timer is open");
    log
}

/// A schedule of these gaps, in milliseconds.
fn gaps<const N: usize>(gaps: [u64; N]) -> impl Schedule {
    let mut gaps = gaps.into_iter();
    move |previous: Instant| gaps.next().map(|gap| previous + ms(gap))
}

/// A schedule of gaps of 1, 4, 5, 40, 50, 400 and 500 ms is due at 1, 5, 10, 50, 100, 500 and 1000
/// ms, and then ends. Promise 1.
#[test]
fn a_schedule_of_gaps_is_due_at_their_sums() {
    let (timer, clock) = manual();
    let log = log_occurrences(&timer, &clock, gaps([1, 4, 5, 40, 50, 400, 500]));
    clock.advance(secs(10));
    assert_eq!(log.take(), [1, 5, 10, 50, 100, 500, 1000].map(ms));
    let stats = timer.stats();
    assert_eq!((stats.fired, stats.recurred, stats.pending), (7, 6, 0));
    is_balanced(&timer);
}

/// A schedule whose first answer is none makes no timer: `schedule_with` returns an error and the
/// callback. Promise 8.
#[test]
fn a_schedule_without_occurrence_makes_no_timer() {
    let (timer, clock) = manual();
    let (count, never) = (Count::default(), |_: Instant| None);
    let refused = timer.schedule_with(never, count.adds()).expect_err("there is no timer");
    assert_eq!(refused.kind(), ScheduleErrorKind::NoOccurrence);
    clock.advance(HOUR);
    assert_eq!((count.get(), timer.stats().scheduled), (0, 0));
    refused.into_payload()();
    assert_eq!(count.get(), 1);
}

/// A period of zero is refused with the callback; so is a period whose end no `Instant` can
/// represent. Promise 4.
#[test]
fn a_zero_or_endless_period_is_refused() {
    let (timer, _clock) = manual();
    let refused = timer.schedule_every(Duration::ZERO, || ()).expect_err("no time would pass");
    assert_eq!(refused.kind(), ScheduleErrorKind::ZeroPeriod);
    assert!(refused.to_string().contains("0 ns"));
    let refused = timer.schedule_every(Duration::MAX, || ()).expect_err("no `Instant` is the end");
    assert_eq!(refused.kind(), ScheduleErrorKind::NoOccurrence);
    let zero = Every::new(Duration::ZERO);
    let refused = timer.schedule_with(zero, || ()).expect_err("a period of zero yields no occurrence");
    assert_eq!(refused.kind(), ScheduleErrorKind::NoOccurrence);
    assert_eq!(timer.stats().scheduled, 0);
}

/// Periods that divide a tick, that a tick does not divide, and long ones occur as often as they
/// fit, without drift. Promise 1.
#[test]
fn a_period_occurs_as_often_as_it_fits() {
    for micros in [250, 700, 1_000, 1_500, 7_001, 97_000] {
        let (timer, clock) = manual();
        let period = Duration::from_micros(micros);
        let log = log_occurrences(&timer, &clock, Every::new(period));
        clock.advance(secs(1));
        let seen = log.take();
        assert_eq!(seen.len() as u64, 1_000_000 / micros, "every {period:?}");
        for (at, due) in seen.into_iter().zip((1..).map(|count| count * period)) {
            assert!(at >= due && at < due + ms(1), "due at {due:?}, came at {at:?}");
        }
        is_balanced(&timer);
    }
}

/// The clock jumps over periods: the schedule makes up for them, skips them or delays. After a jump
/// of a whole number of periods the one that is due right now is not missed. Promises 1 and 4.
#[test]
fn missed_occurrences_are_made_up_skipped_or_delayed() {
    let at = |missed, [before, jump, after]: [u64; 3]| {
        let (timer, clock) = manual();
        let log = log_occurrences(&timer, &clock, Every::new(ms(100)).missed(missed));
        clock.advance(ms(before));
        clock.jump(ms(jump));
        clock.advance(ms(after));
        is_balanced(&timer);
        log.take()
    };
    let within = [200, 350, 250];
    assert_eq!(at(Missed::Burst, within), [100, 200, 550, 550, 550, 600, 700, 800].map(ms));
    assert_eq!(at(Missed::Skip, within), [100, 200, 550, 600, 700, 800].map(ms));
    assert_eq!(at(Missed::Delay, within), [100, 200, 550, 650, 750].map(ms));
    let whole = [0, 400, 100];
    assert_eq!(at(Missed::Burst, whole), [400, 400, 400, 400, 500].map(ms));
    assert_eq!(at(Missed::Skip, whole), [400, 400, 500].map(ms));
    assert_eq!(at(Missed::Delay, whole), [400, 500].map(ms));
    assert_eq!(at(Missed::Delay, [0, 200, 100]), [200, 200, 300].map(ms), "the second is due right now");
}

/// A schedule that returns the same time, or an earlier one, is due at the next tick each time:
/// `advance` ends. Promises 4 and 7.
#[test]
fn a_schedule_that_stands_still_occurs_once_a_tick() {
    for back in [ms(0), ms(1), ms(50)] {
        let occurrences = in_time(move || {
            let (timer, clock) = manual();
            let schedule = move |at: Instant| Some(at.checked_sub(back).unwrap_or(at));
            let log = log_occurrences(&timer, &clock, schedule);
            clock.advance(ms(100));
            clock.jump(ms(100));
            is_balanced(&timer);
            log.take()
        });
        let (walked, jumped) = occurrences.split_at(100);
        assert!(walked.iter().enumerate().all(|(i, &at)| at == ms(i as u64 + 1)), "{walked:?}");
        assert_eq!(jumped, [ms(200)], "back by {back:?}");
    }
}

/// A user's schedule may count from the end of the callback: here each occurrence is due ten
/// milliseconds after that. Promise 1.
#[test]
fn a_schedule_may_count_from_the_end_of_the_callback() {
    struct AfterEnd;
    impl Schedule for AfterEnd {
        fn next(&mut self, previous: Instant) -> Option<Instant> {
            Some(previous + ms(10))
        }
        fn next_after(&mut self, _previous: Instant, now: Instant) -> Option<Instant> {
            Some(now + ms(10))
        }
    }
    let (timer, clock) = manual();
    let log = Log::new();
    let (entries, time) = (log.clone(), clock.clone());
    let callback = move || {
        entries.add(time.elapsed());
        time.advance(ms(5));
    };
    timer.schedule_with(AfterEnd, callback).expect("the timer is open");
    clock.advance(ms(50));
    assert_eq!(log.take(), [10, 25, 40].map(ms));
}

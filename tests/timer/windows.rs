//! Timers that may fire within a window.

use std::time::Duration;

use futures::FutureExt;
use shardwheel::ScheduleErrorKind;

use crate::support::{Count, Log, is_balanced, manual, ms, secs};

/// A timer fires within its window, at the roundest tick there. Promise 1.
#[test]
fn a_timer_fires_within_its_window() {
    let (timer, clock) = manual();
    let start = timer.now();
    let fired = Log::new();
    let windows = [(1, 1), (3, 5), (5, 7), (17, 31), (33, 63), (50, 60), (100, 1_000), (1_020, 1_030)];
    for (from, to) in windows {
        let (log, clock) = (fired.clone(), clock.clone());
        let note = move || log.add((from, clock.elapsed().as_millis() as u64));
        timer.schedule_within(start + ms(from)..=start + ms(to), note).expect("the timer is open");
    }
    clock.advance(secs(2));
    let mut fired = fired.take();
    fired.sort_unstable();
    assert_eq!(fired, [(1, 1), (3, 4), (5, 6), (17, 24), (33, 48), (50, 56), (100, 512), (1_020, 1_024)]);
    is_balanced(&timer);
}

/// A window in which no tick begins fires after it, never before it; one that has passed at the next
/// tick. Promises 1 and 4.
#[test]
fn a_window_without_a_tick_fires_at_the_next() {
    let (timer, clock) = manual();
    let start = timer.now();
    clock.advance(ms(5));
    let micros = |micros| start + Duration::from_micros(micros);
    let key = |window| timer.schedule_within(window, || ()).expect("the timer is open");
    assert_eq!(timer.deadline(key(micros(7_200)..=micros(7_800))), Some(start + ms(8)));
    assert_eq!(timer.deadline(key(micros(7_200)..=micros(8_000))), Some(start + ms(8)));
    assert_eq!(timer.deadline(key(micros(1_000)..=micros(3_000))), Some(start + ms(6)));
    assert_eq!(timer.deadline(key(micros(1_000)..=micros(900_000))), Some(start + ms(512)));
    clock.advance(secs(1));
    assert_eq!(timer.stats().fired, 4);
}

/// A window that ends before it starts is an error that says so; the callback comes back.
#[test]
fn an_empty_window_is_an_error() {
    let (timer, _clock) = manual();
    let start = timer.now() + ms(10);
    let runs = Count::default();
    let refused = timer.schedule_within(start..=start - ms(3), runs.adds());
    let refused = refused.expect_err("the window is empty");
    assert_eq!(refused.kind(), ScheduleErrorKind::WindowEndsBeforeStart { by: ms(3) });
    assert!(refused.to_string().contains("3ms"), "{refused}");
    refused.into_payload()();
    assert_eq!(runs.get(), 1);
}

/// A window by durations is one from the call on, for callbacks and for sleeps; its ends may be any
/// durations. Promises 1 and 4.
#[test]
fn a_window_may_be_given_by_durations() {
    let (timer, clock) = manual();
    clock.advance(ms(5));
    let start = timer.now();
    for (from, to) in [(0, 0), (1, 1), (3, 5), (17, 31), (100, 1_000)] {
        let by_times = timer.schedule_within(start + ms(from)..=start + ms(to), || ()).expect("it is open");
        let by_durations = timer.schedule_within(ms(from)..=ms(to), || ()).expect("it is open");
        assert_eq!(timer.deadline(by_durations), timer.deadline(by_times), "{from} to {to} ms");
        assert_eq!(timer.sleep_within(ms(from)..=ms(to)).deadline(), Some(start + ms(from)));
    }
    let never = timer.schedule_within(Duration::MAX..=Duration::MAX, || ()).expect("it is open");
    assert_eq!(timer.deadline(never), None);
    let refused = timer.schedule_within(ms(7)..=ms(4), || ()).expect_err("it ends before it starts");
    assert_eq!(refused.kind(), ScheduleErrorKind::WindowEndsBeforeStart { by: ms(3) });
    let limited = timer.timeout_within(ms(7)..=ms(4), std::future::pending::<()>());
    assert!(limited.now_or_never().expect("it is refused").is_err());
}

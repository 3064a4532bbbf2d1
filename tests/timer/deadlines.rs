//! When timers fire: exactly, by a manual clock, and never early in real time.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use shardwheel::{ManualClock, Timer};

use crate::support::{HOUR, Log, after, by_hand, hear, is_balanced, manual, ms, secs, threads};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Sets a timer for each of `delays`. Its callback logs the delay and the time on the clock.
fn log_each(timer: &Timer, clock: &ManualClock, delays: &[Duration]) -> Log<(Duration, Duration)> {
    let log = Log::new();
    for &delay in delays {
        let (log, clock) = (log.clone(), clock.clone());
        after(timer, delay, move || log.add((delay, clock.elapsed())));
    }
    log
}

/// Sets a timer for each of `delays`, in milliseconds of real time. Returns how late each was; none
/// may be early.
fn lateness_of_each(timer: &Timer, delays: &[u64]) -> Vec<Duration> {
    let (sender, receiver) = mpsc::channel();
    for &delay in delays {
        let (sender, begin) = (sender.clone(), Instant::now());
        let callback = move || sender.send((delay, begin.elapsed())).expect("the test waits");
        after(timer, ms(delay), callback);
    }
    let late = |(delay, took): (u64, Duration)| {
        took.checked_sub(ms(delay)).unwrap_or_else(|| panic!("{delay} ms took {took:?}: early"))
    };
    delays.iter().map(|_| late(hear(&receiver))).collect()
}

/// At a tick of 1 ms, in wheels of 32 buckets: each of these delays ends exactly, and from a time
/// within a tick at the end of its tick. Promise 1.
#[test]
fn each_delay_is_exact_on_a_manual_clock() {
    for (begin, rounds_up) in [(ms(0), ms(0)), (Duration::from_micros(300), ms(1))] {
        let (timer, clock) = by_hand(Timer::builder().tick(ms(1)).wheel_size(32));
        clock.advance(begin);
        let delays = [1, 5, 10, 50, 100, 500, 1000].map(ms);
        let log = log_each(&timer, &clock, &delays);
        clock.advance(secs(2));
        assert_eq!(log.take(), delays.map(|delay| (delay, delay + rounds_up)));
    }
}

/// In real time, and three hundred timers at once. Promise 1.
#[test]
fn no_delay_is_early_in_real_time() {
    for delays in [&[1, 5, 10, 50, 100, 500][..], &[20; 300]] {
        let late = lateness_of_each(&threads(2), delays);
        assert!(late.iter().all(|&late| late < secs(5)), "{late:?}");
    }
}

/// At a tick of 200 ms, a hundred thousand timers of 125 ms fire at the first tick after that, not
/// earlier and not later. Promise 1.
#[test]
fn many_timers_fire_at_the_first_coarse_tick_after_their_delay() {
    let (timer, clock) = by_hand(Timer::builder().tick(ms(200)));
    let delays = (0..100_000).map(|_| ms(125)).collect::<Vec<_>>();
    let log = log_each(&timer, &clock, &delays);
    clock.advance(ms(199));
    assert_eq!(log.len(), 0);
    clock.advance(ms(1));
    assert_eq!(log.take(), vec![(ms(125), ms(200)); 100_000]);
    is_balanced(&timer);
}

/// A delay of `Duration::MAX` does not wrap: the timer does not fire, neither after a second nor
/// after centuries, and it can be cancelled. Promise 4.
#[test]
fn the_longest_delay_does_not_wrap_and_can_be_cancelled() {
    let (timer, clock) = manual();
    let [after, other] =
        [(); 2].map(|()| timer.schedule_after(Duration::MAX, || unreachable!("the timer never fires")));
    clock.advance(secs(1));
    assert_eq!(timer.stats().pending, 2);
    assert!(timer.cancel(after.expect("the timer is open")));
    clock.advance(400 * 365 * DAY);
    clock.advance(Duration::MAX);
    assert!(timer.cancel(other.expect("the timer is open")));
    is_balanced(&timer);
}

/// The same in real time, where the thread has no time to sleep until. Promises 4 and 9.
#[test]
fn the_longest_delay_does_not_stop_a_thread() {
    let timer = threads(1);
    let key = after(&timer, Duration::MAX, || unreachable!("the timer never fires"));
    let late = lateness_of_each(&timer, &[100]);
    assert!(late[0] < secs(5));
    let moved = timer.reschedule_after(key, Duration::MAX).expect("the timer is pending");
    assert!(timer.cancel(moved) && !timer.cancel(key));
    is_balanced(&timer);
}

/// A timer with a past deadline fires within a tick, and a timer with no delay at the next one.
/// Promise 4.
#[test]
fn a_past_deadline_fires_at_the_next_tick() {
    let (timer, clock) = manual();
    clock.advance(secs(10));
    let log = Log::new();
    for back in [ms(0), ms(1), secs(5), secs(10), secs(11), DAY] {
        let Some(past) = timer.now().checked_sub(back) else { continue };
        let (log, clock) = (log.clone(), clock.clone());
        timer.schedule_at(past, move || log.add(clock.elapsed())).expect("the timer is open");
    }
    let none = log_each(&timer, &clock, &[Duration::ZERO]);
    assert_eq!(log.len(), 0, "nothing fires within the call");
    clock.advance(ms(1));
    assert!(log.len() >= 3);
    assert!(log.take().into_iter().all(|at| at >= secs(10) && at <= secs(10) + ms(1)));
    assert_eq!(none.take(), [(ms(0), secs(10) + ms(1))]);
}

/// A timer for an earlier time, set after a timer for a later time, does not wait for it: a
/// sleeping thread is woken. Promise 1.
#[test]
fn a_timer_set_later_may_be_due_first() {
    let (timer, clock) = manual();
    let log = log_each(&timer, &clock, &[ms(10), ms(5)]);
    clock.advance(ms(10));
    assert_eq!(log.take(), [(ms(5), ms(5)), (ms(10), ms(10))]);

    let timer = threads(1);
    after(&timer, HOUR, || ());
    std::thread::sleep(ms(20));
    assert!(lateness_of_each(&timer, &[5])[0] < secs(5));
}

/// The thread that drives the timer is delayed by 10 ms: a timer of 5 ms fires once, after that.
/// Promises 1 and 2.
#[test]
fn a_timer_fires_once_after_its_driver_was_delayed() {
    let (timer, clock) = manual();
    let log = log_each(&timer, &clock, &[ms(5)]);
    clock.jump(ms(10));
    clock.advance(secs(1));
    assert_eq!(log.take(), [(ms(5), ms(10))]);
    assert_eq!(timer.stats().lateness.max(), ms(5));
}

/// `advance` is exact in nanoseconds: a nanosecond before its tick nothing fires. Promise 1.
#[test]
fn nothing_fires_a_nanosecond_early() {
    let (timer, clock) = manual();
    let log = log_each(&timer, &clock, &[ms(5), ms(5) + Duration::from_nanos(1)]);
    clock.advance(ms(5) - Duration::from_nanos(1));
    assert_eq!(log.len(), 0);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(log.take().len(), 1);
    clock.advance(ms(1) - Duration::from_nanos(1));
    assert_eq!(log.len(), 0);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(log.take().len(), 1);
}

//! A timer's slack: what is not exact fires together, and nothing early.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use shardwheel::{DelayQueue, ManualClock, Timer};

use crate::support::{HOUR, Log, after, by_hand, is_balanced, ms, secs};

fn with_slack(slack: Duration) -> (Timer, ManualClock) {
    by_hand(Timer::builder().shards(1).slack(slack))
}

/// A callback is due at the roundest tick from its deadline to the end of the slack, whichever call
/// names the deadline. Promise 1.
#[test]
fn a_callback_is_due_within_the_slack() {
    let (timer, clock) = with_slack(ms(10));
    clock.advance(ms(3));
    let start = timer.now() - ms(3);
    for (deadline, due) in [(4, 8), (9, 16), (17, 24), (55, 64), (64, 64), (65, 72), (1_020, 1_024)] {
        let due = Some(start + ms(due));
        let key = after(&timer, ms(deadline - 3), || ());
        assert_eq!(timer.deadline(key), due, "{deadline}");
        let key = timer.schedule_at(start + ms(deadline), || ()).expect("the timer is open");
        assert_eq!(timer.deadline(key), due, "{deadline}");
        let key = after(&timer, HOUR, || ());
        let key = timer.reschedule_at(key, start + ms(deadline)).expect("it is pending");
        assert_eq!(timer.deadline(key), due, "{deadline}");
        let at = start + ms(deadline);
        let key = timer.schedule_within(at..=at, || ()).expect("the timer is open");
        assert_eq!(timer.deadline(key), Some(at), "a window of one moment is exact");
    }
    clock.advance(secs(2));
    assert_eq!(timer.stats().fired, 7 * 4);
    is_balanced(&timer);
}

/// What has passed, what is due now and what never comes. Promise 4.
#[test]
fn the_slack_puts_nothing_off_for_ever() {
    let (timer, clock) = with_slack(HOUR);
    clock.advance(ms(5));
    let never = after(&timer, Duration::MAX, || ());
    after(&timer, Duration::ZERO, || ());
    timer.schedule_at(timer.now() - ms(4), || ()).expect("the timer is open");
    clock.advance(HOUR);
    assert_eq!((timer.stats().fired, timer.deadline(never)), (2, None));
    clock.advance(HOUR * 24 * 365 * 100);
    assert!(timer.is_pending(never));
}

/// A slack that is shorter than a tick changes nothing; nor does none.
#[test]
fn a_slack_within_a_tick_changes_nothing() {
    for slack in [Duration::ZERO, Duration::from_micros(999)] {
        let (timer, _clock) = with_slack(slack);
        for deadline in 1..100 {
            let key = after(&timer, ms(deadline), || ());
            assert_eq!(timer.deadline(key), Some(timer.now() + ms(deadline)));
        }
    }
}

/// A recurring timer keeps its times, and each occurrence comes within the slack of its own.
/// Promise 1.
#[test]
fn a_recurring_timer_does_not_drift() {
    for (period, slack) in [(ms(10), ms(3)), (ms(7), ms(7)), (ms(100), ms(90)), (ms(3), ms(20))] {
        let (timer, clock) = with_slack(slack);
        let (start, log) = (timer.now(), Log::new());
        let (times, by) = (log.clone(), clock.clone());
        let key = timer.schedule_repeating(period, move |occurrence| {
            times.add((occurrence.due, start + by.elapsed()));
            ControlFlow::Continue(())
        });
        clock.advance(secs(3));
        let times: Vec<(Instant, Instant)> = log.take();
        assert!(times.len() as u32 >= (secs(3) - slack).as_millis() as u32 / period.as_millis() as u32);
        for (count, (due, ran)) in (1..).zip(times) {
            assert_eq!(due, start + count * period);
            // One that is armed when its tick has been flushed runs at the next.
            assert!(due <= ran && ran <= due + slack + ms(1), "{period:?} {slack:?}: {:?}", ran - due);
        }
        timer.cancel(key.expect("the timer is open"));
    }
}

/// Timers of a server share their ticks; its delay queues do as well, and name what was asked for.
#[test]
fn timers_share_ticks_within_the_slack() {
    let (timer, clock) = with_slack(ms(100));
    let queue = DelayQueue::new(&timer);
    let (mut ticks, begin) = (BTreeSet::new(), timer.now());
    for i in 0..1_000 {
        let key = after(&timer, secs(5), || ());
        ticks.insert(timer.deadline(key).expect("it is near"));
        queue.insert(i, secs(5)).expect("it is open");
        clock.advance(ms(1));
    }
    // Each window of 100 ms holds a multiple of 64 ms.
    assert!(ticks.len() <= 2 + 1_000 / 64, "{}", ticks.len());
    let mut came = BTreeSet::new();
    for _ in 0..5_100 {
        clock.advance(ms(1));
        while let Some(out) = queue.try_recv() {
            assert_eq!(out.deadline, begin + secs(5) + ms(out.value));
            came.insert(timer.now());
        }
    }
    assert_eq!(came, ticks);
    assert_eq!(timer.stats().fired, 2_000);
}

/// However long it is: nothing is early, and a window says so for itself. Promise 1.
#[test]
fn a_slack_without_end_is_taken_at_its_word() {
    let (timer, clock) = with_slack(Duration::MAX);
    for delay in [ms(5), HOUR, Duration::MAX] {
        after(&timer, delay, || panic!("it is early"));
    }
    let exact = timer.now() + ms(7);
    timer.schedule_within(exact..=exact, || ()).expect("the timer is open");
    clock.advance(secs(3));
    assert_eq!((timer.stats().fired, timer.stats().pending), (1, 3));
}

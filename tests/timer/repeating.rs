//! Recurring callbacks that get their occurrence, and end their timer.

use std::ops::ControlFlow::{Break, Continue};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Every, Job, Missed, Occurrence, ScheduleErrorKind, Timer, UnfiredTask};

use crate::support::{Log, by_hand, hear, is_balanced, manual, ms, secs, threads};

/// The callback gets its key, when it was due and how late it is. Promise 1.
#[test]
fn a_repeating_callback_is_told_its_occurrence() {
    let (timer, clock) = manual();
    let (start, log) = (timer.now(), Log::<Occurrence>::new());
    let told = log.clone();
    let period = Duration::from_micros(2_500);
    let key = timer.schedule_repeating(period, move |occurrence| {
        told.add(occurrence);
        Continue(())
    });
    let key = key.expect("the timer is open");
    clock.advance(ms(10));
    let seen = log.take().into_iter().map(|seen| (seen.key, seen.due - start, seen.late)).collect::<Vec<_>>();
    let micros = Duration::from_micros;
    let expected = [(2_500, 500), (5_000, 0), (7_500, 500), (10_000, 0)];
    assert_eq!(seen, expected.map(|(due, late)| (key, micros(due), micros(late))));
    // The clock leaps: the occurrences are made up for, each later than the next.
    clock.jump(ms(10));
    let late: Vec<_> = log.take().into_iter().map(|seen| seen.late).collect();
    assert_eq!(late, [7_500, 5_000, 2_500, 0].map(micros));
    is_balanced(&timer);
}

/// The callback ends its timer, which is then no longer pending; it is dropped. Promise 2.
#[test]
fn a_repeating_callback_ends_its_timer() {
    for on_executor in [false, true] {
        let builder = Timer::builder();
        let builder = if on_executor { builder.executor(|job: Job| job.run()) } else { builder };
        let (timer, clock) = by_hand(builder);
        let (held, mut left) = (Arc::new(()), 3);
        let share = Arc::clone(&held);
        let key = timer.schedule_repeating(ms(10), move |_| {
            let _share = &share;
            left -= 1;
            if left > 0 { Continue(()) } else { Break(()) }
        });
        let key = key.expect("the timer is open");
        clock.advance(ms(29));
        assert!(timer.is_pending(key));
        clock.advance(secs(1));
        let stats = timer.stats();
        assert_eq!((stats.fired, stats.cancelled, stats.pending), (3, 0, 0));
        assert!(!timer.is_pending(key) && !timer.cancel(key));
        assert_eq!(Arc::strong_count(&held), 1);
        is_balanced(&timer);
    }
}

/// After a reschedule the occurrence counts from the new deadline, and has the new key. Promise 6.
#[test]
fn a_rescheduled_repeating_callback_is_told_its_new_key() {
    let (timer, clock) = manual();
    let (start, log) = (timer.now(), Log::<Occurrence>::new());
    let told = log.clone();
    let first = timer.schedule_repeating(ms(10), move |occurrence| {
        told.add(occurrence);
        Continue(())
    });
    let second = timer.reschedule_after(first.expect("the timer is open"), ms(25)).expect("it is pending");
    clock.advance(ms(35));
    let seen: Vec<_> = log.take().into_iter().map(|seen| (seen.key, seen.due - start)).collect();
    assert_eq!(seen, [(second, ms(25)), (second, ms(35))]);
}

/// The callback cancels its timer by the key that it gets, and may return `Continue`. A panic does
/// not end it. Promises 2 and 7.
#[test]
fn a_repeating_callback_cancels_itself_and_survives_panics() {
    let (timer, clock) = manual();
    let (weak, mut count) = (timer.downgrade(), 0);
    let key = timer.schedule_repeating(ms(10), move |occurrence| {
        count += 1;
        assert!(count != 2, "the second occurrence panics");
        if count == 4 {
            assert!(weak.upgrade().expect("the test has it").cancel(occurrence.key));
        }
        Continue(())
    });
    let key = key.expect("the timer is open");
    clock.advance(secs(1));
    let stats = timer.stats();
    assert_eq!((stats.fired, stats.cancelled, stats.panics), (3, 1, 1));
    assert!(!timer.cancel(key));
    is_balanced(&timer);
}

/// With a schedule; and refused, with the callback.
#[test]
fn a_repeating_callback_follows_a_schedule_or_comes_back() {
    let (timer, clock) = manual();
    let (start, log) = (timer.now(), Log::new());
    let told = log.clone();
    let skips = Every::new(ms(10)).missed(Missed::Skip);
    let set = timer.schedule_repeating_with(skips, move |seen| {
        told.add(seen.due - start);
        Continue(())
    });
    set.expect("the timer is open");
    clock.jump(ms(35));
    clock.advance(ms(10));
    assert_eq!(log.take(), [ms(10), ms(40)]);
    let refused = timer.schedule_repeating(Duration::ZERO, |_| Break(())).expect_err("no period");
    assert_eq!(refused.kind(), ScheduleErrorKind::ZeroPeriod);
    let _callback = refused.into_payload();
    let ends = |_: Instant| None::<Instant>;
    let refused = timer.schedule_repeating_with(ends, |_| Break(())).expect_err("no occurrence");
    assert_eq!(refused.kind(), ScheduleErrorKind::NoOccurrence);
}

/// In real time the lateness is measured. A callback that had not fired at the shutdown gets its
/// occurrence as well. Promise 8.
#[test]
fn a_repeating_callback_knows_its_lateness_in_real_time() {
    let timer = threads(1);
    let (sender, receiver) = mpsc::channel();
    let key = timer.schedule_repeating(ms(5), move |seen| {
        sender.send((seen, Instant::now())).expect("the test waits");
        Continue(())
    });
    let key = key.expect("the timer is open");
    let (first, now) = hear(&receiver);
    assert!(first.key == key && first.due + first.late <= now && first.late < secs(30));
    let unfired: Vec<UnfiredTask> = timer.shutdown().collect();
    receiver.try_iter().for_each(drop);
    thread::sleep(ms(20));
    assert_eq!(unfired.len(), 1);
    unfired.into_iter().for_each(UnfiredTask::run);
    let (last, _) = hear(&receiver);
    assert!(last.key == key && last.late >= ms(10), "{last:?}");
    assert!(receiver.try_recv().is_err());
}

//! Groups: timers, sleeps and recurring callbacks that end together.

use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use shardwheel::{Every, Group, ScheduleErrorKind, SleepError, TimeoutError, Timer};

use crate::support::{
    Acts, Bell, Bomb, Count, Dropped, Gate, HOUR, after, before_poll, both, by_hand, hear, in_time,
    is_balanced, is_pending, manual, ms, panics, pass, poll, ready, secs, until, while_unwinding,
};

/// A group with one member of each kind that has a callback, which all hold a count of their drops.
fn of_all_kinds(timer: &Timer) -> (Group, Count) {
    let (group, dropped) = (timer.group(), Count::default());
    let held = || Dropped(dropped.clone());
    let (start, large) = (timer.now() + HOUR, [7_usize; 40]);
    let (a, b, c) = (held(), held(), held());
    after(&group, HOUR, move || drop(a));
    group.schedule_at(start, move || assert_eq!((drop(b), large[39]), ((), 7))).expect("the timer is open");
    group.schedule_within(start..=start + HOUR, move || drop(c)).expect("the timer is open");
    let (a, b, c, d) = (held(), held(), held(), held());
    group.schedule_every(HOUR, move || _ = &a).expect("the timer is open");
    group.schedule_with(Every::new(HOUR), move || _ = &b).expect("the timer is open");
    let repeat = move |_| (&c, ControlFlow::Continue(())).1;
    group.schedule_repeating(HOUR, repeat).expect("the timer is open");
    let repeat = move |_| (&d, ControlFlow::Continue(())).1;
    group.schedule_repeating_with(Every::new(HOUR), repeat).expect("the timer is open");
    (group, dropped)
}

const KINDS: usize = 7;

/// `cancel_all` ends members of all kinds and counts them, and hands back what they hold at once; so
/// does the drop of the last handle, but not that of another one. Neither ends anything else. Promises 2
/// and 5.
#[test]
fn members_of_all_kinds_end_together() {
    for (timer, _) in both() {
        let (group, dropped) = of_all_kinds(&timer);
        let other = after(&timer, HOUR, || ());
        let beside = timer.group();
        after(&beside, HOUR, || ());
        assert_eq!((group.len(), group.is_empty(), timer.stats().pending), (KINDS, false, KINDS + 2));
        assert_eq!(group.cancel_all(), KINDS);
        assert_eq!((group.len(), group.is_empty(), dropped.get()), (0, true, KINDS));
        assert_eq!(group.cancel_all(), 0);
        assert!(timer.is_pending(other) && beside.len() == 1);

        let (group, dropped) = of_all_kinds(&timer);
        let last = group.clone();
        drop(group);
        assert_eq!((last.len(), dropped.get()), (KINDS, 0));
        in_time(move || drop(last));
        assert_eq!((timer.stats().pending, dropped.get()), (2, KINDS));
        is_balanced(&timer);
    }
}

/// The set of members shrinks, down to none.
#[test]
fn many_members_leave() {
    let (timer, _clock) = manual();
    for members in 1..40 {
        let group = timer.group();
        let keys: Vec<_> = (0..members).map(|_| after(&group, HOUR, || ())).collect();
        keys.into_iter().for_each(|key| assert!(group.cancel(key)));
        assert_eq!((group.len(), timer.stats().panics), (0, 0));
    }
}

/// A member leaves however it ends.
#[test]
fn a_member_leaves_when_it_has_ended() {
    let (timer, clock) = manual();
    let group = timer.group();
    after(&group, ms(1), || ());
    clock.advance(ms(1));
    assert_eq!(group.len(), 0, "it has fired");
    let once = after(&group, HOUR, || ());
    let every = group.schedule_every(HOUR, || ()).expect("the timer is open");
    let keys = [after(&group, HOUR, || ()), after(&group, HOUR, || ())];
    let guard = timer.guard(after(&group, HOUR, || ()));
    assert_eq!(group.len(), 5);
    assert!(timer.cancel(once) && group.cancel(every));
    assert_eq!((group.len(), timer.cancel_batch(keys)), (3, 2));
    assert_eq!(group.len(), 1);
    drop(guard);
    assert_eq!(group.len(), 0, "it was cancelled");
    let mut left = 3;
    let ends = move |_| {
        left -= 1;
        if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    group.schedule_repeating(ms(1), ends).expect("the timer is open");
    clock.advance(ms(2));
    assert_eq!(group.len(), 1);
    clock.advance(ms(1));
    assert_eq!(group.len(), 0, "it recurs no more");
    after(&group, ms(1), || panic!("on purpose"));
    clock.advance(ms(1));
    assert_eq!((group.len(), timer.stats().panics), (0, 1));
    is_balanced(&timer);
}

/// A member that is rescheduled, also to an earlier time and through the timer, is still a member.
#[test]
fn a_rescheduled_member_is_still_one() {
    for (timer, _) in both() {
        let (group, dropped) = (timer.group(), Count::default());
        let held = || Dropped(dropped.clone());
        for delay in [HOUR / 2, 2 * HOUR, 100_000 * HOUR] {
            let (a, b) = (held(), held());
            let once = after(&group, HOUR, move || drop(a));
            let every = group.schedule_every(HOUR, move || _ = &b).expect("the timer is open");
            let once = timer.reschedule_after(once, delay).expect("it is pending");
            let every = timer.reschedule_after(every, delay).expect("it is pending");
            assert!(timer.is_pending(once) && timer.is_pending(every));
            assert!(timer.reschedule_after(once, delay / 2).is_some());
        }
        assert_eq!((group.len(), group.cancel_all(), dropped.get()), (6, 6, 6));
        assert_eq!(timer.stats().pending, 0);
        let key = after(&group, HOUR, || ());
        let key = timer.reschedule_after(key, HOUR / 60).expect("it is pending");
        assert!(timer.cancel(key) && group.is_empty());
        is_balanced(&timer);
    }
}

/// A refused member comes back and is none: the timer is full, the period is zero, the schedule has
/// no occurrence, the window is empty, the timer has been shut down. Promise 8.
#[test]
fn what_is_refused_comes_back() {
    let (timer, _clock) = by_hand(Timer::builder().max_pending(1));
    let (group, now) = (timer.group(), timer.now());
    let key = after(&group, HOUR, || ());
    let large = [5_u64; 30];
    let refused = group.schedule_after(HOUR, move || assert_eq!(large[29], 5)).expect_err("it is full");
    assert!(refused.is_full());
    refused.into_payload()();
    let refused = group.schedule_every(HOUR, || ()).expect_err("it is full");
    assert!(refused.is_full());
    assert!(timer.cancel(key));
    assert!(group.schedule_every(Duration::ZERO, || ()).is_err());
    assert!(group.schedule_with(|_| None, || ()).is_err());
    assert!(group.schedule_within(now + HOUR..=now, || ()).is_err());
    assert_eq!(group.len(), 0);
    drop(timer.shutdown());
    let refused = group.schedule_after(HOUR, || ()).expect_err("it is shut down");
    assert!(refused.is_shut_down());
    assert_eq!(group.len(), 0);
}

/// A callback may end its own group: by a call, by the drop of the last handle, also on a shard's
/// own thread. Promise 7.
#[test]
fn a_callback_may_end_its_own_group() {
    for ends_by_drop in [false, true] {
        for recurs in [false, true] {
            for (timer, clock) in both() {
                let (group, dropped) = of_all_kinds(&timer);
                let (sender, receiver) = mpsc::channel();
                let (mut held, gate) = (Some(group.clone()), Gate::default());
                let is_scheduled = gate.clone();
                let end = move || {
                    // Before that it is no member yet, and the group has another handle.
                    is_scheduled.pass();
                    let group = held.take().expect("it is called once");
                    sender.send(if ends_by_drop { KINDS } else { group.cancel_all() }).expect("it waits");
                };
                if recurs {
                    group.schedule_every(ms(1), end).expect("the timer is open");
                } else {
                    after(&group, ms(1), end);
                }
                drop(group);
                gate.open();
                pass(&clock, ms(5));
                let count = hear(&receiver);
                // A recurring callback that cancels its group is one of its members.
                assert_eq!(count, KINDS + usize::from(recurs && !ends_by_drop));
                until("all members have ended", || timer.stats().pending == 0);
                assert_eq!(dropped.get(), KINDS);
                is_balanced(&timer);
            }
        }
    }
}

/// A callback that holds its own group keeps it; a handle of the timer in the group, and a weak
/// one, keep nothing, and are refused when the group has ended.
#[test]
fn handles_that_do_not_keep_the_group() {
    let (timer, clock) = manual();
    let (group, dropped) = of_all_kinds(&timer);
    let (within, weak) = (Timer::clone(&group), group.downgrade());
    let upgraded = weak.upgrade().expect("the timer is open");
    after(&within, HOUR, || ());
    after(&upgraded, HOUR, || ());
    assert_eq!((group.len(), timer.stats().pending), (KINDS + 2, KINDS + 2));
    drop(group);
    assert_eq!((timer.stats().pending, dropped.get()), (0, KINDS));
    for handle in [within, upgraded] {
        let number = 5;
        let refused = handle.schedule_after(HOUR, move || _ = number).expect_err("the group has ended");
        assert_eq!(refused.kind(), ScheduleErrorKind::Cancelled);
        refused.into_payload()();
        let refused = handle.schedule_every(HOUR, || ()).expect_err("the group has ended");
        assert_eq!(refused.kind(), ScheduleErrorKind::Cancelled);
        assert_eq!(kind(ready(&mut handle.sleep(HOUR))), Err(ScheduleErrorKind::Cancelled));
        assert_eq!(timer.stats().pending, 0);
        after(&handle.group(), HOUR, || ());
    }
    assert_eq!(timer.stats().pending, 0, "a group of a group is one of its own");
    clock.advance(2 * HOUR);
    assert_eq!(timer.stats().fired, 0);
    is_balanced(&timer);
}

fn kind(ended: Result<(), SleepError>) -> Result<(), ScheduleErrorKind> {
    ended.map_err(|error| error.kind())
}

/// A sleep that waits is woken at once, and resolves to an error; so does one that was not polled
/// before. Neither is revived by a reset.
#[test]
fn sleeps_are_woken_with_an_error() {
    for (timer, _) in both() {
        let group = timer.group();
        let (bell, waker) = Bell::new();
        let (mut waits, mut later, mut reset) = (group.sleep(HOUR), group.sleep(HOUR), group.sleep(HOUR));
        is_pending(&mut waits, &waker);
        is_pending(&mut reset, &waker);
        reset.reset(timer.now() + HOUR / 2);
        assert_eq!((group.len(), group.cancel_all(), bell.rings()), (3, 2, 2));
        assert!(!waits.is_elapsed() && !later.is_elapsed());
        later.reset(timer.now() + 2 * HOUR);
        for sleep in [&mut waits, &mut later, &mut reset] {
            assert_eq!(kind(ready(sleep)), Err(ScheduleErrorKind::Cancelled));
            assert_eq!(kind(ready(sleep)), Err(ScheduleErrorKind::Cancelled));
            sleep.reset(timer.now() + HOUR);
            assert_eq!(kind(ready(sleep)), Err(ScheduleErrorKind::Cancelled));
        }
        assert_eq!((timer.stats().pending, Arc::strong_count(&bell)), (0, 2));
        is_pending(&mut group.sleep(HOUR), &waker);
        is_balanced(&timer);
    }
}

/// A sleep that has elapsed stays so, and one that is dropped leaves.
#[test]
fn sleeps_that_are_over_are_not_cancelled() {
    let (timer, clock) = manual();
    let group = timer.group();
    let (_bell, waker) = Bell::new();
    let [mut polled, mut fired] = [group.sleep(ms(5)), group.sleep(ms(5))];
    is_pending(&mut polled, &waker);
    is_pending(&mut fired, &waker);
    clock.advance(ms(5));
    assert_eq!(ready(&mut polled), Ok(()));
    assert_eq!(group.cancel_all(), 0);
    assert!(fired.is_elapsed());
    assert_eq!((ready(&mut polled), ready(&mut fired)), (Ok(()), Ok(())));
    let sleep = group.sleep(HOUR);
    assert_eq!(group.len(), 1);
    drop(sleep);
    assert_eq!(group.len(), 0);
}

/// Timeouts and intervals are members, also between two ticks; the stream of an interval ends.
#[test]
fn timeouts_and_intervals_are_cancelled() {
    let (timer, clock) = manual();
    let group = timer.group();
    let (bell, waker) = Bell::new();
    let mut limited = Box::pin(group.timeout(HOUR, std::future::pending::<u8>()));
    let mut interval = group.interval(ms(5));
    assert!(poll(&mut limited, &waker).is_pending());
    let mut tick = |waker: &_| {
        before_poll();
        interval.poll_tick(&mut std::task::Context::from_waker(waker))
    };
    assert!(matches!(tick(&waker), Poll::Ready(Ok(_))), "the first comes at once");
    assert!(tick(&waker).is_pending());
    clock.advance(ms(5));
    assert!(matches!(tick(&waker), Poll::Ready(Ok(_))));
    let rings = bell.rings();
    assert_eq!((group.cancel_all(), bell.rings() - rings), (1, 1));
    let cancelled = Err(ScheduleErrorKind::Cancelled);
    let Poll::Ready(ended) = tick(&waker) else { panic!("it is cancelled between two ticks") };
    assert_eq!(kind(ended.map(drop)), cancelled);
    let Err(TimeoutError::Sleep(error)) = ready(&mut limited) else { panic!("it is cancelled") };
    assert_eq!(kind(Err(error)), cancelled);
    drop((limited, interval));
    assert_eq!((group.len(), timer.stats().pending), (0, 0));
}

/// Ticks that have passed ask no timer. They end with the group, and with the timer, all the same.
#[test]
fn an_interval_that_lags_behind_ends() {
    for is_group in [true, false] {
        let (timer, clock) = manual();
        let group = timer.group();
        let mut interval = group.interval(ms(5));
        clock.advance(HOUR);
        assert!(clock.run_until_stalled(interval.tick()).expect("ticks have passed").is_ok());
        let kind = if is_group {
            assert_eq!(group.cancel_all(), 0, "it does not wait");
            ScheduleErrorKind::Cancelled
        } else {
            drop(timer.shutdown());
            ScheduleErrorKind::ShutDown
        };
        for _ in 0..2 {
            let ended = clock.run_until_stalled(interval.tick()).expect("it has ended");
            assert_eq!(ended.expect_err("no tick comes after the end").kind(), kind);
        }
    }
}

/// A shutdown by a group's handle ends the group alone, and hands its callbacks back. It ends
/// neither the timer nor another group. Promise 8.
#[test]
fn a_shutdown_of_a_group_ends_the_group_alone() {
    let ways: [fn(&Group) -> shardwheel::Unfired; 3] = [
        |group| group.shutdown(),
        |group| Timer::clone(group).shutdown(),
        |group| group.downgrade().upgrade().expect("the group keeps the timer").shutdown(),
    ];
    for ((timer, clock), way) in ways.into_iter().flat_map(|way| both().map(|on| (on, way))) {
        let (group, beside, ran) = (timer.group(), timer.group(), Count::default());
        let (once, every) = (ran.clone(), ran.clone());
        let first = after(&group, HOUR, move || once.one());
        group.schedule_every(HOUR, move || every.one()).expect("the timer is open");
        let others = [after(&timer, HOUR, || ()), after(&beside, HOUR, || ())];
        let mut sleep = group.sleep(HOUR);
        is_pending(&mut sleep, &Bell::new().1);
        let due = timer.deadline(first);
        let unfired = way(&group);
        assert_eq!((unfired.len(), group.len(), beside.len()), (2, 0, 1));
        assert_eq!(kind(ready(&mut sleep)), Err(ScheduleErrorKind::Cancelled));
        assert!(others.iter().all(|&key| timer.is_pending(key)));
        for task in unfired {
            assert!(task.key() != first || task.deadline() == due);
            task.run();
        }
        assert_eq!((ran.get(), way(&group).len()), (2, 0));
        let refused = group.schedule_after(HOUR, || ()).expect_err("the group has ended");
        assert_eq!(refused.kind(), ScheduleErrorKind::Cancelled);
        after(&timer, ms(1), || ());
        pass(&clock, ms(2));
        until("the timer goes on", || timer.stats().fired == 1);
        drop((sleep, beside));
        assert_eq!(timer.stats().pending, 1);
        is_balanced(&timer);
    }
}

/// A shutdown hands the members back: they run although the group ends first. Sleeps get the
/// shutdown's error. Promise 8.
#[test]
fn a_shutdown_hands_members_back() {
    for ends_first in [false, true] {
        for (timer, _) in both() {
            let (group, ran) = (timer.group(), Count::default());
            let (once, every) = (ran.clone(), ran.clone());
            after(&group, HOUR, move || once.one());
            group.schedule_every(HOUR, move || every.one()).expect("the timer is open");
            let mut sleep = group.sleep(HOUR);
            is_pending(&mut sleep, &Bell::new().1);
            let unfired = timer.shutdown();
            assert_eq!(unfired.len(), 2);
            if ends_first {
                assert_eq!(group.cancel_all(), 0);
            }
            unfired.for_each(shardwheel::UnfiredTask::run);
            assert_eq!(ran.get(), 2);
            assert_eq!(kind(ready(&mut sleep)), Err(ScheduleErrorKind::ShutDown));
            drop(sleep);
            assert_eq!(group.len(), 0);
            is_balanced(&timer);
        }
    }
}

/// Drops and wakers that panic, or use the group, while it ends: all members end. Promise 7.
#[test]
fn user_code_may_misbehave_while_a_group_ends() {
    for (timer, _) in both() {
        let (group, dropped) = of_all_kinds(&timer);
        for _ in 0..3 {
            let bomb = Bomb;
            after(&group, HOUR, move || drop(bomb));
        }
        assert_eq!(panics(|| group.cancel_all()), "a drop panics");
        assert_eq!((group.len(), dropped.get(), timer.stats().pending), (0, KINDS, 0));
        assert_eq!(timer.stats().panics, 2, "the first panic is the caller's");

        let (bomb, second) = (Bomb, Bomb);
        after(&group, HOUR, move || drop(bomb));
        group.schedule_every(HOUR, move || _ = &second).expect("the timer is open");
        while_unwinding(move || drop(group));
        assert_eq!((timer.stats().pending, timer.stats().panics), (0, 4));

        struct Uses(Group, Count);
        impl Drop for Uses {
            fn drop(&mut self) {
                self.1.one();
                assert!(self.0.len() <= 1 && self.0.cancel_all() <= 1);
                after(&self.0, HOUR, || ());
            }
        }
        let (group, used) = (timer.group(), Count::default());
        let uses = Uses(group.clone(), used.clone());
        after(&group, HOUR, move || drop(uses));
        let (again, counts) = (group.clone(), used.clone());
        let waker = Acts::waker(move || {
            counts.one();
            assert!(again.cancel_all() <= 1);
            panic!("a waker panics");
        });
        let mut sleep = group.sleep(HOUR);
        is_pending(&mut sleep, &waker);
        assert_eq!(panics(|| group.cancel_all()), "a waker panics");
        assert_eq!(used.get(), 2);
        assert!(group.cancel_all() <= 1 && timer.stats().pending == 0);
        is_balanced(&timer);
    }
}

/// The global timer has groups too.
#[test]
fn groups_of_the_global_timer() {
    let group = Timer::global().group();
    let (sender, receiver) = mpsc::channel();
    after(&group, ms(1), move || sender.send(5).expect("the test waits"));
    assert_eq!(hear(&receiver), 5);
    group.schedule_every(secs(60), || ()).expect("it is open");
    assert_eq!((group.cancel_all(), group.len()), (1, 0));
}

/// The output of `{:?}` does not grow with the members.
#[test]
fn a_group_is_shown_by_the_number_of_its_members() {
    let (timer, _clock) = manual();
    let group = timer.group();
    (0..1_000).for_each(|_| _ = after(&group, HOUR, || ()));
    for shown in [format!("{group:?}"), format!("{:?}", group.downgrade())] {
        assert!(shown.contains("1000") && shown.len() < 200, "{shown}");
    }
}

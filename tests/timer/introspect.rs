//! Which calls have set the pending timers. `cargo test --features introspect --test timer introspect`
//!
//! Places are told apart by their lines: each call stands on a line of its own.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{DelayQueue, Pending, PendingPlace, Timer};

use crate::support::{HOUR, after, by_hand, manual, ms, poll, secs, threads};

/// The pending timers that calls on that line of this file have set.
fn at(pending: &Pending, line: u32) -> Option<PendingPlace> {
    let is_here = |place: &&PendingPlace| {
        place.place.is_some_and(|place| place.line() == line && place.file() == file!())
    };
    pending.places.iter().find(is_here).cloned()
}

fn never() -> std::future::Pending<()> {
    std::future::pending()
}

/// Polls a future, which is not ready.
fn waits(future: &mut (impl Future + Unpin)) -> bool {
    poll(future, Waker::noop()).is_pending()
}

fn count(timer: &Timer) -> usize {
    timer.pending().places.iter().map(|place| place.count).sum()
}

#[test]
fn each_place_has_its_timers() {
    let (timer, clock) = manual();
    let start = timer.now();
    let first = line!() + 1;
    let set = |delay| timer.schedule_after(delay, || ()).expect("the timer is open");
    let key = set(secs(60));
    clock.advance(secs(10));
    set(secs(20));
    set(secs(90));
    let other = line!() + 1;
    let late = timer.schedule_at(start + HOUR, || ()).expect("the timer is open");

    let pending = timer.pending();
    assert_eq!(pending.at, start + secs(10));
    let [most, least] = &pending.places[..] else { panic!("there are two places: {pending}") };
    assert_eq!((Some(most), Some(least)), (at(&pending, first).as_ref(), at(&pending, other).as_ref()));
    assert_eq!((most.count, most.overdue, most.late), (3, 0, Duration::ZERO));
    assert_eq!((most.earliest, most.oldest), (Some(start + secs(30)), start));
    assert_eq!((least.count, least.earliest, least.oldest), (1, Some(start + HOUR), start + secs(10)));

    // A timer that moves keeps its place and its age, in its node and in another one.
    let key = timer.reschedule_after(key, secs(200)).expect("it is pending");
    timer.reschedule_after(key, secs(1)).expect("it is pending");
    timer.cancel(late);
    let pending = timer.pending();
    let most = at(&pending, first).expect("it has timers");
    assert_eq!((most.count, most.earliest, most.oldest), (3, Some(start + secs(11)), start));
    assert_eq!(at(&pending, other), None);
    clock.advance(secs(1));
    assert_eq!(
        at(&timer.pending(), first).map(|place| (place.count, place.oldest)),
        Some((2, start + secs(10)))
    );
    clock.advance(HOUR);
    assert!(timer.pending().places.is_empty());
}

#[test]
fn all_calls_that_set_timers_have_places() {
    let (timer, _clock) = manual();
    let (queue, later) = (DelayQueue::new(&timer), timer.now() + HOUR);
    let mut lines = Vec::new();
    lines.push(line!() + 1);
    timer.schedule_within(later..=later, || ()).expect("the timer is open");
    lines.push(line!() + 1);
    timer.schedule_every(HOUR, || ()).expect("the timer is open");
    lines.push(line!() + 1);
    timer.schedule_with(|at| Some(at + HOUR), || ()).expect("the timer is open");
    lines.push(line!() + 1);
    timer.schedule_repeating(HOUR, |_| ControlFlow::Continue(())).expect("the timer is open");
    lines.push(line!() + 1);
    timer.schedule_repeating_with(|at| Some(at + HOUR), |_| ControlFlow::Break(())).expect("it is open");
    lines.push(line!() + 1);
    queue.insert((), HOUR).expect("the timer is open");
    lines.push(line!() + 1);
    queue.insert_at((), later).expect("the timer is open");
    lines.push(line!() + 1);
    let mut sleep = timer.sleep(HOUR);
    lines.push(line!() + 1);
    let mut sleep_until = timer.sleep_until(later);
    lines.push(line!() + 1);
    let mut timeout = Box::pin(timer.timeout(HOUR, never()));
    lines.push(line!() + 1);
    let mut timeout_at = Box::pin(timer.timeout_at(later, never()));
    lines.push(line!() + 1);
    let mut interval = timer.interval(HOUR);
    lines.push(line!() + 1);
    let mut interval_at = timer.interval_at(later, HOUR);

    assert!(!waits(&mut pin!(interval.tick())), "the first tick comes at once");
    assert_eq!(count(&timer), 7); // a future is pending from its first poll on
    assert!(waits(&mut sleep) && waits(&mut sleep_until) && waits(&mut timeout) && waits(&mut timeout_at));
    let mut ticks = (Box::pin(interval.tick()), Box::pin(interval_at.tick()));
    assert!(waits(&mut ticks.0) && waits(&mut ticks.1));
    let pending = timer.pending();
    assert_eq!(pending.places.len(), lines.len());
    for line in lines {
        assert_eq!(at(&pending, line).map(|place| place.count), Some(1), "line {line} in\n{pending}");
    }
    drop(sleep);
    assert_eq!(count(&timer), 12);
}

/// The functions on the global timer, which other tests use too.
#[test]
fn calls_on_the_global_timer_have_places() {
    let first = line!() + 1;
    let mut sleep = shardwheel::sleep(HOUR);
    let mut sleep_until = shardwheel::sleep_until(Instant::now() + HOUR);
    let mut timeout = Box::pin(shardwheel::timeout(HOUR, never()));
    let mut timeout_at = Box::pin(shardwheel::timeout_at(Instant::now() + HOUR, never()));
    let mut interval = shardwheel::interval(HOUR);
    assert!(!waits(&mut pin!(interval.tick())), "the first tick comes at once");
    let mut interval_at = shardwheel::interval_at(Instant::now() + HOUR, HOUR);
    assert!(waits(&mut sleep) && waits(&mut sleep_until) && waits(&mut timeout) && waits(&mut timeout_at));
    let mut ticks = (Box::pin(interval.tick()), Box::pin(interval_at.tick()));
    assert!(waits(&mut ticks.0) && waits(&mut ticks.1));
    let pending = Timer::global().pending();
    for line in (first..first + 5).chain([first + 6]) {
        assert_eq!(at(&pending, line).map(|place| place.count), Some(1), "line {line} in\n{pending}");
    }
}

/// A shard that is behind: what is due and has not fired is overdue.
#[test]
fn what_is_overdue_is_late() {
    let (timer, clock) = manual();
    let start = timer.now();
    let seen = Arc::new(Mutex::new(None));
    let (note, weak) = (Arc::clone(&seen), timer.downgrade());
    timer
        .schedule_after(ms(1), move || *note.lock().unwrap() = weak.upgrade().map(|timer| timer.pending()))
        .unwrap();
    let line = line!() + 2;
    for delay in [2, 3, 100] {
        after_here(&timer, ms(delay));
    }
    clock.jump(ms(10));
    let pending = seen.lock().unwrap().take().expect("the callback has run");
    let place = at(&pending, line).expect("it has timers");
    assert_eq!((place.count, place.overdue, place.late), (3, 2, ms(8)));
    assert_eq!((pending.at, place.earliest), (start + ms(10), Some(start + ms(2))));
    let [_, row] = pending.to_string().lines().map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(words[..5], ["3", "2", "0.008", "0.000", "0.010"], "{pending}");
    assert!(words[5].contains(&format!("{}:{line}:", file!())), "{pending}");
}

#[track_caller]
fn after_here(timer: &Timer, delay: Duration) {
    timer.schedule_after(delay, || ()).expect("the timer is open");
}

#[test]
fn what_never_fires_comes_last() {
    let (timer, _clock) = manual();
    after(&timer, Duration::MAX, || ());
    let pending = timer.pending();
    assert_eq!((pending.places.len(), pending.places[0].earliest), (1, None));
    assert!(pending.to_string().contains(" inf "), "{pending}");
}

/// By a group's handle, its members alone: callbacks, those that recur, sleeps.
#[test]
fn a_group_has_its_members_alone() {
    let (timer, clock) = by_hand(Timer::builder().shards(3));
    let (group, other) = (timer.group(), timer.group());
    for handle in [&timer, &*group, &*other] {
        (0..5).for_each(|hours| _ = after(handle, HOUR * (1 + hours), || ()));
    }
    let line = line!() + 1;
    let mut sleep = group.sleep(secs(30));
    group.schedule_every(secs(20), || ()).expect("the timer is open");
    assert_eq!((count(&group), count(&timer)), (6, 16), "a sleep is pending from its first poll on");
    assert!(waits(&mut sleep));
    assert_eq!((count(&group), count(&other), count(&timer)), (7, 5, 17));
    assert_eq!(group.pending().places.iter().map(|place| place.count).sum::<usize>(), group.len());
    assert_eq!(at(&group.pending(), line).expect("the sleep is pending").count, 1);
    assert_eq!(at(&other.pending(), line), None);
    // What ends is no longer pending, also if another timer has its node now.
    clock.advance(secs(25));
    drop(sleep);
    (0..10).for_each(|_| _ = after(&timer, HOUR, || ()));
    assert_eq!((count(&group), count(&timer)), (6, 26));
    drop(group.shutdown());
    assert_eq!((count(&group), count(&timer)), (0, 20));
}

/// Threads use the same nodes in turn for timers of two places, due at different hours. A row that
/// mixed the place of one timer with the deadline of another would show. The counts are not checked:
/// a call may meet one thread's timers at several nodes, one after the other.
#[test]
fn no_row_mixes_two_timers_in_real_time() {
    let timer = threads(1);
    let (start, begin) = (timer.now(), Instant::now());
    let rows = AtomicU32::new(0);
    let goes_on = || rows.load(Ordering::Relaxed) < 10_000 && begin.elapsed() < secs(60);
    let nothing: fn() = || ();
    let first = line!() + 3;
    let work = |turn: u32| {
        let key = match turn % 2 {
            0 => timer.schedule_at(start + HOUR, nothing),
            _ => timer.schedule_at(start + 3 * HOUR, nothing),
        };
        timer.cancel(key.expect("the timer is open"));
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..).take_while(|_| goes_on()).for_each(work));
        }
        while goes_on() {
            let (pending, end) = (timer.pending(), timer.now());
            for (line, due) in [(first, start + HOUR), (first + 1, start + 3 * HOUR)] {
                let Some(place) = at(&pending, line) else { continue };
                let earliest = place.earliest.expect("it can be represented");
                assert!(earliest >= due && earliest < due + HOUR, "line {line} in\n{pending}");
                let oldest = start - ms(1)..=end;
                assert!(oldest.contains(&place.oldest), "line {line}, from {start:?}, in\n{pending}");
                rows.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert!(rows.into_inner() > 0, "the threads were never met at work");
}

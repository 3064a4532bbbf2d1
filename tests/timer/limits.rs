//! Limits, refusals, counts and keys, and when a callback is dropped.

use std::thread;

use shardwheel::{Figures, ScheduleErrorKind, Timer, TimerKey};

use crate::support::{
    Built, Count, Dropped, HOUR, Log, after, both, by_hand, is_balanced, ms, on_shard, secs, threads, until,
};

/// With a limit of two the third timer is refused, and its callback comes back. After a cancel, and
/// after a timer has fired, there is room again. Promise 5.
#[test]
fn a_timer_beyond_the_limit_is_refused_with_its_callback() {
    let (timer, clock) = by_hand(Timer::builder().max_pending(2).shards(2));
    let log = Log::new();
    let set = |delay, entry| {
        let log = log.clone();
        timer.schedule_after(ms(delay), move || log.add(entry))
    };
    let first = set(10, "first").expect("room for two");
    set(20, "second").expect("room for two");
    let refused = set(30, "third").expect_err("no room for three");
    assert_eq!(refused.kind(), ScheduleErrorKind::Full { limit: 2 });
    assert_eq!((refused.is_full(), refused.is_shut_down()), (true, false));
    refused.into_payload()();
    assert_eq!(log.take(), ["third"], "the callback comes back as it was");

    assert!(timer.cancel(first));
    set(30, "fourth").expect("one was cancelled");
    assert!(set(30, "fifth").is_err());
    clock.advance(ms(20));
    set(15, "sixth").expect("one has fired");
    clock.advance(secs(1));
    assert_eq!(log.take(), ["second", "fourth", "sixth"]);
    is_balanced(&timer);
}

/// Threads that use both shards never have more timers pending than the limit, and no cancel or
/// fire loses room. Promise 5.
#[test]
fn the_limit_is_shared_by_the_shards() {
    const LIMIT: usize = 100;
    let timer = Timer::builder().shards(2).max_pending(LIMIT).built();
    thread::scope(|scope| {
        let standing = Count::default();
        for _ in 0..4 {
            let standing = standing.clone();
            scope.spawn(|| churn(&timer, standing, LIMIT));
        }
    });
    for _ in 0..LIMIT {
        timer.schedule_after(ms(1), || ()).expect("there is room up to the limit");
    }
    until("all timers have fired", || timer.stats().pending == 0);
    let keys: Vec<_> = (0..LIMIT)
        .map(|_| timer.schedule_after(HOUR, || ()).expect("there is room up to the limit"))
        .collect();
    assert!(timer.schedule_after(HOUR, || ()).expect_err("there is no room beyond the limit").is_full());
    assert!(keys.into_iter().all(|key| timer.cancel(key)));
    is_balanced(&timer);
}

/// Schedules until the timer refuses, cancels all and begins again. `standing` counts the timers of
/// all threads.
fn churn(timer: &Timer, standing: Count, limit: usize) {
    let mut keys = Vec::new();
    for _ in 0..20_000 {
        match timer.schedule_after(HOUR, || ()) {
            Ok(key) => {
                keys.push(key);
                assert!(standing.one_more() <= limit);
            }
            Err(refused) => {
                assert_eq!(refused.kind(), ScheduleErrorKind::Full { limit });
                cancel_all(timer, &mut keys, &standing);
            }
        }
    }
    cancel_all(timer, &mut keys, &standing);
}

fn cancel_all(timer: &Timer, keys: &mut Vec<TimerKey>, standing: &Count) {
    for key in keys.drain(..) {
        // Before the cancel, which makes room for another thread.
        standing.less_one();
        assert!(timer.cancel(key));
    }
}

/// `cancel` drops the callback before it returns, a recurring one too, and one that is too large for the
/// timer's node. Promises 2 and 5.
#[test]
fn cancel_drops_the_callback_at_once() {
    for (timer, _clock) in both() {
        let dropped = Count::default();
        let held = || Dropped(dropped.clone());
        let (small, recurring, large) = (held(), held(), (held(), [7_u64; 8]));
        let keys = [
            after(&timer, HOUR, move || drop(small)),
            timer.schedule_every(HOUR, move || _ = recurring.0.get()).expect("the timer is open"),
            after(&timer, HOUR, move || drop(large)),
        ];
        for (key, count) in keys.into_iter().zip(1..) {
            assert!(timer.cancel(key));
            assert_eq!(dropped.get(), count);
        }
        is_balanced(&timer);
    }
}

/// A key of another timer names nothing here, even if that timer has fewer shards, or was made next;
/// nor does a key of a recurring timer. Promise 6.
#[test]
fn a_key_names_nothing_in_another_timer() {
    let three = || by_hand(Timer::builder().shards(3)).0;
    for (mine, other) in [(threads(1), three()), (three(), three())] {
        let set = |timer: &Timer| -> [TimerKey; 2] {
            let once = after(timer, HOUR, || ());
            [once, timer.schedule_every(HOUR, || ()).expect("the timer is open")]
        };
        let on_last =
            |timer| on_shard(timer, timer.shards() - 1, || set(timer)).unwrap_or_else(|| set(timer));
        let (ours, theirs) = (on_last(&mine), on_last(&other));
        for key in theirs {
            assert!(!mine.cancel(key));
            assert_eq!(mine.reschedule_after(key, ms(1)), None);
        }
        for key in ours {
            assert!(!other.cancel(key));
            assert_eq!(other.reschedule_after(key, ms(1)), None);
        }
        assert_eq!((mine.stats().pending, other.stats().pending), (2, 2));
        assert!(ours.into_iter().all(|key| mine.cancel(key)));
        assert!(theirs.into_iter().all(|key| other.cancel(key)));
    }
}

/// Each shard counts for itself, and the total is the sum. Promise 2.
#[test]
fn the_statistics_of_the_shards_add_up() {
    let (timer, clock) = by_hand(Timer::builder().shards(2));
    let on_second = on_shard(&timer, 1, || put_off_three(&timer));
    on_shard(&timer, 0, || put_off_three(&timer));
    let stats = timer.stats();
    assert_eq!(timer.shards(), 2);
    assert_eq!(stats.shards[1].pending, if on_second.is_some() { 3 } else { 0 });
    // Far timers come to finer wheels on the way.
    clock.advance(2 * HOUR - ms(1));
    let stats = timer.stats();
    assert_eq!(stats.pending, 6);
    assert!(
        on_second.is_none() || stats.shards.iter().all(|shard| shard.extended == 3 && shard.cascaded > 0)
    );
    let figures: [fn(&Figures) -> u64; 6] = [
        |figures| figures.pending as u64,
        |figures| figures.scheduled,
        |figures| figures.cancelled,
        |figures| figures.extended,
        |figures| figures.cascaded,
        |figures| figures.node_capacity as u64,
    ];
    for (number, figure) in figures.iter().enumerate() {
        assert_eq!(stats.shards.iter().map(figure).sum::<u64>(), figure(&stats), "figure {number}");
    }
}

fn put_off_three(timer: &Timer) {
    let keys = [(); 3].map(|()| after(timer, HOUR, || ()));
    assert!(keys.iter().all(|&key| timer.reschedule_after(key, 2 * HOUR) == Some(key)));
}

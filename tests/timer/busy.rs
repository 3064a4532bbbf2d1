//! Slow callbacks show in the statistics, and a recurring one that cannot keep up starves no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use shardwheel::{Every, Missed};

use crate::support::{HOUR, Log, after, fires, hear, is_balanced, manual, ms, threads, until};

/// On a manual clock the same figures are exact. Promise 7.
#[test]
fn backlog_and_longest_callback_are_exact_on_a_manual_clock() {
    let (timer, clock) = manual();
    let log = Log::new();
    let (entries, inner, time) = (log.clone(), timer.clone(), clock.clone());
    let slow = move || {
        let stats = inner.stats();
        entries.add((stats.backlog, stats.longest_callback));
        time.advance(ms(300));
        let stats = inner.stats();
        entries.add((stats.backlog, stats.longest_callback));
    };
    after(&timer, ms(10), slow);
    let (entries, inner) = (log.clone(), timer.clone());
    let next = move || {
        let stats = inner.stats();
        entries.add((stats.backlog, stats.longest_callback));
    };
    after(&timer, ms(50), next);
    clock.advance(ms(10));
    let zero = Duration::ZERO;
    assert_eq!(log.take(), [(zero, zero), (ms(300), zero), (ms(260), ms(300))]);
    let stats = timer.stats();
    assert_eq!((stats.longest_callback, stats.lateness.max()), (ms(300), ms(260)));
    is_balanced(&timer);
}

/// When nothing is due there is no backlog, however long ago the last timer fired. Promise 7.
#[test]
fn there_is_no_backlog_when_nothing_is_due() {
    let (timer, clock) = manual();
    assert_eq!(timer.stats().backlog, Duration::ZERO);
    after(&timer, ms(10), || ());
    after(&timer, HOUR, || ());
    clock.advance(ms(500));
    assert_eq!(timer.stats().backlog, Duration::ZERO);
    clock.advance(2 * HOUR);
    assert_eq!(timer.stats().backlog, Duration::ZERO);

    let timer = threads(1);
    fires(&timer, ms(1));
    until("the thread sleeps", || timer.stats().backlog == Duration::ZERO);
    thread::sleep(ms(50));
    assert_eq!(timer.stats().backlog, Duration::ZERO);
}

/// The lateness of each timer is counted, by its tick, over all shards: quantiles never decrease, and
/// the maximum and the sum are exact. The histogram's buckets hold each timer once, in order and without
/// overlaps. Promise 1.
#[test]
fn the_lateness_of_each_timer_is_counted_once() {
    let (timer, clock) = manual();
    let lateness = timer.stats().total.lateness;
    assert_eq!((lateness.p99(), lateness.sum(), lateness.buckets().count()), (ms(0), ms(0), 0));
    for delay in 1..=1_000 {
        after(&timer, ms(delay), || ());
    }
    clock.jump(ms(1_000));
    let lateness = timer.stats().total.lateness;
    assert_eq!(lateness.max(), ms(999));
    let quantiles = [lateness.p50(), lateness.p99(), lateness.p999(), lateness.quantile(1.0)];
    assert!(quantiles.is_sorted(), "{quantiles:?}");
    for (found, exact) in quantiles.into_iter().zip([ms(499), ms(989), ms(998), ms(999)]) {
        assert!(found >= exact && found <= (exact * 17 / 16).min(ms(999)), "{found:?} for {exact:?}");
    }
    assert_eq!(lateness.quantile(7.0), Duration::ZERO, "there is no such quantile");

    let buckets: Vec<_> = lateness.buckets().collect();
    assert!(buckets.iter().all(|bucket| bucket.count > 0 && bucket.range.start() <= bucket.range.end()));
    assert!(buckets.windows(2).all(|pair| pair[0].range.end() < pair[1].range.start()));
    assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 1_000);
    assert_eq!((lateness.count(), lateness.sum()), (1_000, ms((0..1_000).sum())));
    for late in (0..1_000).map(ms) {
        assert!(buckets.iter().any(|bucket| bucket.range.contains(&late)), "{late:?}");
    }
}

/// A recurring timer whose callback takes longer than its period leaves other timers their turns,
/// however it treats what it misses. Promise 7.
#[test]
fn a_recurring_timer_that_cannot_keep_up_starves_no_other() {
    for missed in [Missed::Burst, Missed::Skip, Missed::Delay] {
        let (timer, stop) = (threads(1), Arc::new(AtomicBool::new(false)));
        let gate = Arc::clone(&stop);
        let slow = move || {
            if !gate.load(Ordering::SeqCst) {
                thread::sleep(ms(3));
            }
        };
        let key = timer.schedule_with(Every::new(ms(1)).missed(missed), slow).expect("the timer is open");
        let (sender, receiver) = mpsc::channel();
        // All at once. In a burst, a timer waits for all that the recurring one has missed before it;
        // set in turn, each would wait several times as long as the one before.
        for delay in (5..=25).step_by(5) {
            let sender = sender.clone();
            after(&timer, ms(delay), move || sender.send(()).expect("the test waits"));
        }
        (0..5).for_each(|_| hear(&receiver));
        stop.store(true, Ordering::SeqCst);
        assert!(timer.cancel(key));
        is_balanced(&timer);
    }
}

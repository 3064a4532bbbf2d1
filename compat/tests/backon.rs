//! A retry whose pauses are on this timer, also where the timer refuses them.

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use backon::{ConstantBuilder, ExponentialBuilder, Retryable};
use common::run;
use shardwheel::Timer;
use shardwheel_compat::BackonSleeper;

const PAUSE: Duration = Duration::from_millis(30);

/// Tries until the third attempt succeeds; returns how long that took.
async fn third_time_lucky(sleeper: BackonSleeper) -> Duration {
    let attempts = AtomicU32::new(0);
    let attempt = || async {
        let attempt = attempts.fetch_add(1, Ordering::Relaxed);
        if attempt < 2 { Err("busy") } else { Ok(attempt) }
    };
    let begin = Instant::now();
    let pauses = ConstantBuilder::default().with_delay(PAUSE);
    assert_eq!(attempt.retry(pauses).sleep(sleeper).await, Ok(2));
    begin.elapsed()
}

#[test]
fn pauses_are_on_the_given_timer() {
    let timer = Timer::new().unwrap();
    let took = run(third_time_lucky(BackonSleeper::new(timer.clone())));
    assert!(took >= 2 * PAUSE, "{took:?}");
    assert_eq!(timer.stats().fired, 2);
}

#[test]
fn pauses_are_on_the_global_timer_by_default() {
    assert!(run(third_time_lucky(BackonSleeper::default())) >= 2 * PAUSE);
    assert!(Timer::global().stats().fired >= 2);
}

#[test]
fn the_last_error_comes_back_after_all_pauses() {
    let begin = Instant::now();
    let pauses = ExponentialBuilder::default().with_min_delay(PAUSE).with_max_times(2);
    let fails = || async { Err::<(), _>("busy") };
    assert_eq!(run(async { fails.retry(pauses).sleep(BackonSleeper::default()).await }), Err("busy"));
    assert!(begin.elapsed() >= 3 * PAUSE);
}

#[test]
fn a_full_timer_makes_no_pause_short_or_endless() {
    let timer = Timer::builder().max_pending(1).build().unwrap();
    timer.schedule_after(Duration::from_secs(3_600), || ()).unwrap();
    assert!(run(third_time_lucky(BackonSleeper::new(timer.clone()))) >= 2 * PAUSE);
    assert_eq!(timer.stats().pending, 1);
}

#[test]
fn neither_does_a_timer_that_is_shut_down() {
    let timer = Timer::new().unwrap();
    let sleeper = BackonSleeper::new(timer.clone());
    drop(timer.shutdown());
    assert!(run(third_time_lucky(sleeper)) >= 2 * PAUSE);
}

#[test]
fn neither_does_a_shutdown_during_the_pause() {
    run(async {
        let timer = Timer::new().unwrap();
        let retry = tokio::spawn(third_time_lucky(BackonSleeper::new(timer.clone())));
        while timer.stats().pending == 0 && timer.stats().fired == 0 {
            tokio::task::yield_now().await;
        }
        drop(timer.shutdown());
        assert!(retry.await.unwrap() >= 2 * PAUSE);
    });
}

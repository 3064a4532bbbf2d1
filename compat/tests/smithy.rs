//! The AWS SDK's sleeps and timeouts on this timer.

mod common;

use std::future;
use std::time::{Duration, Instant};

use aws_smithy_async::future::timeout::Timeout;
use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
use common::run;
use shardwheel::Timer;
use shardwheel_compat::{SmithySleep, virtual_time};

const LIMIT: Duration = Duration::from_millis(30);

#[test]
fn a_timeout_passes_or_is_not_needed() {
    run(async {
        let timer = Timer::new().unwrap();
        let sleeps = SharedAsyncSleep::new(SmithySleep::new(timer.clone()));
        let begin = Instant::now();
        assert!(Timeout::new(future::pending::<()>(), sleeps.sleep(LIMIT)).await.is_err());
        assert!(begin.elapsed() >= LIMIT);
        assert_eq!(Timeout::new(future::ready(5), sleeps.sleep(LIMIT)).await.ok(), Some(5));
        let stats = timer.stats();
        assert_eq!((stats.fired, stats.pending), (1, 0));
    });
}

#[test]
fn sleeps_are_on_the_global_timer_by_default() {
    run(async {
        let begin = Instant::now();
        SmithySleep::default().sleep(LIMIT).await;
        assert!(begin.elapsed() >= LIMIT);
        assert!(Timer::global().stats().fired >= 1);
    });
}

#[test]
fn by_virtual_time() {
    virtual_time(|clock| async move {
        let hour = Duration::from_secs(3600);
        let sleeps = SharedAsyncSleep::new(SmithySleep::default());
        let answer = async {
            sleeps.sleep(2 * hour).await;
        };
        assert!(Timeout::new(answer, sleeps.sleep(hour)).await.is_err());
        assert_eq!(clock.elapsed(), hour);
        assert!(Timeout::new(sleeps.sleep(hour), sleeps.sleep(2 * hour)).await.is_ok());
        assert_eq!(clock.elapsed(), 2 * hour);
    });
}

//! A program that was written for tokio's timers: the same text runs with ours. What differs is the imports, and what
//! the guide's page `coming_from` says about the delay queue.

/// The program. It says what it saw.
macro_rules! program {
    () => {
        pub(super) async fn run() -> Vec<&'static str> {
            let mut seen = Vec::new();
            let begin = Instant::now();

            sleep(Duration::from_millis(5)).await;
            sleep_until(begin + Duration::from_millis(10)).await;
            assert!(begin.elapsed() >= Duration::from_millis(10));
            seen.push("slept");

            let late = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
            seen.push(if late.is_err() { "late" } else { "in time" });
            let soon = timeout_at(Instant::now() + Duration::from_secs(60), async { 7 }).await;
            assert_eq!(soon.unwrap(), 7);
            let error: std::io::Error = late.unwrap_err().into();
            assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);

            let mut hours = interval(Duration::from_secs(3_600));
            assert!(hours.tick().await <= Instant::now(), "the first tick comes at once");
            let mut ticks = interval_at(Instant::now(), Duration::from_millis(2));
            for _ in 0..3 {
                assert!(ticks.tick().await <= Instant::now());
            }
            ticks.reset();
            ticks.tick().await;
            seen.push("ticked");

            // A request, a keep-alive, and an idle timeout that is put off.
            let idle = sleep(Duration::from_millis(10));
            tokio::pin!(idle);
            let mut left = 3;
            loop {
                tokio::select! {
                    _ = sleep(Duration::from_millis(1)), if left > 0 => {
                        left -= 1;
                        idle.as_mut().reset(Instant::now() + Duration::from_millis(10));
                    }
                    () = &mut idle => break,
                }
            }
            assert!(idle.is_elapsed() && left == 0);
            seen.push("idle");
            seen
        }
    };
}

mod theirs {
    use std::time::Duration;
    use tokio::time::{Instant, interval, interval_at, sleep, sleep_until, timeout, timeout_at};

    program!();
}

mod ours {
    use std::time::{Duration, Instant};

    use shardwheel::{interval, interval_at, sleep, sleep_until, timeout, timeout_at};

    program!();
}

/// The delay queue's program: ours is made on a timer, and an insert may be refused.
macro_rules! queue {
    ($queue:expr, $insert:ident => $key:expr, $expired:ident => $value:expr) => {{
        #[allow(unused_mut, reason = "as below")]
        let mut queue = $queue;
        #[allow(unused_mut, reason = "tokio's queue is changed by it")]
        let mut insert = |value, millis| {
            let $insert = queue.insert(value, Duration::from_millis(millis));
            $key
        };
        let [far, removed, first] =
            [("far", 60_000), ("removed", 60_000), ("first", 5)].map(|(v, at)| insert(v, at));
        queue.reset(&far, Duration::from_millis(10));
        queue.remove(&removed);
        let _ = first;
        let mut values = Vec::new();
        while values.len() < 2 {
            let $expired = queue.next().await.unwrap();
            values.push($value);
        }
        values
    }};
}

#[tokio::test]
async fn the_program_sees_the_same() {
    let seen = ours::run().await;
    assert_eq!(seen, theirs::run().await);
    assert_eq!(seen, ["slept", "late", "ticked", "idle"]);
}

#[tokio::test]
async fn the_delay_queue_sees_the_same() {
    use std::time::Duration;

    use futures_util::StreamExt;

    let ours = queue!(shardwheel::DelayQueue::new(shardwheel::Timer::global()),
        inserted => inserted.expect("the global timer has no bound"), expired => expired.value);
    let theirs = queue!(tokio_util::time::DelayQueue::new(), key => key, expired => expired.into_inner());
    assert_eq!(ours, theirs);
    assert_eq!(ours, ["first", "far"]);
}

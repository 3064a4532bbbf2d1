//! A program that was written for tokio's timers: the same text runs with ours. What differs is the imports, the
//! function that returns the time, and what the guide's page `coming_from` says about the delay queue.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shardwheel::{Clock, DelayQueue, ManualClock, Timer};

const SECOND: Duration = Duration::from_secs(1);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The program. It says what it saw.
macro_rules! program {
    () => {
        pub(super) async fn run() -> Vec<&'static str> {
            let mut seen = Vec::new();
            let begin = now();

            sleep(Duration::from_millis(5)).await;
            sleep_until(begin + Duration::from_millis(10)).await;
            assert!(now() - begin >= Duration::from_millis(10));
            seen.push("slept");

            let late = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
            seen.push(if late.is_err() { "late" } else { "in time" });
            let soon = timeout_at(now() + Duration::from_secs(60), async { 7 }).await;
            assert_eq!(soon.unwrap(), 7);
            let error: std::io::Error = late.unwrap_err().into();
            assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);

            let mut hours = interval(Duration::from_secs(3_600));
            assert!(hours.tick().await <= now(), "the first tick comes at once");
            let mut ticks = interval_at(now(), Duration::from_millis(2));
            for _ in 0..3 {
                assert!(ticks.tick().await <= now());
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
                        idle.as_mut().reset(now() + Duration::from_millis(10));
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

    fn now() -> Instant {
        Instant::now()
    }

    program!();
}

mod ours {
    use std::time::Duration;

    use shardwheel::{interval, interval_at, now, sleep, sleep_until, timeout, timeout_at};

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
    use futures_util::StreamExt;

    let ours = queue!(shardwheel::DelayQueue::new(shardwheel::Timer::global()),
        inserted => inserted.expect("the global timer has no bound"), expired => expired.value);
    let theirs = queue!(tokio_util::time::DelayQueue::new(), key => key, expired => expired.into_inner());
    assert_eq!(ours, theirs);
    assert_eq!(ours, ["first", "far"]);
}

fn poll<F: Future + Unpin>(mut future: F) -> Poll<F::Output> {
    Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()))
}

/// What the guide says of ours.
#[test]
fn our_delay_queue_does_what_the_guide_says() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    clock.advance(SECOND);
    let queue = DelayQueue::new(&timer);
    assert!(poll(std::pin::pin!(queue.next())).is_pending(), "empty, it waits");
    let past = clock.now() - SECOND / 2;
    queue.insert_at("past", past).unwrap();
    let moved = queue.insert("moved", 60 * SECOND).unwrap();
    assert!(queue.reset_at(&moved, past) && queue.try_recv().is_none(), "at the next tick");
    clock.advance(SECOND / 1000);
    // Expired values are not among those that wait, but they count.
    assert_eq!((queue.iter().len(), queue.len(), queue.is_empty()), (0, 2, false));
    assert!(!queue.reset(&moved, SECOND) && queue.remove(&moved).is_none());
    let mut expired: Vec<_> =
        std::iter::from_fn(|| queue.try_recv()).map(|it| (it.value, it.deadline)).collect();
    expired.sort_by_key(|(value, _)| *value);
    assert_eq!(expired, [("moved", past), ("past", past)]);

    let never = queue.insert("never", Duration::MAX).unwrap();
    let far = queue.insert("far", 500 * YEAR).unwrap();
    let shown = |key| queue.iter().find(|(shown, _)| *shown == key).map(|(_, due)| due);
    assert_eq!((shown(never), shown(far)), (Some(None), Some(Some(clock.now() + 500 * YEAR))));
    clock.advance(Duration::MAX);
    assert_eq!(queue.try_recv().map(|it| it.value), Some("far"));
    assert_eq!((queue.try_recv().map(|it| it.value), queue.remove(&never)), (None, Some("never")));
}

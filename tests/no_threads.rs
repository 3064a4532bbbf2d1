//! What works on one thread, without mappings and without a clock: everything that WebAssembly has.
//! `.ci/run portable` runs these tests there.

use std::collections::HashMap;

use shardwheel::{Config, Key, Scheduler, shard};

/// More than several segments hold, so that memory is asked for and given back.
const TIMERS: u64 = 100_000;

/// A deadline for each number, spread over three hours of milliseconds.
fn deadline(number: u64) -> u64 {
    1 + number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 10_000_000
}

fn place(scheduler: &Scheduler<u64>) -> HashMap<u64, Key> {
    (0..TIMERS).map(|number| (number, scheduler.schedule(deadline(number), number).unwrap())).collect()
}

#[test]
fn each_timer_has_one_outcome() {
    let (scheduler, mut advancer) = shard(&Config::default());
    let mut pending = place(&scheduler);
    for number in (0..TIMERS).step_by(3) {
        let key = pending.remove(&number).unwrap();
        assert_eq!(scheduler.cancel(key), Some(number));
        assert_eq!(scheduler.cancel(key), None);
    }
    assert_eq!(scheduler.len(), pending.len());
    let mut last = 0;
    while let Some(now) = advancer.next_expiration() {
        for fired in advancer.advance(now) {
            assert_eq!(fired.deadline, deadline(fired.payload));
            assert!((last + 1..=now).contains(&fired.deadline), "{} fired at {now}", fired.deadline);
            assert!(pending.remove(&fired.payload).is_some());
        }
        last = now;
    }
    assert!(pending.is_empty() && scheduler.is_empty());
}

#[test]
fn memory_is_given_back_after_a_burst() {
    let (scheduler, mut advancer) = shard(&Config::default());
    place(&scheduler);
    let most = scheduler.stats().node_capacity;
    assert_eq!(advancer.advance(20_000_000).count() as u64, TIMERS);
    for now in 20_000_001..20_010_000 {
        assert_eq!(advancer.advance(now).count(), 0);
    }
    let left = scheduler.stats().node_capacity;
    assert!(left < most / 2 || left <= 65_536, "{left} of {most} nodes are left");
}

#[test]
fn payloads_may_be_large_and_aligned() {
    #[derive(Debug, PartialEq, Clone)]
    #[repr(align(256))]
    struct Wide([u8; 300]);
    let (scheduler, mut advancer) = shard(&Config::default());
    let payloads: Vec<_> = (0..200).map(|number| Wide([number; 300])).collect();
    for (payload, deadline) in payloads.iter().zip(1..) {
        scheduler.schedule(deadline, payload.clone()).unwrap();
    }
    let fired: Vec<_> = advancer.advance(200).map(|fired| fired.payload).collect();
    assert_eq!(fired, payloads);
}

#[test]
fn what_is_pending_at_the_end_comes_back() {
    let (scheduler, advancer) = shard(&Config::default());
    place(&scheduler);
    let mut left: Vec<_> = advancer.into_pending().collect();
    left.sort_by_key(|&(_, number)| number);
    assert!(left.into_iter().eq((0..TIMERS).map(|number| (deadline(number), number))));
    assert!(scheduler.schedule(1, 1).unwrap_err().is_shut_down());
}

#[cfg(all(feature = "timer", target_family = "wasm", not(target_feature = "atomics")))]
#[test]
fn a_timer_says_that_there_are_no_threads() {
    use std::error::Error;
    use std::io::ErrorKind;

    use shardwheel::{BuildError, Timer};

    let error = Timer::try_global().map(|_| ()).unwrap_err();
    assert!(error.source().unwrap().to_string().starts_with("this platform has no threads"), "{error:?}");
    let Err(BuildError::Spawn { shard: 0, error }) = Timer::new() else { panic!("it has no threads") };
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

/// In a browser the standard library has no clock from which a manual clock could start.
#[cfg(all(feature = "timer", not(all(target_family = "wasm", target_os = "unknown"))))]
mod manual {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use shardwheel::{ManualClock, Timer};

    const SECOND: Duration = Duration::from_secs(1);

    fn timer() -> (ManualClock, Timer) {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).build().unwrap();
        (clock, timer)
    }

    #[test]
    fn callbacks_and_sleeps_come_by_the_clock() {
        let (clock, timer) = timer();
        let called = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&called);
        // Ordering: Relaxed, one thread.
        timer.schedule_every(SECOND, move || _ = count.fetch_add(1, Ordering::Relaxed)).unwrap();
        let (mut sleep, mut context) = (pin!(timer.sleep(3 * SECOND)), Context::from_waker(Waker::noop()));
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        clock.advance(2 * SECOND);
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        clock.advance(2 * SECOND);
        assert_eq!(sleep.as_mut().poll(&mut context), Poll::Ready(Ok(())));
        // Ordering: Relaxed, one thread.
        assert!((3..=4).contains(&called.load(Ordering::Relaxed)));
    }

    #[test]
    fn a_driver_runs_what_is_due() {
        let clock = ManualClock::new();
        let (timer, mut driver) = Timer::builder().clock(clock.clone()).build_driven().unwrap();
        let called = Arc::new(AtomicU32::new(0));
        for delay in [1, 2, 4] {
            let count = Arc::clone(&called);
            // Ordering: Relaxed, one thread.
            timer.schedule_after(delay * SECOND, move || _ = count.fetch_add(1, Ordering::Relaxed)).unwrap();
        }
        let mut sleep = pin!(timer.sleep(3 * SECOND));
        let mut context = Context::from_waker(Waker::noop());
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        clock.advance(3 * SECOND + SECOND / 2);
        assert_eq!(driver.turn(), 3);
        // Ordering: Relaxed, one thread.
        assert_eq!(called.load(Ordering::Relaxed), 2);
        assert_eq!(sleep.as_mut().poll(&mut context), Poll::Ready(Ok(())));
        assert_eq!(timer.shutdown().count(), 1);
    }

    #[test]
    fn a_shutdown_returns_what_is_pending() {
        let (clock, timer) = timer();
        timer.schedule_after(SECOND, || ()).unwrap();
        timer.schedule_after(3 * SECOND, || ()).unwrap();
        clock.advance(2 * SECOND);
        assert_eq!(timer.shutdown().count(), 1);
        assert!(timer.schedule_after(SECOND, || ()).unwrap_err().is_shut_down());
    }
}

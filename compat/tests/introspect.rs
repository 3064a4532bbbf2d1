//! The places that `Timer::pending` names for what goes through this crate: lines of the program.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::run;
use shardwheel::Timer;
use shardwheel_compat::{BackonSleeper, ExpiringMap, HyperTimer, SmithySleep, TimeoutLayer, TimerMetrics};

const HOUR: Duration = Duration::from_secs(3600);

/// The lines of this file that have set the pending timers.
fn lines(timer: &Timer) -> Vec<u32> {
    let places = timer.pending().places;
    let mut lines: Vec<_> = places
        .iter()
        .map(|pending| {
            let place = pending.place.expect("there is room for a few places");
            assert_eq!(place.file(), file!(), "{places:?}");
            place.line()
        })
        .collect();
    lines.sort_unstable();
    lines
}

/// Polls a future once, and keeps it.
fn start<F: Future>(future: F) -> std::pin::Pin<Box<F>> {
    let mut future = Box::pin(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
    future
}

#[test]
fn a_map_and_a_report_are_named_by_their_calls() {
    let timer = Timer::new().unwrap();
    let map = ExpiringMap::new(&timer, 10, |_, _: u8, _: Arc<u8>| ());
    let first = line!() + 1;
    map.insert(1, 1, HOUR).unwrap();
    TimerMetrics::new().every(HOUR, &timer).unwrap();
    assert_eq!(lines(&timer), [first, first + 1]);
}

#[test]
fn sleeps_of_a_library_are_named_by_the_place_where_its_timer_was_made() {
    use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
    use backon::Sleeper;
    use hyper::rt::Timer as _;
    let timer = Timer::new().unwrap();
    let first = line!() + 1;
    let hyper = HyperTimer::new(timer.clone());
    let backon = BackonSleeper::new(timer.clone());
    let smithy = SharedAsyncSleep::new(SmithySleep::new(timer.clone()));
    let _pending = (
        start(hyper.sleep(HOUR)),
        start(hyper.sleep_until(Instant::now() + HOUR)),
        start(backon.sleep(HOUR)),
        start(smithy.sleep(HOUR)),
    );
    assert_eq!(lines(&timer), [first, first + 1, first + 2]);
}

/// Also an adapter on the global timer, by its `Default`.
#[test]
fn a_default_adapter_is_named_by_its_call() {
    use hyper::rt::Timer as _;
    let clock = shardwheel::ManualClock::new();
    let ((), _waiting) = clock.scope(|| {
        let first = line!() + 1;
        let hyper = HyperTimer::default();
        let _pending = start(hyper.sleep(HOUR));
        assert_eq!(lines(Timer::global()), [first]);
    });
}

#[test]
fn the_limits_of_a_layer_are_named_by_the_place_where_it_was_made() {
    use tower::{ServiceBuilder, ServiceExt};
    run(async {
        let timer = Timer::new().unwrap();
        let first = line!() + 1;
        let layer = TimeoutLayer::new(HOUR).with_timer(timer.clone());
        let never = |()| std::future::pending::<Result<(), shardwheel_compat::tower::BoxError>>();
        let service = ServiceBuilder::new().layer(layer).service_fn(never);
        let _waits = start(service.oneshot(()));
        assert_eq!(lines(&timer), [first]);
    });
}

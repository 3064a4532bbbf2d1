//! tower's services, and axum's routes, with time limits on this timer.

mod common;

use std::future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::http::StatusCode;
use axum::routing;
use common::{eventually, get, run};
use shardwheel::{Deadline, ManualClock, TimeoutError, Timer};
use shardwheel_compat::tower::{BoxError, Elapsed};
use shardwheel_compat::{Timeout, TimeoutLayer};
use tokio::net::TcpListener;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

const LIMIT: Duration = Duration::from_millis(200);

async fn late(error: BoxError) -> (StatusCode, String) {
    let status = if error.is::<Elapsed>() { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::BAD_GATEWAY };
    (status, error.to_string())
}

/// Serves a route that answers and one that never does.
async fn serve(timer: &Timer) -> SocketAddr {
    let limit = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(late))
        .layer(TimeoutLayer::new(LIMIT).with_timer(timer.clone()));
    let app = Router::new()
        .route("/fast", routing::get(async || "hello"))
        .route("/slow", routing::get(future::pending::<&str>))
        .layer(limit);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, app).await });
    address
}

#[test]
fn a_route_of_axum_answers_in_time_or_gives_up() {
    run(async {
        let timer = Timer::new().unwrap();
        let address = serve(&timer).await;
        for _ in 0..2 {
            let begin = Instant::now();
            let (fast, slow) = tokio::join!(get(address, "/fast"), get(address, "/slow"));
            assert!(fast.starts_with("HTTP/1.1 200") && fast.ends_with("hello"), "{fast}");
            assert!(slow.starts_with("HTTP/1.1 504") && slow.ends_with("limit of 200ms"), "{slow}");
            assert!(begin.elapsed() >= LIMIT);
        }
        assert!(timer.stats().fired >= 2);
        eventually("nothing is left of the requests", || timer.stats().pending == 0);
    });
}

#[test]
fn each_request_has_its_own_limit() {
    run(async {
        let service = Timeout::new(service_fn(|()| future::pending::<Result<(), BoxError>>()), LIMIT);
        let ask = async || {
            let begin = Instant::now();
            (service.clone().oneshot(()).await.unwrap_err(), begin.elapsed())
        };
        let later = async || {
            shardwheel::sleep(LIMIT / 2).await;
            ask().await
        };
        let (first, second) = tokio::join!(ask(), later());
        for (error, took) in [first, second] {
            assert_eq!(error.downcast_ref::<Elapsed>().map(Elapsed::limit), Some(LIMIT));
            assert!(took >= LIMIT);
        }
    });
}

#[test]
fn an_error_of_the_service_stays_what_it_is() {
    run(async {
        let fails = service_fn(|()| future::ready(Err::<(), _>("not today")));
        let error = Timeout::new(fails, LIMIT).oneshot(()).await.unwrap_err();
        assert_eq!(error.to_string(), "not today");
    });
}

/// Every 128th sleep that is over is pending for a moment, so that its task gives way to others.
#[test]
fn a_response_that_gives_way_to_others_does_not_time_out() {
    run(async {
        for _ in 0..1_000 {
            let answers = service_fn(|()| async {
                shardwheel::sleep(Duration::ZERO).await;
                Ok::<_, BoxError>(5)
            });
            assert_eq!(Timeout::new(answers, Duration::from_nanos(1)).oneshot(()).await.unwrap(), 5);
        }
    });
}

#[test]
fn a_response_that_is_ready_is_returned_however_short_the_limit_is() {
    run(async {
        let answers = service_fn(|()| future::ready(Ok::<_, BoxError>(5)));
        assert_eq!(Timeout::new(answers, Duration::ZERO).oneshot(()).await.unwrap(), 5);
    });
}

/// The deadline of a request is that of all that is called for it: within a layer, the inner layers'
/// limits and the timeouts of the service end with the outer layer's.
#[test]
fn what_a_service_calls_inherits_the_limit() {
    run(async {
        let inner = service_fn(|()| async {
            let limited = shardwheel::timeout(Duration::from_secs(600), future::pending::<()>()).await;
            Ok::<_, BoxError>((limited.is_err(), Deadline::current().is_some()))
        });
        let service = ServiceBuilder::new()
            .layer(TimeoutLayer::new(LIMIT * 50))
            .layer(TimeoutLayer::new(LIMIT))
            .layer(TimeoutLayer::new(LIMIT * 100))
            .service(inner);
        let begin = Instant::now();
        assert_eq!(service.oneshot(()).await.unwrap(), (true, true));
        assert!((LIMIT..LIMIT * 40).contains(&begin.elapsed()));
        assert_eq!(Deadline::current(), None);
    });
}

#[test]
fn a_request_inherits_the_deadline_of_its_scope() {
    run(async {
        let service = Timeout::new(service_fn(|()| future::pending::<Result<(), BoxError>>()), LIMIT * 1_000);
        let begin = Instant::now();
        let error = Deadline::after(LIMIT).scope(service.oneshot(())).await.unwrap_err();
        assert!(error.downcast_ref::<Elapsed>().is_some_and(|elapsed| elapsed.limit() <= LIMIT));
        assert!((LIMIT..LIMIT * 40).contains(&begin.elapsed()));
    });
}

/// A service that counts its calls.
fn counting(calls: &Arc<AtomicU32>) -> impl Service<(), Response = (), Error = BoxError> + use<> {
    let calls = Arc::clone(calls);
    service_fn(move |()| {
        calls.fetch_add(1, Ordering::Relaxed);
        future::ready(Err::<(), _>(BoxError::from("busy")))
    })
}

#[test]
fn a_deadline_that_has_passed_is_answered_without_a_call() {
    run(async {
        let calls = Arc::new(AtomicU32::new(0));
        let mut service = Timeout::new(counting(&calls), LIMIT);
        let attempts = async {
            for _ in 0..260 {
                let error = service.ready().await.unwrap().call(()).await.unwrap_err();
                assert!(error.is::<Elapsed>(), "{error}");
            }
        };
        Deadline::after(Duration::ZERO).scope(attempts).await;
        assert_eq!(calls.load(Ordering::Relaxed), 0);
    });
}

/// The deadline is that of the layer's timer for what goes by its clock, and for all else as far
/// away as by that clock.
#[test]
fn the_deadline_is_handed_on_by_the_clock_of_its_reader() {
    let (clock, limit) = (ManualClock::new(), Duration::from_secs(5));
    clock.advance(Duration::from_secs(3_600));
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    let [own, sibling] = [timer.clone(), Timer::builder().clock(clock.clone()).build().unwrap()];
    let inner = service_fn(move |()| {
        let timers = [own.clone(), sibling.clone()];
        let left = Deadline::current().unwrap().remaining();
        let global = shardwheel::timeout(Duration::from_secs(600), future::ready(())); // made in the call
        async move {
            let own = timers.map(|timer| timer.timeout(Duration::from_secs(600), future::pending::<()>()));
            let [first, second] = own;
            global.await?;
            let inner = Deadline::current().unwrap().remaining();
            Ok::<_, BoxError>((left, inner, first.await.is_err(), second.await.is_err()))
        }
    });
    let service = TimeoutLayer::new(limit).with_timer(timer).layer(inner);
    let answer = clock.run_until_stalled(service.oneshot(())).unwrap();
    let (left, inner, first, second) = answer.unwrap();
    assert!(left <= limit && inner <= limit, "{left:?} {inner:?}");
    assert!(left > limit / 2 && first && second, "{left:?}");
    assert_eq!(clock.elapsed(), Duration::from_secs(3_605));
}

#[test]
fn a_layer_on_the_timer_of_a_group_outlives_the_group() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    let group = timer.group();
    let layer = TimeoutLayer::new(LIMIT).with_timer(Timer::clone(&group));
    drop(group);
    let service = layer.layer(service_fn(|()| future::pending::<Result<(), BoxError>>()));
    let answer = clock.run_until_stalled(service.oneshot(())).expect("it ends by the timer's clock");
    assert!(answer.unwrap_err().is::<Elapsed>());
    assert_eq!((clock.elapsed(), timer.stats().pending), (LIMIT, 0));
}

/// A limit of the service that is longer than the layer's ends with it. The service answers then,
/// also if its own timer has not fired yet: here nothing ever fires it.
#[test]
fn a_service_whose_limit_ends_with_the_deadline_answers() {
    run(async {
        let (late, _driver) = Timer::builder().build_driven().unwrap();
        let own = late.clone();
        let inner = service_fn(move |()| {
            let own = own.timeout(LIMIT * 1_000, future::pending::<()>());
            async {
                assert_eq!(own.await, Err(TimeoutError::Elapsed));
                Err::<(), _>(BoxError::from("the service's own answer"))
            }
        });
        let error = Timeout::new(inner, LIMIT).oneshot(()).await.unwrap_err();
        assert_eq!(error.to_string(), "the service's own answer");
    });
}

#[cfg(feature = "http")]
mod headers {
    use axum::http::Request;
    use shardwheel_compat::tower::{HTTP_HEADER, Headers};

    use super::*;

    /// The value of the header that the inner service gets from a layer of one minute.
    fn handed_over(headers: Headers, sent: Option<&str>) -> String {
        let name = match headers {
            Headers::Grpc => Deadline::GRPC_HEADER,
            Headers::Http => HTTP_HEADER,
        };
        let service = ServiceBuilder::new()
            .layer(TimeoutLayer::new(Duration::from_secs(60)).headers(headers))
            .service_fn(move |request: Request<()>| {
                let value = request.headers()[name].to_str().map(str::to_owned);
                future::ready(value.map_err(BoxError::from))
            });
        let request = sent.into_iter().fold(Request::builder(), |request, sent| request.header(name, sent));
        let clock = ManualClock::new();
        let answer = service.oneshot(request.body(()).unwrap());
        clock.scope(|| clock.run_until_stalled(answer)).0.unwrap().unwrap()
    }

    #[test]
    fn what_is_left_is_handed_over() {
        for (sent, handed) in [
            (None, "60000000u"),
            (Some("5S"), "5000000u"),
            (Some("2H"), "60000000u"),
            (Some("five"), "60000000u"),
            (Some(""), "60000000u"),
        ] {
            assert_eq!(handed_over(Headers::Grpc, sent), handed, "{sent:?}");
        }
        for (sent, handed) in [
            (None, "60000"),
            (Some("250"), "250"),
            (Some("90000"), "60000"),
            (Some("0"), "60000"), // no limit, says Envoy
            (Some("5S"), "60000"),
            (Some("+5"), "60000"),
            (Some("99999999999999999999"), "60000"),
        ] {
            assert_eq!(handed_over(Headers::Http, sent), handed, "{sent:?}");
        }
    }

    #[test]
    fn a_header_whose_time_has_passed_is_answered_without_a_call() {
        run(async {
            let service =
                ServiceBuilder::new().layer(TimeoutLayer::new(LIMIT).headers(Headers::Grpc)).service_fn(
                    |_: Request<()>| -> future::Ready<Result<(), BoxError>> { unreachable!("it is called") },
                );
            let request = Request::builder().header("grpc-timeout", "0m").body(()).unwrap();
            assert!(service.oneshot(request).await.unwrap_err().is::<Elapsed>());
        });
    }

    /// The timer's slack is on top of the layer's own limit, not of what the caller grants.
    #[test]
    fn slack_does_not_prolong_what_is_inherited() {
        for (sent, took) in [(Some("100m"), 100), (None, 65_536)] {
            let clock = ManualClock::new();
            let slack = Duration::from_secs(10);
            let timer = shardwheel::Timer::builder().clock(clock.clone()).slack(slack).build().unwrap();
            let service = ServiceBuilder::new()
                .layer(
                    TimeoutLayer::new(Duration::from_secs(60))
                        .with_timer(timer.clone())
                        .headers(Headers::Grpc),
                )
                .service_fn(|_: Request<()>| future::pending::<Result<(), BoxError>>());
            let request =
                sent.into_iter().fold(Request::builder(), |to, sent| to.header("grpc-timeout", sent));
            let request = request.body(()).unwrap();
            clock.scope(|| clock.run_until_stalled(service.oneshot(request))).0.unwrap().unwrap_err();
            assert_eq!(clock.elapsed(), Duration::from_millis(took), "{sent:?}");
        }
    }
}

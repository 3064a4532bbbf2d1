//! A hyper server whose header timeouts are on this timer.

mod common;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use common::{eventually, get, run, within};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::rt::{self, Timer as _};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use shardwheel::{ManualClock, Timer};
use shardwheel_compat::{HyperTimer, Sleep};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Idle connections.
const CROWD: usize = 300;

const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_secs(2);

async fn answer(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello")))
}

/// Serves with `limit` for each request's header.
async fn serve(timer: HyperTimer, limit: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut server = http1::Builder::new();
            server.timer(timer.clone()).header_read_timeout(limit);
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    });
    address
}

/// Sends a request and reads the response; the connection stays open.
async fn ask(stream: &mut TcpStream) {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n").await.unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"hello") {
        assert_ne!(stream.read_buf(&mut response).await.unwrap(), 0, "closed");
    }
    assert!(response.starts_with(b"HTTP/1.1 200"));
}

/// Begins a header, and returns how long the server waited for the rest.
async fn dawdle(address: SocketAddr) -> Duration {
    let begin = Instant::now();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nho").await.unwrap();
    let mut response = Vec::new();
    within(stream.read_to_end(&mut response)).await.unwrap();
    assert!(!response.ends_with(b"hello"));
    begin.elapsed()
}

#[test]
fn slow_headers_are_closed_on_time_beside_a_crowd_of_idle_connections() {
    run(async {
        let timer = Timer::new().unwrap();
        let hyper_timer = HyperTimer::new(timer.clone());
        let (patient, strict) =
            (serve(hyper_timer.clone(), LONG).await, serve(hyper_timer.clone(), SHORT).await);
        let mut crowd = Vec::new();
        for _ in 0..CROWD {
            crowd.push(TcpStream::connect(patient).await.unwrap());
            ask(crowd.last_mut().unwrap()).await;
        }
        eventually("a timeout for each idle connection", || timer.stats().pending >= CROWD);

        let slow: JoinSet<_> = (0..50).map(|_| dawdle(strict)).collect();
        for stream in &mut crowd {
            ask(stream).await;
        }
        for _ in 0..100 {
            assert!(get(strict, "/").await.ends_with("hello"));
        }
        for waited in slow.join_all().await {
            assert!(waited >= SHORT, "closed after {waited:?}");
        }
        let stats = timer.stats();
        assert!(stats.fired >= 50 && stats.pending >= CROWD, "{stats:?}");

        drop(crowd);
        eventually("no timeouts without connections", || timer.stats().pending == 0);
    });
}

/// The clock is an hour ahead of the system's. A header's time is that of the clock's scope, by
/// which hyper computes deadlines and sleeps.
#[test]
fn in_a_scope_a_header_has_its_time_by_the_clock() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    let ((), _) = clock.scope(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(within(async {
            let address = serve(HyperTimer::default(), LONG).await;
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nho").await.unwrap();
            // The server reads the half and waits for the rest.
            let closed = tokio::time::timeout(Duration::from_millis(100), stream.read_u8()).await;
            assert!(closed.is_err(), "closed at once");
            while Timer::global().stats().pending == 0 {
                tokio::task::yield_now().await;
            }
            clock.advance(LONG - Duration::from_millis(1));
            stream.write_all(b"st: test\r\n\r\n").await.unwrap();
            let mut response = Vec::new();
            while !response.ends_with(b"hello") {
                assert_ne!(stream.read_buf(&mut response).await.unwrap(), 0, "closed");
            }
            // The next header has the same time, and then the server closes.
            ask(&mut stream).await;
            let mut rest = Vec::new();
            let mut end = pin!(stream.read_to_end(&mut rest));
            let begin = shardwheel::now();
            while tokio::time::timeout(Duration::from_millis(5), &mut end).await.is_err() {
                clock.advance(LONG / 10);
            }
            assert!(shardwheel::now() - begin >= LONG, "closed after {:?}", shardwheel::now() - begin);
        }));
    });
}

/// The own timer's clock is an hour ahead, and refuses: the sleep goes on by the system's clock, for
/// as long as it was to take, and so does a reset.
#[test]
fn a_sleep_that_another_clock_has_refused_takes_no_longer() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    let timer = Timer::builder().clock(clock).build().unwrap();
    let hyper_timer = HyperTimer::new(timer.clone());
    drop(timer.shutdown());
    let mut sleep = hyper_timer.sleep_until(hyper_timer.now() + LONG);
    let left = |sleep: &mut Pin<Box<dyn rt::Sleep>>| {
        assert!(poll(sleep).is_pending());
        sleep.as_mut().downcast_mut_pin::<Sleep>().unwrap().deadline().unwrap() - Instant::now()
    };
    let first = left(&mut sleep);
    hyper_timer.reset(&mut sleep, hyper_timer.now() + 2 * LONG);
    let second = left(&mut sleep);
    assert!(first <= LONG && second <= 2 * LONG, "{first:?}, {second:?}");
    hyper_timer.reset(&mut sleep, hyper_timer.now());
    assert!(poll(&mut sleep).is_ready());
}

fn poll(sleep: &mut Pin<Box<dyn rt::Sleep>>) -> Poll<()> {
    sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_reset_keeps_the_box_and_the_node() {
    let timer = Timer::new().unwrap();
    let hyper_timer = HyperTimer::new(timer.clone());
    let mut sleep = hyper_timer.sleep(LONG);
    assert!(poll(&mut sleep).is_pending());
    let place = std::ptr::from_ref(&*sleep).addr();

    hyper_timer.reset(&mut sleep, hyper_timer.now() + 2 * LONG);
    assert!(poll(&mut sleep).is_pending());
    assert_eq!(std::ptr::from_ref(&*sleep).addr(), place);
    let stats = timer.stats();
    assert_eq!((stats.scheduled, stats.extended, stats.pending), (1, 1, 1));

    hyper_timer.reset(&mut sleep, hyper_timer.now());
    assert!(poll(&mut sleep).is_ready());
}

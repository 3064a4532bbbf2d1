//! A QUIC echo server and a client whose timers are on this timer.

#[path = "../common/mod.rs"]
mod common;

use std::future::poll_fn;
use std::net::{Ipv4Addr, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use common::{run, within};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, Runtime, ServerConfig, TokioRuntime,
    TransportConfig,
};
use shardwheel::{Clock, ManualClock, Timer};
use shardwheel_compat::{QuinnRuntime, virtual_time};

const IDLE: Duration = Duration::from_secs(2);

fn endpoint(runtime: QuinnRuntime, server: Option<ServerConfig>) -> Endpoint {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(runtime)).unwrap()
}

/// Connections end when they have been idle for two seconds, unless they are kept alive.
fn transport(keep_alive: Option<Duration>) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IDLE.try_into().unwrap())).keep_alive_interval(keep_alive);
    Arc::new(transport)
}

/// Echoes all streams of all connections.
async fn echo(server: Endpoint) {
    while let Some(incoming) = server.accept().await {
        tokio::spawn(async move {
            let connection = incoming.await.unwrap();
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                send.write_all(&receive.read_to_end(1_000).await.unwrap()).await.unwrap();
                send.finish().unwrap();
            }
        });
    }
}

/// A certificate of `localhost`, signed by itself, with its key: for these tests alone, and for a hundred years. It was made
/// by `openssl req -x509 -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE`.
const CERTIFICATE: &[u8] = include_bytes!("certificate.der");
const KEY: &[u8] = include_bytes!("key.der");

/// A connection to an echo server; both ends use `runtime`.
async fn connect(runtime: QuinnRuntime, keep_alive: Option<Duration>) -> Connection {
    let (certificate, key) = (CertificateDer::from(CERTIFICATE), PrivatePkcs8KeyDer::from(KEY).into());
    let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key).unwrap();
    server.transport_config(transport(None));
    let server = endpoint(runtime.clone(), Some(server));
    let address = server.local_addr().unwrap();
    tokio::spawn(echo(server));

    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    client.transport_config(transport(keep_alive));
    endpoint(runtime, None).connect_with(client, address, "localhost").unwrap().await.unwrap()
}

async fn exchange(connection: &Connection) {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(b"hello").await.unwrap();
    send.finish().unwrap();
    assert_eq!(receive.read_to_end(1_000).await.unwrap(), b"hello");
}

#[test]
fn an_idle_connection_ends_on_time() {
    run(async {
        let timer = Timer::new().unwrap();
        let runtime = QuinnRuntime::new(timer.clone()).with_runtime(Arc::new(TokioRuntime));
        let connection = connect(runtime, None).await;
        let begin = Instant::now();
        exchange(&connection).await;
        assert_eq!(within(connection.closed()).await, ConnectionError::TimedOut);
        assert!(begin.elapsed() >= IDLE);
        let stats = timer.stats();
        assert!(stats.scheduled > 0 && stats.fired > 0, "{stats:?}");
    });
}

#[test]
fn a_connection_that_is_kept_alive_outlives_the_timeout() {
    run(async {
        // On quinn's default runtime and the global timer.
        let connection = connect(QuinnRuntime::default(), Some(IDLE / 10)).await;
        exchange(&connection).await;
        shardwheel::sleep(2 * IDLE).await;
        assert_eq!(connection.close_reason(), None);
        exchange(&connection).await;
    });
}

/// The clock is an hour ahead of the system's: quinn's time is the clock's, as its timers are.
#[test]
fn in_a_scope_a_connection_ends_by_the_clock() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    let ((), _) = clock.scope(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(within(async {
            assert_eq!(QuinnRuntime::default().now(), clock.now());
            let connection = connect(QuinnRuntime::default(), None).await;
            exchange(&connection).await;
            let begin = clock.now();
            let mut closed = pin!(connection.closed());
            // It does not end by the system's clock.
            assert!(tokio::time::timeout(IDLE + IDLE / 4, &mut closed).await.is_err());
            while tokio::time::timeout(Duration::from_millis(5), &mut closed).await.is_err() {
                clock.advance(IDLE / 20);
            }
            assert!(clock.now() - begin >= IDLE, "closed after {:?}", clock.now() - begin);
        }));
    });
}

/// An idle connection ends by the clock, in no time; pings keep one for minutes.
#[test]
fn by_virtual_time() {
    virtual_time(|clock| async move {
        for keep_alive in [None, Some(IDLE / 2)] {
            let connection = connect(QuinnRuntime::default(), keep_alive).await;
            exchange(&connection).await;
            let begin = clock.elapsed();
            let limit = Duration::from_secs(300);
            let closed = shardwheel::timeout(limit, connection.closed()).await;
            let spent = clock.elapsed() - begin;
            match keep_alive {
                None => assert_eq!(closed, Ok(ConnectionError::TimedOut)),
                Some(_) => assert!(closed.is_err() && connection.close_reason().is_none()),
            }
            let expected = if keep_alive.is_some() { limit..=limit } else { IDLE..=3 * IDLE };
            assert!(expected.contains(&spent), "{spent:?}");
        }
    });
}

/// The own timer's clock is an hour ahead, and refuses: quinn's resets go on by the system's clock.
#[test]
fn a_timer_that_another_clock_has_refused_takes_no_longer() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    let timer = Timer::builder().clock(clock).build().unwrap();
    let runtime = QuinnRuntime::new(timer.clone());
    drop(timer.shutdown());
    let begin = Instant::now();
    let mut alarm = runtime.new_timer(runtime.now() + IDLE);
    let mut context = Context::from_waker(Waker::noop());
    assert!(alarm.as_mut().poll(&mut context).is_pending());
    alarm.as_mut().reset(runtime.now() + IDLE / 20);
    // By the deadline as it is, that would take an hour.
    run(poll_fn(|context| alarm.as_mut().poll(context)));
    assert!(begin.elapsed() >= IDLE / 20);
}

#[test]
fn without_another_runtime_there_is_an_error() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let runtime = Arc::new(QuinnRuntime::default());
    let refused = Endpoint::new(EndpointConfig::default(), None, socket, runtime).unwrap_err();
    assert!(refused.to_string().contains("no runtime"), "{refused}");
}

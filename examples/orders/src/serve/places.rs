//! The connections: as many as there are places, each with time limits. A connection for which
//! there is no place waits in the system's queue until another one ends.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use shardwheel_compat::HyperTimer;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections that the system keeps until they are accepted.
const BACKLOG: u32 = 4_096;
/// The pause before the next look for a connection if the system has none to give.
const PAUSE: Duration = Duration::from_millis(5);
/// Headers of a request, at most, and bytes of its head.
const MAX_HEADERS: usize = 64;
const MAX_HEAD: usize = 16 << 10;

/// What a client may take.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Limits {
    /// Connections at a time. Others wait
    #[arg(long, value_name = "N", default_value = "800", value_parser = crate::cli::up_to(65_536))]
    #[arg(conflicts_with = "nats")]
    pub(crate) max_connections: usize,

    /// How long a client may take for a request's head, for its body, and until it reads more of an
    /// answer; and how long a connection may be idle
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = crate::cli::some_time)]
    #[arg(conflicts_with = "nats")]
    pub(crate) timeout: Duration,
}

pub(crate) type Answered = Response<Full<Bytes>>;

/// Listens, with a queue that holds a burst of connections.
pub(crate) fn bind(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

/// Accepts connections for ever, and answers their requests by `handle`.
pub(crate) async fn serve<H, F>(listener: TcpListener, limits: Limits, handle: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Answered> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits.max_connections));
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(connection(stream, limits, place, handle.clone()))),
            // The system may have no more to give.
            Err(_) => shardwheel::sleep(PAUSE).await,
        }
    }
}

/// Serves one connection. An error of the connection concerns only its client.
async fn connection<H, F>(stream: TcpStream, limits: Limits, _place: OwnedSemaphorePermit, handle: H)
where
    H: Fn(Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Answered> + Send + 'static,
{
    // Answers are written whole; waiting for more to send gains nothing.
    let _ = stream.set_nodelay(true);
    // The system ends the connection of a client that does not read.
    let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(limits.timeout));
    let service = service_fn(move |request| {
        let answer = handle(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut server = http1::Builder::new();
    server.timer(HyperTimer::default()).header_read_timeout(limits.timeout);
    server.max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
    // Its client may have gone.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

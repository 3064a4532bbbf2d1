//! The connections: as many as there are places, each with time limits. A connection for which
//! there is no place waits in the system's queue until another one ends.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use shardwheel_compat::HyperTimer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
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
    #[arg(long, value_name = "N", default_value = "800", value_parser = crate::exchange::up_to(65_536))]
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
    // Each connection is a file. If the process may not open as many, there are fewer connections.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
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
    let service = service_fn(move |request| {
        let answer = handle(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let timeout = limits.timeout;
    let mut server = http1::Builder::new();
    server.timer(HyperTimer::default()).header_read_timeout(timeout);
    server.max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
    let io = TokioIo::new(Impatient { stream, timeout, waiting: None });
    // Its client may have gone.
    let _ = server.serve_connection(io, service).await;
}

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection that fails if its client takes too long to read more of what is written.
struct Impatient {
    stream: TcpStream,
    timeout: Duration,
    waiting: Option<Sleep>,
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl Impatient {
    fn within<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let timeout = self.timeout;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(shardwheel::sleep(timeout)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.within(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

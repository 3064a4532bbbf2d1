//! The connections: as many as there are places, each with time limits.
//!
//! A connection for which there is no place gets one of those that are kept for `/healthz` and `/metrics`: other
//! requests there are answered 503, and it ends after its answer.

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
/// Places for `/healthz` and `/metrics`, beside the others.
pub(crate) const KEPT: usize = 32;
/// Files that the process has beside its connections, at most.
const OTHER_FILES: usize = 32;
/// The pause before the next look for a connection if the system has none to give.
const PAUSE: Duration = Duration::from_millis(5);
/// Headers of a request, at most.
const MAX_HEADERS: usize = 64;

/// What a client may take.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Limits {
    /// Connections at a time. Requests on others are answered 503
    #[arg(long, value_name = "N", default_value = "800", value_parser = crate::exchange::up_to(65_536))]
    pub(crate) max_connections: usize,

    /// The longest head of a request, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16_384, value_parser = head_bytes())]
    max_head_bytes: u32,

    /// How long a client may take for a request's head, for its body, and until it reads more of an
    /// answer; and how long a connection may be idle
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = crate::cli::some_time)]
    pub(crate) timeout: Duration,
}

fn head_bytes() -> clap::builder::RangedI64ValueParser<u32> {
    clap::builder::RangedI64ValueParser::new().range(8_192..=1 << 20)
}

pub(crate) type Answered = Response<Full<Bytes>>;

/// Listens, with a queue that holds a burst of connections.
///
/// # Errors
///
/// The address cannot be had, or the process may not open a file for each place.
pub(crate) fn bind(at: SocketAddr, limits: Limits) -> io::Result<TcpListener> {
    // Each connection is a file. Without an answer of the system there may be fewer connections.
    let files = rlimit::increase_nofile_limit(u64::MAX).map_or(usize::MAX, |files| files as usize);
    let places = limits.max_connections;
    if places + KEPT + OTHER_FILES > files {
        let most = files.saturating_sub(KEPT + OTHER_FILES);
        return Err(io::Error::other(format!(
            "--max-connections {places} needs {} files, and this process may open {files} at most: raise the hard \
             limit (`ulimit -H -n`), or take --max-connections {most} at most",
            places + KEPT + OTHER_FILES
        )));
    }
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

/// Accepts connections for ever, and answers their requests by `handle`.
pub(crate) async fn serve<H, F>(listener: TcpListener, limits: Limits, handle: H)
where
    H: Fn(Place, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Answered> + Send + 'static,
{
    let [places, kept] = [limits.max_connections, KEPT].map(|most| Arc::new(Semaphore::new(most)));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The system may have no more to give.
            shardwheel::sleep(PAUSE).await;
            continue;
        };
        let (place, taken) = match Arc::clone(&places).try_acquire_owned() {
            Ok(taken) => (Place { is_kept: false }, taken),
            // The semaphore is never closed.
            Err(_) => match Arc::clone(&kept).acquire_owned().await {
                Ok(taken) => (Place { is_kept: true }, taken),
                Err(_) => return,
            },
        };
        tokio::spawn(connection(stream, limits, place, taken, handle.clone()));
    }
}

/// Serves one connection. An error of the connection concerns only its client.
async fn connection<H, F>(
    stream: TcpStream,
    limits: Limits,
    place: Place,
    _taken: OwnedSemaphorePermit,
    handle: H,
) where
    H: Fn(Place, Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Answered> + Send + 'static,
{
    // Answers are written whole; waiting for more to send gains nothing.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let answer = handle(place, request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let Limits { max_head_bytes, timeout, .. } = limits;
    let mut server = http1::Builder::new();
    server.timer(HyperTimer::default()).header_read_timeout(timeout).keep_alive(!place.is_kept);
    server.max_headers(MAX_HEADERS).max_buf_size(max_head_bytes as usize);
    let io = TokioIo::new(Impatient { stream, timeout, waiting: None });
    // Its client may have gone.
    let _ = server.serve_connection(io, service).await;
}

/// The place of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// It is one of those kept for `/healthz` and `/metrics`.
    pub(crate) is_kept: bool,
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

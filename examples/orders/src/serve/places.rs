//! The connections: as many as there are places, each with time limits.
//!
//! A connection *waits for its client* if its client has not sent a whole request, or does not read the
//! answer. If no place is free, the connection that has waited longest, and longer than [`GRACE`], is
//! ended for the newcomer. What it waits since is its last answer, so a client that sends a byte now and
//! then gains nothing. So clients that never read, write slowly or idle cost each other their places, and
//! not those that ask and read.
//!
//! If all connections wait for the server itself, a newcomer gets one of the places that are kept for
//! `/healthz` and `/metrics` ([`Place::is_kept`]).

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

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
use tokio::sync::Notify;

/// Connections that the system keeps until they are accepted.
const BACKLOG: u32 = 4_096;
/// Places for `/healthz` and `/metrics`, beside the others.
pub(crate) const KEPT: usize = 32;
/// Files that the process has beside its connections, at most.
const OTHER_FILES: usize = 32;
/// A connection that has waited for less is not ended for another one.
const GRACE: Duration = Duration::from_millis(50);
/// The pause before the next look for a place, or for a connection if the system has none to give.
const PAUSE: Duration = Duration::from_millis(5);
/// Headers of a request, at most.
const MAX_HEADERS: usize = 64;

/// What a client may take.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Limits {
    /// Connections at a time. If all are taken, the client that has been waited for longest is cut off
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
    H: Fn(Arc<Place>, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Answered> + Send + 'static,
{
    let places = Arc::new(Places { limits, taken: Mutex::default() });
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The system may have no more to give.
            places.end_slowest();
            shardwheel::sleep(PAUSE).await;
            continue;
        };
        if let Some(place) = places.take().await {
            tokio::spawn(connection(stream, Arc::clone(&places), place, handle.clone()));
        }
    }
}

/// Serves one connection. An error of the connection concerns only its client.
async fn connection<H, F>(stream: TcpStream, places: Arc<Places>, place: Arc<Place>, handle: H)
where
    H: Fn(Arc<Place>, Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Answered> + Send + 'static,
{
    // Answers are written whole; waiting for more to send gains nothing.
    let _ = stream.set_nodelay(true);
    let seat = &place;
    let service = service_fn(move |request| {
        let visit = Visit::begin(Arc::clone(seat));
        let answer = handle(Arc::clone(seat), request);
        async move {
            let answer = answer.await;
            drop(visit);
            Ok::<_, Infallible>(answer)
        }
    });
    let Limits { max_head_bytes, timeout, .. } = places.limits;
    let mut server = http1::Builder::new();
    server.timer(HyperTimer::default()).header_read_timeout(timeout);
    server.max_headers(MAX_HEADERS).max_buf_size(max_head_bytes as usize);
    let io = TokioIo::new(Impatient { stream, timeout, waiting: None });
    tokio::select! {
        _ = server.serve_connection(io, service) => {}
        () = place.end.notified() => {}
    }
    places.lock().retain(|other| !Arc::ptr_eq(other, &place));
}

struct Places {
    limits: Limits,
    taken: Mutex<Vec<Arc<Place>>>,
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Place>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place. `None`: there is none, not even one of those that are kept.
    async fn take(&self) -> Option<Arc<Place>> {
        loop {
            let taken = self.lock().len();
            if taken < self.limits.max_connections || self.end_slowest() == Slowest::Ended {
                return Some(self.enter(false));
            }
            if self.lock().iter().all(|place| place.waits_since().is_none()) {
                return (taken < self.limits.max_connections + KEPT).then(|| self.enter(true));
            }
            shardwheel::sleep(PAUSE).await;
        }
    }

    fn enter(&self, is_kept: bool) -> Arc<Place> {
        let waits_since = Mutex::new(Some(Instant::now()));
        let place = Arc::new(Place { waits_since, is_kept, end: Notify::new() });
        self.lock().push(Arc::clone(&place));
        place
    }

    /// Ends the connection that has waited longest for its client, if that is long enough.
    fn end_slowest(&self) -> Slowest {
        let mut taken = self.lock();
        let waiting = taken.iter().enumerate().filter_map(|(at, place)| Some((place.waits_since()?, at)));
        match waiting.min() {
            Some((since, at)) if since.elapsed() >= GRACE => {
                taken.swap_remove(at).end.notify_one();
                Slowest::Ended
            }
            _ => Slowest::Stays,
        }
    }
}

#[derive(PartialEq, Eq)]
enum Slowest {
    Ended,
    Stays,
}

/// A connection that is served.
pub(crate) struct Place {
    /// Since when it waits for its client. `None`: its client waits for the server.
    waits_since: Mutex<Option<Instant>>,
    /// It is one of those kept for `/healthz` and `/metrics`.
    pub(crate) is_kept: bool,
    end: Notify,
}

impl Place {
    fn waits_since(&self) -> Option<Instant> {
        *self.waits_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, since: Option<Instant>) -> Option<Instant> {
        std::mem::replace(&mut *self.waits_since.lock().unwrap_or_else(PoisonError::into_inner), since)
    }
}

/// A request in progress: its client waits for the server until this is dropped.
struct Visit(Arc<Place>);

impl Visit {
    fn begin(place: Arc<Place>) -> Self {
        place.set(None);
        Self(place)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.set(Some(Instant::now()));
    }
}

impl Place {
    /// Waits for the client within a request: for its body.
    pub(crate) async fn wait_for_client<T>(&self, body: impl Future<Output = T>) -> T {
        self.set(Some(Instant::now()));
        let body = body.await;
        self.set(None);
        body
    }
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

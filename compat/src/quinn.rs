//! quinn: `quinn::Runtime`.

use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};
use shardwheel::Timer;

use crate::sleep::{Sleep, Source};

/// A runtime for QUIC endpoints whose timers are shardwheel's: idle timeouts, loss detection,
/// pacing and keep-alive. Sockets and tasks are another runtime's.
///
/// `QuinnRuntime::default()` is on the [global `Timer`](Timer::global), and tells quinn the time of
/// that `Timer`. Where quinn calls within the [scope](shardwheel::ManualClock::scope) of a clock,
/// the timers and the time are those of the scope. The other runtime is quinn's default one, such
/// as tokio, unless [`with_runtime`](Self::with_runtime) chooses it.
///
/// # Examples
///
/// ```
/// use std::net::UdpSocket;
/// use std::sync::Arc;
/// use quinn::{Endpoint, EndpointConfig, TokioRuntime};
/// use shardwheel_compat::QuinnRuntime;
///
/// # fn main() -> std::io::Result<()> {
/// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
/// let runtime = QuinnRuntime::default().with_runtime(Arc::new(TokioRuntime));
/// let socket = UdpSocket::bind("127.0.0.1:0")?;
/// let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(runtime))?;
/// # drop(endpoint);
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QuinnRuntime {
    source: Source,
    /// `None` for quinn's default.
    runtime: Option<Arc<dyn Runtime>>,
}

impl Default for QuinnRuntime {
    #[track_caller]
    fn default() -> Self {
        Self { source: Source::global(), runtime: None }
    }
}

impl QuinnRuntime {
    /// Makes a runtime whose timers wait on `timer`.
    #[must_use]
    #[track_caller]
    pub fn new(timer: Timer) -> Self {
        Self { source: Source::of(timer), runtime: None }
    }

    /// Sets the runtime that has the sockets and the tasks.
    ///
    /// By default it is the one that [`quinn::default_runtime`] returns at each use: within tokio,
    /// tokio.
    #[must_use]
    pub fn with_runtime(self, runtime: Arc<dyn Runtime>) -> Self {
        Self { runtime: Some(runtime), ..self }
    }

    fn runtime(&self) -> io::Result<Arc<dyn Runtime>> {
        let runtime = self.runtime.clone().or_else(quinn::default_runtime);
        runtime.ok_or_else(|| io::Error::other("no runtime was set, and quinn has no default one here"))
    }
}

impl Runtime for QuinnRuntime {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(Alarm { sleep: self.source.sleep_until(deadline), source: self.source.clone() })
    }

    /// Spawns `future` on the other runtime.
    ///
    /// # Panics
    ///
    /// If there is no other runtime. (An endpoint does not get that far: it wraps its socket first,
    /// and that returns an error.)
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.runtime().unwrap_or_else(|error| panic!("{error}")).spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        self.runtime()?.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        self.source.now()
    }
}

/// A sleep, and the source of the time by which quinn resets it.
#[derive(Debug)]
struct Alarm {
    sleep: Sleep,
    source: Source,
}

impl AsyncTimer for Alarm {
    fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.get_mut();
        this.source.reset(&mut this.sleep, deadline);
    }

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.get_mut().sleep).poll(context)
    }
}

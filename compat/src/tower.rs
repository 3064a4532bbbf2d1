//! tower: a time limit for each request to a service.
//!
//! [`TimeoutLayer`] has the form of tower's own. A service in it returns a [`BoxError`]: [`Elapsed`]
//! if the time limit has passed, otherwise the service's own error.
//!
//! # Examples
//!
//! In axum, whose routes have no errors, `HandleErrorLayer` turns the error into a response:
//!
//! ```
//! use std::time::Duration;
//! use axum::{BoxError, Router, error_handling::HandleErrorLayer, http::StatusCode, routing::get};
//! use shardwheel_compat::TimeoutLayer;
//! use shardwheel_compat::tower::Elapsed;
//! use tower::ServiceBuilder;
//!
//! async fn answer(error: BoxError) -> (StatusCode, String) {
//!     match error.downcast_ref::<Elapsed>() {
//!         Some(elapsed) => (StatusCode::GATEWAY_TIMEOUT, elapsed.to_string()),
//!         None => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
//!     }
//! }
//!
//! let limit = ServiceBuilder::new()
//!     .layer(HandleErrorLayer::new(answer))
//!     .layer(TimeoutLayer::new(Duration::from_secs(10)));
//! let app: Router = Router::new().route("/", get(async || "hello")).layer(limit);
//! ```
//!
//! # Deadlines
//!
//! A request inherits the [`Deadline`] of the scope in which it is called, if that is earlier than
//! the layer's limit, and all that is called for it inherits in turn: the layer calls the inner
//! service, and polls its response, in the scope of the request's own deadline. With the feature
//! `http`, [`TimeoutLayer::headers`] also takes the deadline from the request's headers, and writes
//! the time that is left there, for a service behind this one.
//!
//! - *It has passed before the call*: the answer is [`Elapsed`], and the service is not called.
//! - *A time limit of the service would end later*: it ends with the request's deadline, and so does
//!   the layer's own. The service answers then: the layer polls it once more, and each such limit
//!   that is polled ends. If its answer is not ready in that poll, the answer is [`Elapsed`].
//! - *The layer has a `Timer` with another clock*: see [`Deadline::sync_scope_by`].

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use shardwheel::{Deadline, Timer};
use tower_layer::Layer;
use tower_service::Service;

use crate::sleep::{Sleep, Source};

/// The error of a service with a time limit: [`Elapsed`], or the service's own.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Gives each request to a service a time limit.
///
/// It is on the [global `Timer`](Timer::global), unless [`with_timer`](Self::with_timer) chooses
/// another.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel_compat::TimeoutLayer;
/// use shardwheel_compat::tower::{BoxError, Elapsed};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let service = ServiceBuilder::new()
///     .layer(TimeoutLayer::new(Duration::from_millis(5)))
///     .service_fn(|_request: ()| std::future::pending::<Result<(), BoxError>>());
/// let error = service.oneshot(()).await.unwrap_err();
/// assert!(error.is::<Elapsed>());
/// # });
/// ```
///
/// The limit ends with the response: in HTTP, with its headers. A body that stalls after them is not
/// limited. Put a limit around the reading or the writing of the body for that.
#[derive(Clone, Debug)]
pub struct TimeoutLayer<H = NoHeaders> {
    limit: Duration,
    source: Source,
    headers: H,
}

impl TimeoutLayer {
    /// Makes a layer whose services have `limit` for each request.
    #[must_use]
    #[track_caller]
    pub fn new(limit: Duration) -> Self {
        Self { limit, source: Source::global(), headers: NoHeaders }
    }

    /// Makes the layer take each request's deadline from a header, and write what is left of it into
    /// the header again.
    ///
    /// The earlier of the header's deadline and the layer's limit counts. A header that cannot be
    /// read counts as none. So in front of a server, a caller can only shorten the limit; around a
    /// client, the header tells the server how long the answer is waited for.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::Request;
    /// use shardwheel_compat::TimeoutLayer;
    /// use shardwheel_compat::tower::{BoxError, Headers};
    /// use tower::{ServiceBuilder, ServiceExt};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let service = ServiceBuilder::new()
    ///     .layer(TimeoutLayer::new(Duration::from_secs(30)).headers(Headers::Grpc))
    ///     .service_fn(async |request: Request<()>| {
    ///         Ok::<_, BoxError>(request.headers()["grpc-timeout"].to_str()?.to_owned())
    ///     });
    /// let request = Request::builder().header("grpc-timeout", "5S").body(()).unwrap();
    /// let left = service.oneshot(request).await.unwrap();
    /// assert!(left.ends_with('u') && left.as_str() <= "5000000u");
    /// # });
    /// ```
    #[cfg(feature = "http")]
    #[must_use]
    pub fn headers(self, headers: Headers) -> TimeoutLayer<Headers> {
        TimeoutLayer { limit: self.limit, source: self.source, headers }
    }
}

impl<H> TimeoutLayer<H> {
    /// Makes the time limits wait on `timer`.
    #[must_use]
    #[track_caller]
    pub fn with_timer(self, timer: Timer) -> Self {
        Self { source: Source::of(timer), ..self }
    }
}

/// How a request carries its deadline; implemented by [`NoHeaders`] and [`Headers`].
pub trait CarriesDeadline<Request> {
    /// Returns the deadline that the request has brought.
    fn take(&self, request: &Request) -> Option<Deadline>;

    /// Tells the request how much time is left.
    fn hand_over(&self, request: &mut Request, left: Duration);
}

/// The requests carry no deadline.
#[derive(Clone, Copy, Debug)]
pub struct NoHeaders;

impl<Request> CarriesDeadline<Request> for NoHeaders {
    fn take(&self, _: &Request) -> Option<Deadline> {
        None
    }

    fn hand_over(&self, _: &mut Request, _: Duration) {}
}

/// The header of [`Headers::Http`]. HTTP itself has none; this one is Envoy's, which sends it to the
/// services behind it.
#[cfg(feature = "http")]
pub const HTTP_HEADER: &str = "x-envoy-expected-rq-timeout-ms";

/// The header in which requests of HTTP carry their deadline.
#[cfg(feature = "http")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// [`Deadline::GRPC_HEADER`].
    Grpc,
    /// [`HTTP_HEADER`], in milliseconds. As in Envoy, 0 is no limit.
    Http,
}

#[cfg(feature = "http")]
impl<B> CarriesDeadline<http::Request<B>> for Headers {
    fn take(&self, request: &http::Request<B>) -> Option<Deadline> {
        let value = |name| request.headers().get(name)?.to_str().ok();
        match self {
            Self::Grpc => Deadline::parse(value(Deadline::GRPC_HEADER)?).ok(),
            Self::Http => {
                let digits = value(HTTP_HEADER)?;
                let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
                let millis: u64 = is_number.then(|| digits.parse().ok())??;
                (millis > 0).then(|| Deadline::after(Duration::from_millis(millis)))
            }
        }
    }

    fn hand_over(&self, request: &mut http::Request<B>, left: Duration) {
        let deadline = Deadline::after(left);
        let (name, value) = match self {
            Self::Grpc => (Deadline::GRPC_HEADER, deadline.header()),
            // Envoy takes 0 for no limit.
            Self::Http => (HTTP_HEADER, deadline.remaining().as_millis().max(1).to_string()),
        };
        let value = value.try_into().expect("digits and a letter are a value");
        request.headers_mut().insert(name, value);
    }
}

impl<S, H: Clone> Layer<S> for TimeoutLayer<H> {
    type Service = Timeout<S, H>;

    fn layer(&self, inner: S) -> Timeout<S, H> {
        Timeout { inner, layer: self.clone() }
    }
}

/// A service whose requests have a time limit each. Made by [`TimeoutLayer`].
///
/// The time runs from the call; it does not include the wait until the service is ready. A request
/// that has not been answered in time is dropped. The service is called, and its response polled,
/// within the [scope](Deadline::scope) of the request's deadline. If that has passed
/// before the call, the service is not called.
#[derive(Clone, Debug)]
pub struct Timeout<S, H = NoHeaders> {
    inner: S,
    layer: TimeoutLayer<H>,
}

impl<S> Timeout<S> {
    /// Gives each request to `inner` a time limit of `limit`, on the global `Timer`.
    #[track_caller]
    pub fn new(inner: S, limit: Duration) -> Self {
        TimeoutLayer::new(limit).layer(inner)
    }
}

impl<S, H> Timeout<S, H> {
    /// Returns the service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the service, mutably.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the service without its time limit.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, H, Request> Service<Request> for Timeout<S, H>
where
    S: Service<Request>,
    H: CarriesDeadline<Request>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let TimeoutLayer { limit: own, source, headers } = &self.layer;
        let inherited = [Deadline::current(), headers.take(&request)];
        let inherited = inherited.into_iter().flatten().map(Deadline::remaining).min();
        let limit = inherited.map_or(*own, |left| left.min(*own));
        let sleep = if limit < *own { source.sleep_exactly(limit) } else { source.sleep(limit) };
        let timer = source.own().cloned();
        let scope = RequestScope { deadline: sleep.deadline().map(|at| Deadline { at }), timer };
        let is_over = inherited.is_some_and(|left| left.is_zero());
        let response = (!is_over).then(|| {
            headers.hand_over(&mut request, limit);
            scope.run(|| self.inner.call(request))
        });
        ResponseFuture { response, sleep, limit, scope }
    }
}

/// The scope of a request's deadline.
#[derive(Debug)]
struct RequestScope {
    /// By the clock of the layer's timer. `None` is too far away for the system's clock.
    deadline: Option<Deadline>,
    /// `None` for the global timer.
    timer: Option<Timer>,
}

impl RequestScope {
    fn run<R>(&self, code: impl FnOnce() -> R) -> R {
        match (self.deadline, &self.timer) {
            (Some(deadline), Some(timer)) => deadline.sync_scope_by(timer, code),
            (Some(deadline), None) => deadline.sync_scope(code),
            (None, _) => code(),
        }
    }
}

pin_project! {
    /// The response of a [`Timeout`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F> {
        // `None` if the deadline had passed before the call.
        #[pin]
        response: Option<F>,
        sleep: Sleep,
        limit: Duration,
        scope: RequestScope,
    }
}

impl<F, Response, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response, BoxError>;

    /// Polls the response before the time limit: one that is ready in time never times out.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let elapsed = || Poll::Ready(Err(Elapsed { limit: *this.limit }.into()));
        let Some(mut response) = this.response.as_pin_mut() else { return elapsed() };
        if let Poll::Ready(response) = this.scope.run(|| response.as_mut().poll(context)) {
            return Poll::Ready(response.map_err(Into::into));
        }
        ready!(Pin::new(this.sleep).poll(context));
        // Limits of the response that end at the same deadline end in this poll. And one that is
        // ready may have been pending for a moment, so that its task returns to its executor now and
        // then: as every 128th sleep that is over.
        match this.scope.run(|| response.poll(context)) {
            Poll::Ready(response) => Poll::Ready(response.map_err(Into::into)),
            Poll::Pending => elapsed(),
        }
    }
}

/// The error of a request that was not answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Elapsed {
    limit: Duration,
}

impl Elapsed {
    /// Returns the time limit that has passed.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request was not answered within its limit of {:?}", self.limit)
    }
}

impl Error for Elapsed {}

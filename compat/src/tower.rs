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

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use shardwheel::Timer;
use tower_layer::Layer;
use tower_service::Service;

use crate::sleep::{Sleep, Source};

/// The error of a service with a time limit: [`Elapsed`], or the service's own.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Gives each request to a service a time limit.
///
/// It is on the [global timer](Timer::global), unless [`with_timer`](Self::with_timer) chooses
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
pub struct TimeoutLayer {
    limit: Duration,
    source: Source,
}

impl TimeoutLayer {
    /// Makes a layer whose services have `limit` for each request.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { limit, source: Source::default() }
    }

    /// Makes the time limits wait on `timer`.
    #[must_use]
    pub fn with_timer(self, timer: Timer) -> Self {
        Self { source: timer.into(), ..self }
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Timeout<S> {
        Timeout { inner, layer: self.clone() }
    }
}

/// A service whose requests have a time limit each. Made by [`TimeoutLayer`].
///
/// The time runs from the call; it does not include the wait until the service is ready. A request
/// that has not been answered in time is dropped.
#[derive(Clone, Debug)]
pub struct Timeout<S> {
    inner: S,
    layer: TimeoutLayer,
}

impl<S> Timeout<S> {
    /// Gives each request to `inner` a time limit of `limit`, on the global timer.
    pub fn new(inner: S, limit: Duration) -> Self {
        TimeoutLayer::new(limit).layer(inner)
    }

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

impl<S, Request> Service<Request> for Timeout<S>
where
    S: Service<Request>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let TimeoutLayer { limit, source } = &self.layer;
        ResponseFuture { sleep: source.sleep(*limit), limit: *limit, response: self.inner.call(request) }
    }
}

pin_project! {
    /// The response of a [`Timeout`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        response: F,
        sleep: Sleep,
        limit: Duration,
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
        let mut this = self.project();
        if let Poll::Ready(response) = this.response.as_mut().poll(context) {
            return Poll::Ready(response.map_err(Into::into));
        }
        ready!(Pin::new(this.sleep).poll(context));
        // A response that is ready may have been pending for a moment, so that its task returns to
        // its executor now and then: as every 128th sleep that is over.
        match this.response.poll(context) {
            Poll::Ready(response) => Poll::Ready(response.map_err(Into::into)),
            Poll::Pending => Poll::Ready(Err(Box::new(Elapsed { limit: *this.limit }))),
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

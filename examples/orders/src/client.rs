//! The HTTP client of `feed` and `audit`. It waits until there is an answer. If a request was cut
//! off, or refused for now, it sends the request again.
//!
//! That is harmless: a server knows orders and payments by their ids.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::cluster;

/// How long one request may take. A server that recovers a large store answers 503 meanwhile.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The waits between two attempts.
fn waits() -> impl Iterator<Item = Duration> {
    let double = |wait: &Duration| Some(Duration::from_secs(2).min(*wait * 2));
    std::iter::successors(Some(Duration::from_millis(20)), double)
}

/// A server, and how to speak to it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Host and port.
    authority: String,
    authorization: Option<HeaderValue>,
    /// How long to send the same request again and again.
    give_up_after: Duration,
}

impl Endpoint {
    /// `url` is `http://HOST:PORT`.
    pub(crate) fn new(url: &str, token: Option<&str>, give_up_after: Duration) -> Result<Self, Failure> {
        let uri = url.parse::<Uri>().ok().filter(|uri| uri.scheme_str() == Some("http") && uri.path() == "/");
        let authority = uri.as_ref().and_then(Uri::authority).filter(|authority| authority.port().is_some());
        let authority = authority
            .ok_or_else(|| {
                Failure(format!("{url:?} is no server; it must be http://HOST:PORT or nats://HOST:PORT"))
            })?
            .to_string();
        let bearer = token.map(|token| HeaderValue::try_from(format!("Bearer {token}")));
        let authorization = bearer
            .transpose()
            .map_err(|_| Failure("the token may hold visible ASCII characters only".to_owned()))?;
        Ok(Self { authority, authorization, give_up_after })
    }
}

/// One connection, which is made again as often as it breaks.
pub(crate) struct Client {
    endpoint: Arc<Endpoint>,
    connection: Option<SendRequest<Full<Bytes>>>,
    /// Requests that were sent again.
    pub(crate) repeated: u64,
}

/// An answer with the status 200 or 404.
pub(crate) struct Reply {
    pub(crate) found: bool,
    pub(crate) body: Bytes,
}

/// What came of one attempt.
enum Attempt {
    Done(Reply),
    /// It may be sent again: the connection was cut, or the server asks for that, perhaps after a
    /// given time.
    Later(String, Option<Duration>),
    Refused(Failure),
}

type Cut = Box<dyn Error + Send + Sync>;

impl Client {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint, connection: None, repeated: 0 }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Reply, Failure> {
        self.insist(Method::GET, path, Bytes::new()).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: Bytes) -> Result<Reply, Failure> {
        self.insist(Method::POST, path, body).await
    }

    /// Sends a request until there is an answer.
    async fn insist(&mut self, method: Method, path: &str, body: Bytes) -> Result<Reply, Failure> {
        let (begin, mut waits) = (Instant::now(), waits());
        loop {
            let (why, asked) = match self.attempt(&method, path, &body).await {
                Attempt::Done(reply) => return Ok(reply),
                Attempt::Refused(failure) => return Err(failure),
                Attempt::Later(why, asked) => (why, asked),
            };
            if begin.elapsed() >= self.endpoint.give_up_after {
                let seconds = begin.elapsed().as_secs_f64();
                return Err(Failure(format!("given up after {seconds:.1} s: {why}")));
            }
            self.repeated += 1;
            shardwheel::sleep(asked.max(waits.next()).unwrap_or_default()).await;
        }
    }

    async fn attempt(&mut self, method: &Method, path: &str, body: &Bytes) -> Attempt {
        let sent = shardwheel::timeout(REQUEST_TIMEOUT, self.send(method, path, body)).await;
        let (status, wait, body) = match sent.unwrap_or_else(|elapsed| Err(elapsed.into())) {
            Ok(answer) => answer,
            Err(cut) => {
                self.connection = None;
                return Attempt::Later(cut.to_string(), None);
            }
        };
        let answers = format!("the server answers {status}");
        match status {
            StatusCode::OK | StatusCode::NOT_FOUND => {
                Attempt::Done(Reply { found: status == StatusCode::OK, body })
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::REQUEST_TIMEOUT => Attempt::Later(answers, wait),
            _ => {
                let text = String::from_utf8_lossy(&body);
                Attempt::Refused(Failure(format!("{path}: {answers}: {}", text.trim())))
            }
        }
    }

    async fn send(
        &mut self,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> Result<(StatusCode, Option<Duration>, Bytes), Cut> {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(header::HOST, &self.endpoint.authority);
        if let Some(authorization) = &self.endpoint.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(body.clone()))?;
        let connection = self.connection().await?;
        connection.ready().await?;
        let (head, body) = connection.send_request(request).await?.into_parts();
        let wait = head.headers.get(header::RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
        Ok((head.status, wait.map(Duration::from_secs), body.collect().await?.to_bytes()))
    }

    async fn connection(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, Cut> {
        if self.connection.as_ref().is_none_or(SendRequest::is_closed) {
            let stream = TcpStream::connect(&self.endpoint.authority).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            // An error of the connection shows at the next request.
            tokio::spawn(connection);
            self.connection = Some(sender);
        }
        self.connection.as_mut().ok_or_else(|| "there is no connection".into())
    }
}

/// Why a server cannot be spoken to, in a sentence.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// The server's answer is not what was asked for.
    pub(crate) fn answer(path: &str, text: impl fmt::Display) -> Self {
        Self(format!("{path}: the answer cannot be used: {text}"))
    }

    /// The broker fails, or no worker answers.
    pub(crate) fn broker(failure: cluster::Failure) -> Self {
        Self(format!("NATS: {failure}"))
    }
}

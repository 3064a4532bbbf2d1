//! The routes. A handler reads the body, asks the writer, and formats the answer; it decides nothing.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use tokio::sync::oneshot;
use tokio::task;

use crate::store::{History, StoreError};

use super::access::authorise;
use super::books;
use super::lines::{self, Answer, Line};
use super::metrics::{Figure, Metrics};
use super::places::Answered;
use super::shared::Shared;
use super::writer::Message;

/// Longest body, in bytes.
const MAX_BODY: usize = 1 << 20;
/// Lines of a body, at most: each has an answer.
const MAX_LINES: usize = 10_000;
/// Outcomes in one answer, at most and by default.
const MAX_OUTCOMES: usize = 10_000;
const DEFAULT_OUTCOMES: usize = 1_000;
/// When a client that was refused should try again, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

const LINES: &str = "application/x-ndjson";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const PAGE: &str = "text/html; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4";

/// What the handlers of all connections share.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) messages: Sender<Message>,
    pub(crate) token: Option<String>,
    /// How long a client may take to send a body, and how long it waits for the disk.
    pub(crate) timeout: Duration,
}

type Lines = Result<Vec<Answer>, books::Full>;

/// Answers one request.
pub(crate) async fn handle(context: Arc<Context>, request: Request<Incoming>) -> Answered {
    let answered = route(&context, request).await;
    answered.unwrap_or_else(|refusal| refusal.response(&context.shared.metrics))
}

/// Why a request is not answered as it asks.
pub(super) enum Refusal {
    Token,
    /// The request comes from a page of this origin.
    Origin(String),
    NotFound,
    Method(&'static str),
    Bad(&'static str),
    TooLarge,
    TooSlow,
    /// Nothing of the request was done.
    Full,
    /// Nothing of the request was done, for the disk is full.
    NoRoom,
    /// The store failed, or does not answer; it is not known whether something was done.
    Unknown,
    /// Something waits for so long.
    Late(Duration),
    Store(StoreError),
}

impl Refusal {
    fn response(self, metrics: &Metrics) -> Answered {
        let (status, text) = match &self {
            Self::Token => (401, "the bearer token is missing or wrong".into()),
            Self::Origin(origin) => (
                403,
                format!("without a token no page but the server's own may ask, and this one is of {origin}"),
            ),
            Self::NotFound => (404, "there is no such thing".into()),
            Self::Method(allowed) => (405, format!("use {allowed}")),
            Self::Bad(reason) => (400, (*reason).into()),
            Self::TooLarge => (413, format!("a body has at most {MAX_BODY} bytes and {MAX_LINES} lines")),
            Self::TooSlow => (408, "the body did not come in time".into()),
            Self::Full => (503, "nothing was done; try again later".into()),
            Self::NoRoom => (503, "the disk has no room: nothing can be written; try again later".into()),
            Self::Unknown => (503, "send it again: what was done is a duplicate".into()),
            Self::Late(wait) => (
                503,
                format!("the disk does not answer: a request or a commit waits for {} s", wait.as_secs()),
            ),
            Self::Store(error) => (500, error.to_string()),
        };
        // They are statuses.
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = answer(status, TEXT, format!("{text}\n"));
        let (name, value) = match self {
            Self::Token => (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            Self::Method(allowed) => (header::ALLOW, HeaderValue::from_static(allowed)),
            Self::Full | Self::NoRoom | Self::Unknown => {
                metrics.of(Figure::Refused).add(1);
                (header::RETRY_AFTER, RETRY_AFTER)
            }
            _ => return response,
        };
        response.headers_mut().insert(name, value);
        response
    }
}

const GET: &str = "GET, HEAD";
const POST: &str = "POST";

async fn route(context: &Arc<Context>, request: Request<Incoming>) -> Result<Answered, Refusal> {
    let path = request.uri().path().to_owned();
    // A target without a path, as that of `CONNECT` or `OPTIONS *`, names nothing here.
    let path = path.strip_prefix('/').ok_or(Refusal::NotFound)?;
    let (head, rest) = path.split_once('/').map_or((path, None), |(head, rest)| (head, Some(rest)));
    // The page has no figures of its own, and a browser cannot send the token with it.
    if (head, rest) != ("", None) {
        authorise(context.token.as_deref(), &request)?;
    }
    let allowed = match (head, rest) {
        ("orders" | "payments", None) => POST,
        ("orders" | "stock", Some(_)) | ("outcomes" | "healthz" | "metrics" | "", None) => GET,
        _ => return Err(Refusal::NotFound),
    };
    if !allowed.split(", ").any(|method| method == request.method()) {
        return Err(Refusal::Method(allowed));
    }
    match (head, rest) {
        ("orders", None) => post(context, request, |lines, reply| Message::Orders { lines, reply }).await,
        ("payments", None) => post(context, request, |lines, reply| Message::Payments { lines, reply }).await,
        ("orders", Some(id)) => order(context, id).await,
        ("stock", Some(item)) => stock(context, item).await,
        ("outcomes", _) => outcomes(context, request.uri().query().unwrap_or_default()).await,
        ("healthz", _) => health(&context.shared),
        ("metrics", _) => Ok(answer(StatusCode::OK, METRICS, context.shared.metrics_text())),
        _ => Ok(page()),
    }
}

/// Sends the lines of a body to the writer, and waits until they are on disk.
async fn post<T: Line>(
    context: &Context,
    request: Request<Incoming>,
    message: impl FnOnce(Vec<Result<T, lines::Fault>>, oneshot::Sender<Lines>) -> Message,
) -> Result<Answered, Refusal> {
    let body = body(context, request).await?;
    if body.iter().filter(|&&byte| byte == b'\n').count() > MAX_LINES {
        return Err(Refusal::TooLarge);
    }
    if context.shared.is_full() {
        return Err(Refusal::NoRoom);
    }
    let answers = ask(context, |reply| message(lines::parse(&body), reply)).await?;
    let answers = answers.map_err(|books::Full| Refusal::Full)?;
    let mut text = String::with_capacity(64 * answers.len());
    answers.iter().for_each(|answer| answer.write(&mut text));
    Ok(answer(StatusCode::OK, LINES, text))
}

async fn body(context: &Context, request: Request<Incoming>) -> Result<Bytes, Refusal> {
    // Refused before a client is told to go on with it.
    if request.body().size_hint().lower() > MAX_BODY as u64 {
        return Err(Refusal::TooLarge);
    }
    let body = Limited::new(request.into_body(), MAX_BODY).collect();
    match shardwheel::timeout(context.timeout, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge),
        Ok(Err(_)) => Err(Refusal::Bad("the body was cut off")),
        Err(_) => Err(Refusal::TooSlow),
    }
}

/// Passes a message to the writer, unless it is busy or the store is not open, and waits for the answer.
async fn ask<T>(
    context: &Context,
    message: impl FnOnce(oneshot::Sender<T>) -> Message,
) -> Result<T, Refusal> {
    if context.shared.store().is_none() {
        return Err(Refusal::Full);
    }
    let (reply, answer) = oneshot::channel();
    context.messages.try_send(message(reply)).map_err(|_| Refusal::Full)?;
    in_time(context, answer).await
}

/// Waits for what depends on the disk, but not longer than a client may wait. It is not known then whether
/// something was done.
async fn in_time<T, E>(context: &Context, answer: impl Future<Output = Result<T, E>>) -> Result<T, Refusal> {
    let _waiting = context.shared.wait();
    match shardwheel::timeout(context.timeout, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) | Err(_) => Err(Refusal::Unknown),
    }
}

/// The writer is asked first: what it has decided is in the store when it answers. Then an order goes from
/// the pending ones to those that have ended, and not back.
async fn order(context: &Arc<Context>, id: &str) -> Result<Answered, Refusal> {
    let order_id = id.parse().map_err(|_| Refusal::NotFound)?;
    let mut pending = ask(context, |reply| Message::Order { order_id, reply }).await?;
    if pending.is_none() {
        pending = read(context, move |store| store.open(order_id)).await?;
    }
    if let Some(order) = pending {
        return Ok(answer(StatusCode::OK, JSON, lines::order(&order, None)));
    }
    let ended = read(context, move |store| store.ended(order_id)).await?.ok_or(Refusal::NotFound)?;
    Ok(answer(StatusCode::OK, JSON, lines::order(&ended.order, Some(&ended))))
}

async fn stock(context: &Context, item: &str) -> Result<Answered, Refusal> {
    let item = percent_decode_str(item).decode_utf8().ok().filter(|item| lines::is_name(item));
    let item = item.ok_or(Refusal::Bad("an item is 1 to 64 bytes of visible UTF-8 text without spaces"))?;
    let stock = ask(context, |reply| Message::Stock { item: item.to_string(), reply }).await?;
    Ok(answer(StatusCode::OK, JSON, lines::stock(&item, stock)))
}

async fn outcomes(context: &Arc<Context>, query: &str) -> Result<Answered, Refusal> {
    let (mut after, mut limit) = (0, DEFAULT_OUTCOMES);
    let wrong = Refusal::Bad("the query is after=SEQ&limit=N");
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match (name, value.parse::<u64>()) {
            ("after", Ok(seq)) => after = seq,
            ("limit", Ok(most)) => limit = usize::try_from(most).unwrap_or(MAX_OUTCOMES).min(MAX_OUTCOMES),
            ("after" | "limit", Err(_)) => return Err(wrong),
            _ => {}
        }
    }
    let outcomes = read(context, move |store| store.outcomes(after, limit)).await?;
    let mut text = String::with_capacity(96 * outcomes.len());
    outcomes.iter().for_each(|outcome| lines::write_outcome(&mut text, outcome));
    Ok(answer(StatusCode::OK, LINES, text))
}

/// Reads the store on a thread that may wait for the disk.
async fn read<R: Send + 'static>(
    context: &Arc<Context>,
    look: impl FnOnce(&dyn History) -> Result<R, StoreError> + Send + 'static,
) -> Result<R, Refusal> {
    let store = context.shared.store().ok_or(Refusal::Full)?;
    let looked = in_time(context, task::spawn_blocking(move || look(&*store))).await?;
    looked.map_err(|error| context.shared.failed(error)).map_err(Refusal::Store)
}

fn health(shared: &Shared) -> Result<Answered, Refusal> {
    if shared.is_full() {
        return Err(Refusal::NoRoom);
    }
    shared.store().ok_or(Refusal::Full)?;
    match shared.late() {
        None => Ok(answer(StatusCode::OK, TEXT, "ok\n".to_owned())),
        Some(wait) => Err(Refusal::Late(wait)),
    }
}

/// The status page asks for nothing but `/metrics`.
fn page() -> Answered {
    let mut page = answer(StatusCode::OK, PAGE, include_str!("status.html").to_owned());
    let policy =
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'";
    page.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    page
}

fn answer(status: StatusCode, kind: &'static str, text: String) -> Answered {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

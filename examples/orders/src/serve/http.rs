//! The routes. A handler reads the body, asks the writer, and formats the answer; it decides nothing.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;
use tokio::task;

use crate::store::{Disk, Store, StoreError};

use super::lines::{self, Answer};
use super::metrics::Metrics;
use super::places::Answered;
use super::writer::Message;

/// Longest body, in bytes.
const MAX_BODY: usize = 1 << 20;
/// Lines of a body, at most: each has an answer.
const MAX_LINES: usize = 10_000;
/// Outcomes in one answer, at most and by default.
const MAX_OUTCOMES: usize = 10_000;
const DEFAULT_OUTCOMES: usize = 1_000;

const LINES: &str = "application/x-ndjson";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4";

/// What the handlers of all connections share.
pub(crate) struct Context {
    pub(crate) store: Arc<Disk>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) messages: Sender<Message>,
    /// How long a client may take to send a body.
    pub(crate) timeout: Duration,
}

/// Answers one request.
pub(crate) async fn handle(context: Arc<Context>, request: Request<Incoming>) -> Answered {
    route(&context, request).await.unwrap_or_else(Refusal::response)
}

/// Why a request is not answered as it asks; or which methods are allowed, if its own is not.
struct Refusal(StatusCode, &'static str);

const NOT_FOUND: Refusal = Refusal(StatusCode::NOT_FOUND, "there is no such thing");
const TOO_LARGE: Refusal =
    Refusal(StatusCode::PAYLOAD_TOO_LARGE, "a body has at most 1048576 bytes and 10000 lines");

fn bad(why: &'static str) -> Refusal {
    Refusal(StatusCode::BAD_REQUEST, why)
}

impl Refusal {
    fn response(self) -> Answered {
        let Self(status, text) = self;
        let mut response = answer(status, TEXT, format!("{text}\n"));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(text));
        }
        response
    }
}

const GET: &str = "GET, HEAD";
const POST: &str = "POST";

async fn route(context: &Arc<Context>, request: Request<Incoming>) -> Result<Answered, Refusal> {
    // A browser says which page a request comes from. There is no page that may ask.
    if request.headers().contains_key(header::ORIGIN) {
        return Err(Refusal(StatusCode::FORBIDDEN, "no page may ask"));
    }
    let path = request.uri().path().to_owned();
    // A target without a path, as that of `CONNECT` or `OPTIONS *`, names nothing here.
    let path = path.strip_prefix('/').ok_or(NOT_FOUND)?;
    let (head, rest) = path.split_once('/').map_or((path, None), |(head, rest)| (head, Some(rest)));
    let allowed = match (head, rest) {
        ("orders" | "payments", None) => POST,
        ("orders" | "stock", Some(_)) | ("outcomes" | "healthz" | "metrics", None) => GET,
        _ => return Err(NOT_FOUND),
    };
    if !allowed.split(", ").any(|method| method == request.method()) {
        return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, allowed));
    }
    match (head, rest) {
        ("orders", None) => post(context, request, |lines, reply| Message::Orders { lines, reply }).await,
        ("payments", None) => post(context, request, |lines, reply| Message::Payments { lines, reply }).await,
        ("orders", Some(id)) => order(context, id).await,
        ("stock", Some(item)) => stock(context, item).await,
        ("outcomes", _) => outcomes(context, request.uri().query().unwrap_or_default()).await,
        ("healthz", _) => Ok(answer(StatusCode::OK, TEXT, "ok\n".to_owned())),
        _ => Ok(answer(StatusCode::OK, METRICS, context.metrics.text())),
    }
}

/// Sends the lines of a body to the writer, and waits until they are on disk.
async fn post<T: DeserializeOwned>(
    context: &Context,
    request: Request<Incoming>,
    message: impl FnOnce(Vec<Result<T, Answer>>, oneshot::Sender<Vec<Answer>>) -> Message,
) -> Result<Answered, Refusal> {
    let body = body(context, request).await?;
    if body.iter().filter(|&&byte| byte == b'\n').count() > MAX_LINES {
        return Err(TOO_LARGE);
    }
    let answers = ask(context, |reply| message(lines::parse(&body), reply)).await?;
    let mut text = String::with_capacity(64 * answers.len());
    answers.iter().for_each(|answer| answer.write(&mut text));
    Ok(answer(StatusCode::OK, LINES, text))
}

async fn body(context: &Context, request: Request<Incoming>) -> Result<Bytes, Refusal> {
    // Refused before a client is told to go on with it.
    if request.body().size_hint().lower() > MAX_BODY as u64 {
        return Err(TOO_LARGE);
    }
    let body = Limited::new(request.into_body(), MAX_BODY).collect();
    match shardwheel::timeout(context.timeout, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(TOO_LARGE),
        Ok(Err(_)) => Err(bad("the body was cut off")),
        Err(_) => Err(Refusal(StatusCode::REQUEST_TIMEOUT, "the body did not come in time")),
    }
}

/// Passes a message to the writer, and waits for the answer. There is none if the program ends.
async fn ask<T>(
    context: &Context,
    message: impl FnOnce(oneshot::Sender<T>) -> Message,
) -> Result<T, Refusal> {
    let unknown = || Refusal(StatusCode::SERVICE_UNAVAILABLE, "send it again: what was done is a duplicate");
    let (reply, answer) = oneshot::channel();
    context.messages.try_send(message(reply)).map_err(|_| unknown())?;
    answer.await.map_err(|_| unknown())
}

/// The writer is asked first: what it has decided is in the store when it answers. Then an order goes from
/// the pending ones to those that have ended, and not back.
async fn order(context: &Arc<Context>, id: &str) -> Result<Answered, Refusal> {
    let order_id = id.parse().map_err(|_| NOT_FOUND)?;
    let mut pending = ask(context, |reply| Message::Order { order_id, reply }).await?;
    if pending.is_none() {
        pending = read(context, move |store| store.open(order_id)).await?;
    }
    if let Some(order) = pending {
        return Ok(answer(StatusCode::OK, JSON, lines::order(&order, None)));
    }
    let ended = read(context, move |store| store.ended(order_id)).await?.ok_or(NOT_FOUND)?;
    Ok(answer(StatusCode::OK, JSON, lines::order(&ended.order, Some(&ended))))
}

async fn stock(context: &Context, item: &str) -> Result<Answered, Refusal> {
    let item = percent_decode_str(item).decode_utf8().ok().filter(|item| lines::is_name(item));
    let item = item.ok_or(bad("an item is 1 to 64 bytes of visible UTF-8 text without spaces"))?;
    let stock = ask(context, |reply| Message::Stock { item: item.to_string(), reply }).await?;
    Ok(answer(StatusCode::OK, JSON, lines::stock(&item, stock)))
}

async fn outcomes(context: &Arc<Context>, query: &str) -> Result<Answered, Refusal> {
    let (mut after, mut limit) = (0, DEFAULT_OUTCOMES);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match (name, value.parse::<u64>()) {
            ("after", Ok(seq)) => after = seq,
            ("limit", Ok(most)) => limit = usize::try_from(most).unwrap_or(MAX_OUTCOMES).min(MAX_OUTCOMES),
            ("after" | "limit", Err(_)) => return Err(bad("the query is after=SEQ&limit=N")),
            _ => {}
        }
    }
    let outcomes = read(context, move |store| store.outcomes(after, limit)).await?;
    let mut text = String::with_capacity(96 * outcomes.len());
    outcomes.iter().for_each(|outcome| lines::write_outcome(&mut text, outcome));
    Ok(answer(StatusCode::OK, LINES, text))
}

/// Reads the store on a thread that may wait for the disk. A damaged page is an error, or makes the thread
/// panic.
async fn read<R: Send + 'static>(
    context: &Arc<Context>,
    look: impl FnOnce(&Disk) -> Result<R, StoreError> + Send + 'static,
) -> Result<R, Refusal> {
    let store = Arc::clone(&context.store);
    let failed = || Refusal(StatusCode::INTERNAL_SERVER_ERROR, "the store cannot be read");
    let looked = task::spawn_blocking(move || look(&store)).await.map_err(|_| failed())?;
    looked.map_err(|error| {
        say!("error: {error}");
        failed()
    })
}

fn answer(status: StatusCode, kind: &'static str, text: String) -> Answered {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

//! Where a feed goes. A new kind of server is a variant of [`Target`] and one of [`Link`].

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use crate::client::{Client, Endpoint, Failure};
use crate::cluster::{self, Addressed, Kind, Line, Name};

/// A server that takes orders and payments.
pub(crate) enum Target {
    Http(Arc<Endpoint>),
    Nats(Arc<Desk>),
}

/// One connection to it. Over NATS all links share one.
pub(crate) enum Link {
    Http(Client),
    Nats { desk: Arc<Desk>, repeated: u64 },
}

/// The shop behind a broker. The first link that sends connects.
pub(crate) struct Desk {
    urls: String,
    give_up_after: Duration,
    client: OnceCell<cluster::ShopClient>,
}

impl Desk {
    async fn client(&self) -> Result<&cluster::ShopClient, Failure> {
        let connect = || cluster::ShopClient::connect(&self.urls, self.give_up_after);
        self.client.get_or_try_init(connect).await.map_err(|failure| Failure::Broker(failure.into()))
    }
}

/// Lines of one kind.
pub(crate) enum Batch<'a> {
    Orders(Vec<OrderLine<'a>>),
    Payments(Vec<PaymentLine<'a>>),
}

/// A line of `POST /orders`.
#[derive(Serialize)]
pub(crate) struct OrderLine<'a> {
    pub(crate) order_id: u64,
    pub(crate) item: &'a str,
    pub(crate) quantity: u32,
    pub(crate) amount_cents: u64,
}

/// A line of `POST /payments`.
#[derive(Serialize)]
pub(crate) struct PaymentLine<'a> {
    pub(crate) payment_id: String,
    pub(crate) order_id: u64,
    /// That of the order: it says which partition of a cluster the payment goes to.
    pub(crate) item: &'a str,
    pub(crate) amount_cents: u64,
}

/// What the server says about a line.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    pub(crate) status: String,
    pub(crate) check_at_ms: Option<u64>,
    pub(crate) error: Option<String>,
}

impl Target {
    pub(crate) fn new(url: &str, token: Option<&str>, give_up_after: Duration) -> Result<Self, Failure> {
        if url.starts_with(cluster::SCHEME) {
            let (urls, client) = (url.to_owned(), OnceCell::new());
            return Ok(Self::Nats(Arc::new(Desk { urls, give_up_after, client })));
        }
        Ok(Self::Http(Arc::new(Endpoint::new(url, token, give_up_after)?)))
    }

    pub(crate) fn link(&self) -> Link {
        match self {
            Self::Http(endpoint) => Link::Http(Client::new(Arc::clone(endpoint))),
            Self::Nats(desk) => Link::Nats { desk: Arc::clone(desk), repeated: 0 },
        }
    }
}

impl Link {
    /// Sends lines until they are answered; returns an answer for each, in order.
    pub(crate) async fn send(&mut self, batch: &Batch<'_>) -> Result<Vec<Answer>, Failure> {
        match self {
            Self::Http(client) => post(client, batch).await,
            Self::Nats { desk, repeated } => {
                let (answers, again) = ask(desk, batch).await?;
                *repeated += again;
                Ok(answers)
            }
        }
    }

    /// The number of requests that were sent again.
    pub(crate) fn repeated(&self) -> u64 {
        match self {
            Self::Http(client) => client.repeated,
            Self::Nats { repeated, .. } => *repeated,
        }
    }
}

impl Batch<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Orders(orders) => orders.len(),
            Self::Payments(payments) => payments.len(),
        }
    }

    /// The kind, as the paths of HTTP name it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Orders(_) => "orders",
            Self::Payments(_) => "payments",
        }
    }

    /// The lines in JSON.
    fn body(&self) -> Result<Vec<u8>, serde_json::Error> {
        match self {
            Self::Orders(orders) => lines(orders),
            Self::Payments(payments) => lines(payments),
        }
    }
}

/// Sends lines over a broker; also returns how many messages were sent again.
async fn ask(desk: &Desk, batch: &Batch<'_>) -> Result<(Vec<Answer>, u64), Failure> {
    let client = desk.client().await?;
    let (kind, lines) = match batch {
        Batch::Orders(orders) => (Kind::Orders, orders.iter().map(address_order).collect()),
        Batch::Payments(payments) => (Kind::Payments, payments.iter().map(address_payment).collect()),
    };
    let asked = client.ask(kind, lines).await;
    let (lines, again) = asked.map_err(|failure| Failure::Broker(failure.into()))?;
    let answer = |Line { status, check_at_ms, error, .. }| Answer {
        status: Option::unwrap_or_default(status),
        check_at_ms,
        error,
    };
    Ok((lines.into_iter().map(answer).collect(), again))
}

fn address_order<'a>(order: &OrderLine<'a>) -> Result<Addressed<'a>, serde_json::Error> {
    Addressed::new(order.item, Name::Order(order.order_id), order)
}

fn address_payment<'a>(payment: &PaymentLine<'a>) -> Result<Addressed<'a>, serde_json::Error> {
    Addressed::new(payment.item, Name::Payment(payment.payment_id.clone()), payment)
}

fn lines<T: Serialize>(lines: &[T]) -> Result<Vec<u8>, serde_json::Error> {
    let mut body = Vec::with_capacity(96 * lines.len());
    for line in lines {
        serde_json::to_writer(&mut body, line)?;
        body.push(b'\n');
    }
    Ok(body)
}

async fn post(client: &mut Client, batch: &Batch<'_>) -> Result<Vec<Answer>, Failure> {
    let path = format!("/{}", batch.kind());
    let wrong = |text: String| Failure::Answer { path: path.clone(), text };
    let body = batch.body().map_err(|error| wrong(error.to_string()))?;
    let reply = client.post(&path, Bytes::from(body)).await?;
    if !reply.found {
        return Err(wrong("the server does not know the path".to_owned()));
    }
    let answers = serde_json::Deserializer::from_slice(&reply.body).into_iter::<Answer>();
    let answers = answers.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(error.to_string()))?;
    if answers.len() == batch.len() {
        Ok(answers)
    } else {
        Err(wrong(format!("{} lines have {} answers", batch.len(), answers.len())))
    }
}

//! Where outcomes come from. A new kind of server is a variant of [`Source`] and one of [`Reader`].

use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::{Client, Endpoint, Failure};

/// Outcomes in one page.
const PAGE: usize = 10_000;

/// A server that has decided orders.
pub(crate) enum Source {
    Http(Arc<Endpoint>),
}

/// One connection to it.
pub(crate) enum Reader {
    Http(Client),
}

/// How an order ended, in the order of decision.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) seq: u64,
    pub(crate) order_id: u64,
    pub(crate) state: String,
    pub(crate) decided_at_ms: u64,
}

/// A line of outcomes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Outcome(Outcome),
    /// The server cannot read its record.
    Damaged {
        seq: u64,
        error: String,
    },
}

impl Line {
    fn outcome(self, path: &str) -> Result<Outcome, Failure> {
        match self {
            Self::Outcome(outcome) => Ok(outcome),
            Self::Damaged { seq, error } => {
                Err(Failure::Answer { path: path.to_owned(), text: format!("outcome {seq}: {error}") })
            }
        }
    }
}

/// An order by itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Order {
    pub(crate) item: String,
    pub(crate) quantity: u32,
    pub(crate) amount_cents: u64,
    pub(crate) state: String,
    pub(crate) check_at_ms: u64,
    pub(crate) decided_at_ms: Option<u64>,
}

/// The units of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Stock {
    pub(crate) stock: u64,
    pub(crate) reserved: u64,
    pub(crate) sold: u64,
}

impl Source {
    pub(crate) fn new(url: &str, token: Option<&str>, give_up_after: Duration) -> Result<Self, Failure> {
        Ok(Self::Http(Arc::new(Endpoint::new(url, token, give_up_after)?)))
    }

    pub(crate) fn reader(&self) -> Reader {
        match self {
            Self::Http(endpoint) => Reader::Http(Client::new(Arc::clone(endpoint))),
        }
    }
}

impl Reader {
    /// The number of orders that wait for their check.
    pub(crate) async fn pending(&mut self) -> Result<u64, Failure> {
        match self {
            Self::Http(client) => pending(client).await,
        }
    }

    /// The outcomes that come after a number, some at a time. None: there are no more.
    pub(crate) async fn outcomes(&mut self, after: u64) -> Result<Vec<Outcome>, Failure> {
        match self {
            Self::Http(client) => {
                let path = format!("/outcomes?after={after}&limit={PAGE}");
                lines(client, &path).await?.into_iter().map(|line: Line| line.outcome(&path)).collect()
            }
        }
    }

    pub(crate) async fn order(&mut self, order_id: u64) -> Result<Option<Order>, Failure> {
        match self {
            Self::Http(client) => Ok(lines(client, &format!("/orders/{order_id}")).await?.pop()),
        }
    }

    pub(crate) async fn stock(&mut self, item: &str) -> Result<Stock, Failure> {
        match self {
            Self::Http(client) => {
                let path = format!("/stock/{}", utf8_percent_encode(item, NON_ALPHANUMERIC));
                let missing = || Failure::Answer { path: path.clone(), text: "there is no stock".to_owned() };
                lines(client, &path).await?.pop().ok_or_else(missing)
            }
        }
    }
}

/// The lines of an answer; none if there is no such thing.
async fn lines<T: DeserializeOwned>(client: &mut Client, path: &str) -> Result<Vec<T>, Failure> {
    let reply = client.get(path).await?;
    if !reply.found {
        return Ok(Vec::new());
    }
    let lines = serde_json::Deserializer::from_slice(&reply.body).into_iter();
    let wrong = |error: serde_json::Error| Failure::Answer { path: path.to_owned(), text: error.to_string() };
    lines.collect::<Result<_, _>>().map_err(wrong)
}

async fn pending(client: &mut Client) -> Result<u64, Failure> {
    let path = "/metrics";
    let reply = client.get(path).await?;
    let text = String::from_utf8_lossy(&reply.body);
    let value = text.lines().find_map(|line| line.strip_prefix("orders_pending ")?.parse().ok());
    value.ok_or_else(|| Failure::Answer {
        path: path.to_owned(),
        text: "orders_pending is missing".to_owned(),
    })
}

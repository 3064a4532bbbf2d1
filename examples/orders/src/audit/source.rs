//! Where outcomes come from: a server over HTTP.

use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::{Client, Endpoint, Failure};

/// Outcomes in one page.
const PAGE: usize = 10_000;

/// One connection to a server that has decided orders.
pub(crate) struct Reader(Client);

/// How an order ended, in the order of decision.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) seq: u64,
    pub(crate) order_id: u64,
    pub(crate) state: String,
    pub(crate) decided_at_ms: u64,
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

impl Reader {
    pub(crate) fn new(endpoint: &Arc<Endpoint>) -> Self {
        Self(Client::new(Arc::clone(endpoint)))
    }

    /// The number of orders that wait for their check.
    pub(crate) async fn pending(&mut self) -> Result<u64, Failure> {
        let reply = self.0.get("/metrics").await?;
        let text = String::from_utf8_lossy(&reply.body);
        let value = text.lines().find_map(|line| line.strip_prefix("orders_pending ")?.parse().ok());
        value.ok_or_else(|| Failure::answer("/metrics", "orders_pending is missing"))
    }

    /// The outcomes that come after a number, some at a time. None: there are no more.
    pub(crate) async fn outcomes(&mut self, after: u64) -> Result<Vec<Outcome>, Failure> {
        self.lines(&format!("/outcomes?after={after}&limit={PAGE}")).await
    }

    pub(crate) async fn order(&mut self, order_id: u64) -> Result<Option<Order>, Failure> {
        Ok(self.lines(&format!("/orders/{order_id}")).await?.pop())
    }

    pub(crate) async fn stock(&mut self, item: &str) -> Result<Stock, Failure> {
        let path = format!("/stock/{}", utf8_percent_encode(item, NON_ALPHANUMERIC));
        self.lines(&path).await?.pop().ok_or_else(|| Failure::answer(&path, "there is no stock"))
    }

    /// The lines of an answer; none if there is no such thing.
    async fn lines<T: DeserializeOwned>(&mut self, path: &str) -> Result<Vec<T>, Failure> {
        let reply = self.0.get(path).await?;
        if !reply.found {
            return Ok(Vec::new());
        }
        let lines = serde_json::Deserializer::from_slice(&reply.body).into_iter();
        lines.collect::<Result<_, _>>().map_err(|error| Failure::answer(path, error))
    }
}

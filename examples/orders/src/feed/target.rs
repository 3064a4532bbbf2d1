//! Where a feed goes. A new kind of server is a variant of [`Target`] and one of [`Link`].

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::OnceCell;

use crate::client::{Client, Endpoint, Failure};
use crate::cluster::{self, Addressed, Kind, Line};

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
        self.client.get_or_try_init(connect).await.map_err(Failure::broker)
    }
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
    /// Sends lines of a kind until they are answered; returns an answer for each, in order.
    pub(crate) async fn send(&mut self, kind: Kind, lines: &[Addressed<'_>]) -> Result<Vec<Line>, Failure> {
        match self {
            Self::Http(client) => post(client, kind, lines).await,
            Self::Nats { desk, repeated } => {
                let asked = desk.client().await?.ask(kind, lines).await;
                let (answers, again) = asked.map_err(Failure::broker)?;
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

async fn post(client: &mut Client, kind: Kind, lines: &[Addressed<'_>]) -> Result<Vec<Line>, Failure> {
    let path = format!("/{}", kind.name());
    let wrong = |text: String| Failure::answer(&path, text);
    let body = lines.iter().map(|line| &*line.line).collect::<String>();
    let reply = client.post(&path, Bytes::from(body)).await?;
    if !reply.found {
        return Err(wrong("the server does not know the path".to_owned()));
    }
    let answers = serde_json::Deserializer::from_slice(&reply.body).into_iter::<Line>();
    let answers = answers.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(error.to_string()))?;
    if answers.len() == lines.len() {
        Ok(answers)
    } else {
        Err(wrong(format!("{} lines have {} answers", lines.len(), answers.len())))
    }
}

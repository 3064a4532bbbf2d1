//! `/healthz` and `/metrics` of a worker.
//!
//! A worker is well if it is connected, sees the changes of the bucket, and serves all partitions that it
//! has. Otherwise `/healthz` answers 503 and says why: what is waited for, and which partitions have
//! stopped.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::Client;
use async_nats::connection::State;

use crate::serve::http;
use crate::serve::metrics::Metrics;
use crate::serve::places::{self, Limits};

/// How a worker is. The worker writes; requests for `/healthz` read.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// It is there once there was a connection.
    client: Option<Client>,
    /// What the worker waits for.
    waits: Option<String>,
    /// Why partitions have stopped.
    stopped: BTreeMap<u32, String>,
}

impl Health {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn connected(&self, client: Client) {
        self.inner().client = Some(client);
    }

    pub(crate) fn wait_for(&self, what: Option<String>) {
        self.inner().waits = what;
    }

    pub(crate) fn stop(&self, partition: u32, why: String) {
        self.inner().stopped.insert(partition, why);
    }

    /// The partition goes on, or is another worker's.
    pub(crate) fn go_on(&self, partition: u32) {
        self.inner().stopped.remove(&partition);
    }

    /// What is wrong, a line each.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        let inner = self.inner();
        let cut = inner.client.as_ref().is_none_or(|client| client.connection_state() != State::Connected);
        let waits = inner.waits.clone().or_else(|| cut.then(|| "waiting for NATS: no connection".to_owned()));
        let stopped =
            inner.stopped.iter().map(|(number, why)| format!("partition {number} has stopped: {why}"));
        let wrong = waits.into_iter().chain(stopped).map(|line| line + "\n").collect::<String>();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

/// Answers requests on an address, until the worker ends; returns the address.
pub(crate) fn listen(
    at: SocketAddr,
    limits: Limits,
    token: Option<String>,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
) -> std::io::Result<SocketAddr> {
    let listener = places::bind(at, limits)?;
    let address = listener.local_addr()?;
    let token = Arc::<Option<String>>::new(token);
    let handle = move |_, request| {
        let (metrics, token, health) = (Arc::clone(&metrics), Arc::clone(&token), Arc::clone(&health));
        async move { http::of_worker(&request, token.as_deref(), &metrics, health.verdict()) }
    };
    tokio::spawn(places::serve(listener, limits, handle));
    Ok(address)
}

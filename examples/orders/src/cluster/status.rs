//! `/healthz` and `/metrics` of a worker.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::serve::http;
use crate::serve::metrics::Metrics;
use crate::serve::places::{self, Limits};

/// Answers requests on an address, until the worker ends; returns the address.
pub(crate) fn listen(
    at: SocketAddr,
    limits: Limits,
    token: Option<String>,
    metrics: Arc<Metrics>,
) -> std::io::Result<SocketAddr> {
    let listener = places::bind(at)?;
    let address = listener.local_addr()?;
    let token = Arc::<Option<String>>::new(token);
    let handle = move |_, request| {
        let (metrics, token) = (Arc::clone(&metrics), Arc::clone(&token));
        async move { http::of_worker(&request, token.as_deref(), &metrics) }
    };
    tokio::spawn(places::serve(listener, limits, handle));
    Ok(address)
}

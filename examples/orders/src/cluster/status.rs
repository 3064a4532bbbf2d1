//! `/healthz` and `/metrics` of a worker.
//!
//! A worker is well if it is connected and sees the changes of the bucket, and if each partition
//! that it has is served. Each other one has a worker, by `view.rs`. A partition is served if no
//! message waits for its answer for longer than [`LATE`], and its owner has made progress since.
//! Otherwise `/healthz` answers 503 and says why.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::connection::State;

use crate::serve::http;
use crate::serve::metrics::Metrics;
use crate::serve::places::{self, Limits};

use super::pulse::{Pulse, Vitals};

/// A worker is not well while something waits for longer than this.
const LATE: Duration = Duration::from_secs(10);

/// How a worker is. The worker and its owners write; requests read.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// It is there once there was a connection.
    client: Option<Client>,
    /// The worker has begun to take partitions.
    ready: bool,
    /// What the worker waits for.
    waits: Option<String>,
    /// The partitions that it has.
    held: BTreeMap<u32, Pulse>,
}

/// What is wrong with a partition.
fn wrong(number: u32, pulse: &Pulse) -> Option<String> {
    let Vitals { progress, unanswered, failure, stopped, .. } = pulse.vitals();
    let why = failure.map(|failure| format!(": {failure}")).unwrap_or_default();
    if stopped {
        return Some(format!("partition {number} has stopped{why}"));
    }
    if let Some((message, since)) = unanswered.filter(|(_, since)| since.elapsed() >= LATE) {
        let wait = since.elapsed().as_secs();
        return Some(format!(
            "partition {number} has not answered message {message}, which waits for {wait} s{why}"
        ));
    }
    let idle = progress.elapsed();
    (idle >= LATE).then(|| format!("partition {number} makes no progress for {} s{why}", idle.as_secs()))
}

impl Health {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn connected(&self, client: Client) {
        self.inner().client = Some(client);
    }

    pub(crate) fn ready(&self) {
        let mut inner = self.inner();
        (inner.ready, inner.waits) = (true, None);
    }

    pub(crate) fn wait_for(&self, what: Option<String>) {
        self.inner().waits = what;
    }

    /// The worker has a partition now.
    pub(crate) fn hold(&self, partition: u32, pulse: Pulse) {
        self.inner().held.insert(partition, pulse);
    }

    /// The worker has it no more.
    pub(crate) fn leave(&self, partition: u32) {
        self.inner().held.remove(&partition);
    }

    /// What is wrong, a line each.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        let inner = self.inner();
        let cut = inner.client.as_ref().is_none_or(|client| client.connection_state() != State::Connected);
        let cut = cut.then_some("waiting for NATS: no connection");
        let begins = (!inner.ready).then_some("waiting for NATS: the shop is not found yet");
        let waits = inner.waits.clone().or_else(|| cut.or(begins).map(str::to_owned));
        let held = inner.held.iter().filter_map(|(number, pulse)| wrong(*number, pulse));
        let wrong = waits.into_iter().chain(held).map(|line| line + "\n").collect::<String>();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Sets what metrics say of the worker now.
    fn measure(&self, metrics: &Metrics) {
        metrics.set("orders_ready", f64::from(u8::from(self.verdict().is_ok())));
        let vitals = self.inner().held.values().map(Pulse::vitals).collect::<Vec<_>>();
        let sum = |value: fn(&Vitals) -> u64| vitals.iter().map(value).sum::<u64>() as f64;
        metrics.set("orders_pending", sum(|vitals| vitals.pending));
        metrics.set("orders_partitions_owned", sum(|_| 1));
        metrics.set("orders_partitions_stopped", sum(|vitals| u64::from(vitals.stopped)));
        let longest = |since: fn(&Vitals) -> Option<Instant>| {
            vitals.iter().filter_map(since).min().map_or(0.0, |since| since.elapsed().as_secs_f64())
        };
        metrics.set("orders_unanswered_seconds", longest(|vitals| Some(vitals.unanswered?.1)));
        metrics.set("orders_progress_age_seconds", longest(|vitals| Some(vitals.progress)));
    }
}

/// Answers requests on an address, until the worker ends; returns the address.
pub(crate) fn listen(
    at: SocketAddr,
    limits: Limits,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
) -> std::io::Result<SocketAddr> {
    let listener = places::bind(at)?;
    let address = listener.local_addr()?;
    let handle = move |request| {
        let (metrics, health) = (Arc::clone(&metrics), Arc::clone(&health));
        async move {
            health.measure(&metrics);
            http::of_worker(&request, &metrics, health.verdict())
        }
    };
    tokio::spawn(places::serve(listener, limits, handle));
    Ok(address)
}

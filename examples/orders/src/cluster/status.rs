//! `/healthz` and `/metrics` of a worker.
//!
//! A worker is well if it is connected and sees the changes of the bucket, and if each partition that it has is
//! served. Each other one has a worker, by `view.rs`. A partition is served if no message waits for its answer for
//! longer than [`LATE`], and its owner has made progress since. Otherwise `/healthz` answers 503 and says why.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::connection::State;

use crate::serve::http;
use crate::serve::metrics::{Figure, Metrics};
use crate::serve::places::{self, Limits};
use crate::serve::shared::LATE;

use super::broker::Broker;
use super::pulse::{Pulse, Vitals};

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
    held: BTreeMap<u32, Has>,
    /// The last progress of partitions that this worker has given up, or has taken again.
    given_up: BTreeMap<u32, Instant>,
    /// Streams that may lose messages.
    limits: Vec<String>,
    /// Another worker has this one's name, which is here; and when that was seen.
    namesake: Option<(String, Instant)>,
}

#[derive(Debug)]
struct Has {
    pulse: Pulse,
    /// When it was taken; or, if it was given up before and no other worker had it, the last progress then.
    since: Instant,
    /// Why it has stopped.
    stopped: Option<String>,
}

impl Has {
    fn last_progress(&self) -> Instant {
        self.pulse.progressed().unwrap_or(self.since)
    }

    /// What is wrong with it.
    fn wrong(&self) -> Option<String> {
        if let Some(why) = &self.stopped {
            return Some(format!("has stopped: {why}"));
        }
        let (Vitals { unanswered, failure, .. }, idle) =
            (self.pulse.vitals(), self.last_progress().elapsed());
        let why = failure.map(|failure| format!(": {failure}")).unwrap_or_default();
        if let Some((number, since)) = unanswered.filter(|(_, since)| since.elapsed() >= LATE) {
            let wait = since.elapsed().as_secs();
            return Some(format!("has not answered message {number}, which waits for {wait} s{why}"));
        }
        (idle >= LATE).then(|| format!("makes no progress for {} s{why}", idle.as_secs()))
    }
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
        let mut inner = self.inner();
        let since = inner.given_up.get(&partition).copied().unwrap_or_else(Instant::now);
        inner.held.insert(partition, Has { pulse, since, stopped: None });
    }

    /// The worker has it no more.
    pub(crate) fn leave(&self, partition: u32) {
        let mut inner = self.inner();
        let before = inner.held.remove(&partition);
        if let Some(since) = before.map(|before| before.last_progress()) {
            inner.given_up.insert(partition, since);
        }
    }

    pub(crate) fn stop(&self, partition: u32, why: String) {
        if let Some(held) = self.inner().held.get_mut(&partition) {
            held.stopped = Some(why);
        }
    }

    pub(crate) fn serves(&self, partition: u32) {
        if let Some(held) = self.inner().held.get_mut(&partition) {
            held.stopped = None;
        }
    }

    /// Other workers have all partitions that this one has not.
    pub(crate) fn note_others(&self) {
        let Inner { given_up, held, .. } = &mut *self.inner();
        given_up.retain(|number, _| held.contains_key(number));
    }

    /// The partitions that the worker has.
    fn held(&self) -> Vec<u32> {
        self.inner().held.keys().copied().collect()
    }

    fn note_limits(&self, limits: Vec<String>) {
        let mut inner = self.inner();
        for line in limits.iter().filter(|line| !inner.limits.contains(line)) {
            say!("{line}");
        }
        inner.limits = limits;
    }

    pub(crate) fn note_namesake(&self, name: &str) {
        self.inner().namesake = Some((name.to_owned(), Instant::now()));
    }

    /// What is wrong, a line each.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        let inner = self.inner();
        let cut = inner.client.as_ref().is_none_or(|client| client.connection_state() != State::Connected);
        let cut = cut.then_some("waiting for NATS: no connection");
        let begins = (!inner.ready).then_some("waiting for NATS: the shop is not found yet");
        let waits = inner.waits.clone().or_else(|| cut.or(begins).map(str::to_owned));
        let held = inner
            .held
            .iter()
            .filter_map(|(number, held)| Some(format!("partition {number} {}", held.wrong()?)));
        let namesake = inner.namesake.as_ref().filter(|(_, at)| at.elapsed() < LATE);
        let namesake = namesake.map(|(name, _)| format!("another worker is named {name} as well"));
        let wrong = waits.into_iter().chain(namesake).chain(inner.limits.iter().cloned());
        let wrong = wrong.chain(held).map(|line| line + "\n").collect::<String>();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Sets what metrics say of the worker now.
    fn measure(&self, metrics: &Metrics) {
        metrics.of(Figure::Ready).set(u64::from(self.verdict().is_ok()));
        let inner = self.inner();
        let vitals = inner.held.values().map(|held| held.pulse.vitals()).collect::<Vec<_>>();
        metrics.of(Figure::Pending).set(vitals.iter().map(|vitals| vitals.pending).sum());
        let longest =
            |times: &mut dyn Iterator<Item = Duration>| times.max().unwrap_or_default().as_millis() as u64;
        let mut waits = vitals.iter().filter_map(|vitals| Some(vitals.unanswered?.1.elapsed()));
        metrics.of(Figure::UnansweredMillis).set(longest(&mut waits));
        let mut idle = inner.held.values().map(|held| held.last_progress().elapsed());
        metrics.of(Figure::IdleMillis).set(longest(&mut idle));
        metrics.of(Figure::Owned).set(inner.held.len() as u64);
        let stopped = inner.held.values().filter(|held| held.stopped.is_some());
        metrics.of(Figure::Stopped).set(stopped.count() as u64);
    }
}

/// Looks at the limits of streams again and again: they may change while the worker works.
pub(crate) async fn watch_limits(broker: Broker, health: Arc<Health>) {
    loop {
        let limits = broker.limits(&health.held()).await;
        health.note_limits(limits);
        shardwheel::sleep(LATE).await;
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
        async move {
            health.measure(&metrics);
            http::of_worker(&request, token.as_deref(), &metrics, health.verdict())
        }
    };
    tokio::spawn(places::serve(listener, limits, handle));
    Ok(address)
}

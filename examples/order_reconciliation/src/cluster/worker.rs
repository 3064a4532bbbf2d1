//! A worker: holds leases of partitions, and runs an owner for each.
//!
//! The worker renews its leases and its own entry three times in the length of a lease. It learns
//! from the bucket's changes what became of them, and what others hold. It takes partitions that
//! nobody holds up to its fair share, and gives up what is beyond it.
//!
//! A worker that sees no changes of the bucket, not even its own, is *blind*: it takes nothing, and
//! counts anew when it sees again. Otherwise every lease would seem to have lapsed while the bucket
//! elects a leader.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use async_nats::jetstream::kv::{Entry, Operation, Store};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};

use super::broker::Failure;
use super::names;
use super::owner::{self, Office};
use super::view::View;

/// The pause before an owner begins again.
const PAUSE: Duration = Duration::from_millis(100);

/// A lease that this worker holds.
struct Held {
    revision: u64,
    /// The revision when it was taken: it tells the owners of two times apart.
    since: u64,
    /// Ends the owner when it is sent or dropped.
    stop: watch::Sender<bool>,
    /// The owner was asked to stop; then the lease is released.
    leaving: bool,
}

/// The partition, and since when this worker held it.
type Task = (u32, u64);

type Ended = Result<(Task, Result<(), Failure>), JoinError>;

pub(crate) struct Worker {
    office: Office,
    name: String,
    /// What this worker writes into its entries: nobody else does, nor did it before.
    session: String,
    lease: Duration,
    view: View,
    changes: mpsc::UnboundedReceiver<Entry>,
    held: BTreeMap<u32, Held>,
    owners: JoinSet<(Task, Result<(), Failure>)>,
}

/// What a worker waits for.
enum Event {
    Changed(Entry),
    CaughtUp(u32),
    Ended(Ended),
    Woken,
    Signalled,
}

impl Worker {
    pub(crate) fn new(office: Office, name: String, lease: Duration) -> Self {
        let session = format!("{name}/{:016x}", fastrand::u64(..));
        let (view, held, owners) = (View::new(lease), BTreeMap::new(), JoinSet::new());
        let (sender, changes) = mpsc::unbounded_channel();
        tokio::spawn(follow(office.broker.bucket.clone(), lease, sender));
        Self { office, name, session, lease, view, changes, held, owners }
    }

    /// Works until a signal ends it.
    pub(crate) async fn run(
        mut self,
        mut caught_up: mpsc::UnboundedReceiver<u32>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut ends = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
        let mut renewal = Instant::now();
        loop {
            match self.event(renewal, &mut caught_up, &mut ends).await {
                Event::Changed(entry) => self.changed(entry, out)?,
                Event::CaughtUp(number) => say(out, &format!("partition {number} owned"))?,
                Event::Ended(ended) => self.ended(ended, out).await?,
                Event::Woken => {}
                Event::Signalled => return self.leave().await,
            }
            if Instant::now() >= renewal {
                renewal = Instant::now() + self.lease / 3;
                self.renew().await;
            }
            self.balance().await;
        }
    }

    async fn event(
        &mut self,
        renewal: Instant,
        caught_up: &mut mpsc::UnboundedReceiver<u32>,
        [terminate, interrupt]: &mut [Signal; 2],
    ) -> Event {
        let lapse = self.view.next_lapse(Instant::now());
        let wake = lapse.map_or(renewal, |lapse| lapse.min(renewal));
        tokio::select! {
            Some(entry) = self.changes.recv() => Event::Changed(entry),
            Some(number) = caught_up.recv() => Event::CaughtUp(number),
            Some(ended) = self.owners.join_next() => Event::Ended(ended),
            () = shardwheel::sleep_until(wake) => Event::Woken,
            _ = terminate.recv() => Event::Signalled,
            _ = interrupt.recv() => Event::Signalled,
        }
    }

    /// Enters a change of the bucket.
    fn changed(&mut self, entry: Entry, out: &mut dyn Write) -> Result<(), Failure> {
        let Entry { key, value, revision, operation, .. } = entry;
        let holder = if operation == Operation::Put { String::from_utf8_lossy(&value) } else { "".into() };
        let now = Instant::now();
        if key == names::worker(&self.name) && self.is_blind(now) {
            self.view.refresh(now);
        }
        if let Some((number, held)) =
            partition(&key).and_then(|number| Some((number, self.held.get_mut(&number)?)))
        {
            if revision > held.revision && holder == self.session {
                held.revision = revision;
            } else if revision > held.revision {
                self.held.remove(&number);
                say(out, &format!("partition {number} lost"))?;
            }
        }
        self.view.note(key, revision, holder.into_owned(), now);
        Ok(())
    }

    fn is_blind(&self, now: Instant) -> bool {
        let seen = self.view.seen_at(&names::worker(&self.name));
        seen.is_none_or(|at| now.saturating_duration_since(at) >= self.lease)
    }

    /// Renews what this worker holds. An answer that is lost is no loss: the change comes by the
    /// bucket.
    async fn renew(&mut self) {
        let (bucket, session) = (&self.office.broker.bucket, Bytes::from(self.session.clone()));
        let alive = async { drop(bucket.put(names::worker(&self.name), session.clone()).await) };
        let renewals = self.held.iter_mut().filter(|(_, held)| !held.leaving).map(|(&number, held)| {
            let session = session.clone();
            async move {
                if let Ok(revision) = bucket.update(names::lease(number), session, held.revision).await {
                    held.revision = revision;
                }
            }
        });
        let all = async { tokio::join!(alive, join_all(renewals)) };
        let _ = shardwheel::timeout(self.lease / 3, all).await;
    }

    /// Takes partitions up to the fair share, and gives up what is beyond it.
    async fn balance(&mut self) {
        let now = Instant::now();
        if self.is_blind(now) {
            return;
        }
        let partitions = self.office.broker.settings.partitions;
        let share = self.view.share(&self.name, partitions, now);
        let surplus = self.held.len().saturating_sub(share);
        for held in self.held.values_mut().rev().take(surplus).filter(|held| !held.leaving) {
            held.leaving = true;
            held.stop.send_replace(true);
        }
        // Workers begin at different places, so that they rarely want the same partition.
        let first = names::partition_of(&self.name, partitions);
        for number in (first..partitions).chain(0..first) {
            if self.held.len() >= share {
                break;
            }
            if let Some(revision) = self.view.free(number, now).filter(|_| !self.held.contains_key(&number)) {
                self.take(number, revision).await;
            }
        }
    }

    async fn take(&mut self, number: u32, revision: u64) {
        let (key, session) = (names::lease(number), self.session.clone());
        let update = self.office.broker.bucket.update(&key, session.clone().into(), revision);
        // If the answer is lost, the lease lapses again, or another worker was first.
        let Ok(Ok(revision)) = shardwheel::timeout(self.lease / 3, update).await else { return };
        self.view.note(key, revision, session, Instant::now());
        let (stop, _) = watch::channel(false);
        self.held.insert(number, Held { revision, since: revision, stop, leaving: false });
        self.start(number, Duration::ZERO);
    }

    fn start(&mut self, number: u32, pause: Duration) {
        let Some(held) = self.held.get(&number) else { return };
        let (office, task, mut stop) = (self.office.clone(), (number, held.since), held.stop.subscribe());
        self.owners.spawn(async move {
            // An owner may be dropped at any instant, as by a crash.
            let own = async {
                shardwheel::sleep(pause).await;
                owner::own(office, number).await
            };
            tokio::select! {
                _ = stop.changed() => (task, Ok(())),
                result = own => (task, result),
            }
        });
    }

    /// An owner has ended: the worker releases the lease, or starts another owner.
    async fn ended(&mut self, ended: Ended, out: &mut dyn Write) -> Result<(), Failure> {
        let ((number, since), result) = ended?;
        if let Err(failure) = result {
            eprintln!("{}: partition {number} begins again: {failure}", self.name);
            self.look(number, out).await?;
        }
        match self.held.get(&number) {
            // The owner is of an earlier time. There is another one, or another worker's.
            None => {}
            Some(held) if held.since != since => {}
            Some(held) if held.leaving => {
                let revision = held.revision;
                self.held.remove(&number);
                self.release(number, revision).await;
            }
            Some(_) => self.start(number, PAUSE),
        }
        Ok(())
    }

    /// Looks whether it still has a lease: the change may not have come yet.
    async fn look(&mut self, number: u32, out: &mut dyn Write) -> Result<(), Failure> {
        let entry = self.office.broker.bucket.entry(names::lease(number));
        match shardwheel::timeout(self.lease / 3, entry).await {
            Ok(Ok(Some(entry))) => self.changed(entry, out),
            _ => Ok(()),
        }
    }

    async fn release(&self, number: u32, revision: u64) {
        let update = self.office.broker.bucket.update(names::lease(number), Bytes::new(), revision);
        // If it fails, the lease lapses.
        let _ = shardwheel::timeout(self.lease, update).await;
    }

    /// Stops all owners, and releases all leases.
    async fn leave(mut self) -> Result<(), Failure> {
        self.owners.shutdown().await;
        let held = std::mem::take(&mut self.held);
        join_all(held.iter().map(|(&number, held)| self.release(number, held.revision))).await;
        let gone = self.office.broker.bucket.put(names::worker(&self.name), Bytes::new());
        let _ = shardwheel::timeout(self.lease, gone).await;
        Ok(())
    }
}

/// Passes the changes of the bucket on, until nobody listens. The worker changes the bucket several
/// times in the length of a lease, so a watch that is silent for so long is broken.
async fn follow(bucket: Store, lease: Duration, changes: mpsc::UnboundedSender<Entry>) {
    while !changes.is_closed() {
        if let Ok(mut watch) = bucket.watch_with_history(">").await {
            while let Ok(Some(Ok(entry))) = shardwheel::timeout(lease, watch.next()).await {
                // The loop above finds out.
                let _ = changes.send(entry);
            }
        }
        shardwheel::sleep(PAUSE).await;
    }
}

/// The partition of a lease.
fn partition(key: &str) -> Option<u32> {
    key.strip_prefix(names::LEASE)?.parse().ok()
}

pub(crate) fn say(out: &mut dyn Write, line: &str) -> Result<(), Failure> {
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

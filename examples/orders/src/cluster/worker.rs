//! A worker: holds leases of partitions, and runs an owner for each.
//!
//! The worker renews its leases and its own entry three times in the length of a lease. It learns
//! from the bucket's changes what became of them, and what others hold. It takes partitions that no
//! worker holds, up to its fair share, and gives up what is beyond its share.
//!
//! A worker that sees no changes of the bucket, not even its own, is *blind*: it takes nothing, and
//! counts anew when it sees again. Otherwise every lease would seem to have lapsed while the bucket
//! elects a leader.
//!
//! A change says that a lease was renewed. The revision that a renewal needs comes from the answers of the
//! bucket's leader alone: after a server died, replicas were seen to number the same changes differently.
//!
//! A lease is renewed only while its owner makes progress (`pulse.rs`). An owner that makes none is stopped,
//! and its lease is released; this worker leaves the partition to others for a while. A partition is an
//! *orphan* if no worker with room has taken it for the length of a lease: then any worker takes it, beyond
//! its share.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use async_nats::jetstream::kv::Entry;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::failure::{Failure, SAY};
use super::held::Held;
use super::names;
use super::namesakes::Namesakes;
use super::owner::{self, Office};
use super::pulse;
use super::view::View;
use super::watch::{follow, holder, partition};

/// How long a partition must stay without a holder, in leases, before the worker that gave it up takes it
/// again.
const SHUNNED: u32 = 3;

/// The partition, and since when this worker held it.
type Task = (u32, u64);

type Ended = Result<(Task, Result<(), Failure>), JoinError>;

pub(crate) struct Worker {
    office: Office,
    name: String,
    /// What this worker writes into its entries. No other worker writes the same, nor did this one before.
    session: String,
    lease: Duration,
    view: View,
    changes: mpsc::UnboundedReceiver<Entry>,
    held: BTreeMap<u32, Held>,
    /// Leases that this worker may have taken, for the answer did not come in time; with the revisions
    /// before that.
    claimed: HashMap<u32, u64>,
    /// Until when a partition that was given up is left to others.
    shunned: HashMap<u32, Instant>,
    owners: JoinSet<(Task, Result<(), Failure>)>,
    /// Since when the worker is blind, and when it said so.
    blind: Option<(Instant, Instant)>,
    namesakes: Namesakes,
}

/// What a worker waits for.
enum Event {
    Changed(Entry),
    Unwatched,
    CaughtUp(u32),
    Ended(Ended),
    Woken,
    Signalled,
}

impl Worker {
    pub(crate) fn new(office: Office, name: String, lease: Duration) -> Self {
        let session = format!("{name}/{:016x}", fastrand::u64(..));
        let (view, held, owners) = (View::new(lease), BTreeMap::new(), JoinSet::new());
        let (claimed, shunned) = (HashMap::new(), HashMap::new());
        let (sender, changes) = mpsc::unbounded_channel();
        tokio::spawn(follow(office.broker.bucket.clone(), lease, sender));
        let (blind, namesakes) = (None, Namesakes::default());
        Self { office, name, session, lease, view, changes, held, claimed, shunned, owners, blind, namesakes }
    }

    /// Works until a signal ends it.
    pub(crate) async fn run(
        mut self,
        mut caught_up: mpsc::UnboundedReceiver<u32>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut ends = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
        let mut renewal = Instant::now();
        self.namesakes = Namesakes::before(&self.office.broker, &self.name).await;
        loop {
            match self.event(renewal, &mut caught_up, &mut ends).await {
                Event::Changed(entry) if self.namesakes.show(&entry, &self.session, &self.office.health) => {
                    let failure = self.namesakes.refusal();
                    self.leave().await?;
                    return Err(failure);
                }
                Event::Changed(entry) => self.changed(entry, out).await?,
                Event::Unwatched => return Err(Failure::permanent("the watch of the bucket has ended")),
                Event::CaughtUp(number) => self.serves(number, out)?,
                Event::Ended(ended) => self.ended(ended, out).await?,
                Event::Woken => {}
                Event::Signalled => return self.leave().await,
            }
            if Instant::now() >= renewal {
                renewal = Instant::now() + self.lease / 3;
                self.give_up_stalled();
                self.renew(out).await?;
                self.note_vacant();
            }
            self.balance(out).await?;
            self.say_blind();
        }
    }

    fn serves(&mut self, number: u32, out: &mut dyn Write) -> Result<(), Failure> {
        if let Some(held) = self.held.get_mut(&number) {
            held.serves();
        }
        self.office.health.serves(number);
        say(out, &format!("partition {number} owned"))
    }

    /// Notes the partitions that no worker owns.
    fn note_vacant(&self) {
        let now = Instant::now();
        let others = (0..self.office.broker.settings.partitions).filter(|n| !self.held.contains_key(n));
        let vacant = others.map(|number| (number, self.view.vacant_since(number)));
        self.office.health.note_vacant(vacant.filter(|(_, since)| *since <= now));
    }

    /// Says every few seconds that no change of the bucket is seen.
    fn say_blind(&mut self) {
        let now = Instant::now();
        if !self.is_blind(now) {
            self.blind = None;
            return self.office.health.wait_for(None);
        }
        let (since, said) = *self.blind.get_or_insert((now, now));
        let silence = now.saturating_duration_since(since).as_secs();
        let text = format!("waiting for NATS: no change of the bucket {} is seen", names::BUCKET);
        if now.saturating_duration_since(said) >= SAY {
            self.blind = Some((since, now));
            say!("{}: {text} for {silence} s", self.name);
        }
        self.office.health.wait_for(Some(text));
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
            entry = self.changes.recv() => entry.map_or(Event::Unwatched, Event::Changed),
            Some(number) = caught_up.recv() => Event::CaughtUp(number),
            Some(ended) = self.owners.join_next() => Event::Ended(ended),
            () = shardwheel::sleep_until(wake) => Event::Woken,
            _ = terminate.recv() => Event::Signalled,
            _ = interrupt.recv() => Event::Signalled,
        }
    }

    /// Enters a change of the bucket.
    async fn changed(&mut self, entry: Entry, out: &mut dyn Write) -> Result<(), Failure> {
        let holder = holder(&entry);
        let (Entry { key, revision, .. }, now) = (entry, Instant::now());
        if key == names::worker(&self.name) && self.is_blind(now) {
            self.see_again(now);
        }
        let (number, own) = (partition(&key), holder == self.session);
        self.view.note(key, revision, holder, now);
        let Some(number) = number else { return Ok(()) };
        match self.held.get(&number) {
            Some(held) if !own && revision > held.revision => self.look(vec![number], out).await,
            None if own && self.claimed.remove(&number).is_some_and(|before| before < revision) => {
                self.hold(number, revision);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Begins to count anew.
    fn see_again(&mut self, now: Instant) {
        let blind = self.view.seen_at(&names::worker(&self.name)).map(|at| now.saturating_duration_since(at));
        self.view.refresh(now);
        // No owner can make progress without a broker.
        if blind.is_some_and(|blind| blind > pulse::patience(self.lease) / 2) {
            self.held.values().for_each(|held| held.pulse.beat());
        }
    }

    fn is_blind(&self, now: Instant) -> bool {
        let seen = self.view.seen_at(&names::worker(&self.name));
        seen.is_none_or(|at| now.saturating_duration_since(at) >= self.lease)
    }

    /// Stops owners that make no progress, if others seem to have a broker.
    fn give_up_stalled(&mut self) {
        let (now, patience) = (Instant::now(), pulse::patience(self.lease));
        if self.is_blind(now) {
            return;
        }
        for (&number, held) in self.held.iter_mut().filter(|(_, held)| !held.leaving && !held.stopped) {
            if now.saturating_duration_since(held.pulse.last()) >= patience {
                say!("{}: partition {number} is given up: no progress for {patience:?}", self.name);
                held.leave();
                self.shunned.insert(number, now + patience);
            }
        }
    }

    /// Renews what this worker holds. After an answer that was lost, the next renewal is refused, and the
    /// worker looks.
    async fn renew(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        let (bucket, session) = (&self.office.broker.bucket, Bytes::from(self.session.clone()));
        let alive = async { drop(bucket.put(names::worker(&self.name), session.clone()).await) };
        let renewals = self.held.iter_mut().filter(|(_, held)| !held.leaving).map(|(&number, held)| {
            let session = session.clone();
            async move {
                let renewed = bucket.update(names::lease(number), session, held.revision).await;
                renewed.map(|revision| held.revision = revision).err().map(|_| number)
            }
        });
        let all = async { tokio::join!(join_all(renewals), alive).0 };
        let refused = shardwheel::timeout(self.lease / 3, all).await.unwrap_or_default();
        self.look(refused.into_iter().flatten().collect(), out).await
    }

    /// Takes partitions up to the fair share, and gives up what is beyond it.
    async fn balance(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        let now = Instant::now();
        if self.is_blind(now) {
            return Ok(());
        }
        let partitions = self.office.broker.settings.partitions;
        let share = self.view.share(&self.name, partitions, now);
        let counted = self.held.values_mut().rev().filter(|held| held.exempt_until <= now);
        let counted = counted.collect::<Vec<_>>();
        let surplus = counted.len().saturating_sub(share);
        counted.into_iter().take(surplus).filter(|held| !held.leaving).for_each(Held::leave);
        self.shunned.retain(|_, until| *until > now);
        let refused = self.take(self.wanted(share, now)).await;
        self.look(refused, out).await
    }

    /// Leases to take, with their revisions.
    fn wanted(&self, share: usize, now: Instant) -> Vec<(u32, u64)> {
        let (partitions, room) =
            (self.office.broker.settings.partitions, share.saturating_sub(self.held.len()));
        let mut wanted = Vec::new();
        // Workers begin at different places, so that they rarely want the same partition.
        let first = names::partition_of(&self.name, partitions);
        let others = (first..partitions).chain(0..first).filter(|number| !self.held.contains_key(number));
        for number in others {
            let shunned = self.shunned.contains_key(&number);
            let leases = if shunned { SHUNNED } else { u32::from(wanted.len() >= room) };
            wanted.extend(self.view.free_for(number, leases, now).map(|revision| (number, revision)));
        }
        wanted
    }

    /// Returns the partitions whose leases have another revision.
    async fn take(&mut self, free: Vec<(u32, u64)>) -> Vec<u32> {
        let (bucket, patience) = (&self.office.broker.bucket, self.lease / 3);
        let updates = free.into_iter().map(|(number, revision)| {
            let update = bucket.update(names::lease(number), self.session.clone().into(), revision);
            async move { (number, revision, shardwheel::timeout(patience, update).await) }
        });
        let mut refused = Vec::new();
        for (number, before, taken) in join_all(updates).await {
            match taken {
                Ok(Ok(revision)) => {
                    self.view.note(names::lease(number), revision, self.session.clone(), Instant::now());
                    self.hold(number, revision);
                }
                Ok(Err(_)) => refused.push(number),
                // The change comes by the bucket if there is one.
                Err(_) => drop(self.claimed.insert(number, before)),
            }
        }
        refused
    }

    /// This worker has a lease now.
    fn hold(&mut self, number: u32, revision: u64) {
        let now = Instant::now();
        let share = self.view.share(&self.name, self.office.broker.settings.partitions, now);
        let orphan = self.held.len() >= share;
        let exempt_until = if orphan { now + pulse::patience(self.lease) } else { now };
        let held = Held::new(revision, exempt_until);
        self.office.health.hold(number, held.pulse.clone());
        self.held.insert(number, held);
        self.start(number, Duration::ZERO);
    }

    fn start(&mut self, number: u32, pause: Duration) {
        let Some(held) = self.held.get_mut(&number) else { return };
        let (office, task) = (self.office.clone(), (number, held.since));
        let (mut stop, pulse) = held.begin();
        self.owners.spawn(async move {
            // An owner may be dropped at any instant, as by a crash.
            let own = async {
                shardwheel::sleep(pause).await;
                // What makes one partition panic must not end the others.
                let owner = AssertUnwindSafe(owner::own(office, number, pulse)).catch_unwind().await;
                owner.unwrap_or_else(|_| Err(Failure::temporary("the owner has panicked")))
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
        if result.is_err() {
            self.look(vec![number], out).await?;
        }
        match self.held.get_mut(&number) {
            // This owner is of an earlier lease. There is another owner now, here or at another worker.
            None => {}
            Some(held) if held.since != since => {}
            Some(held) if held.leaving => {
                let revision = held.revision;
                self.held.remove(&number);
                self.office.health.leave(number);
                self.release(number, revision).await;
            }
            Some(held) => {
                let pause = result.err().map(|failure| self.office.failed(number, held, &failure));
                self.start(number, pause.unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Asks the bucket's leader for leases that seem to have another revision. Its word is the last: after
    /// a server died, the replicas of a stream may number the same messages differently, at least in 2.9,
    /// and changes come from any replica. So changes tell when a lease was renewed, but not how to do it.
    async fn look(&mut self, numbers: Vec<u32>, out: &mut dyn Write) -> Result<(), Failure> {
        let (broker, patience) = (&self.office.broker, self.lease / 3);
        let entries = numbers.into_iter().map(|number| async move {
            (number, shardwheel::timeout(patience, broker.entry(&names::lease(number))).await)
        });
        for (number, entry) in join_all(entries).await {
            let Ok(Ok(entry)) = entry else { continue };
            // What was deleted has no value.
            let (revision, value) = entry.unwrap_or_default();
            let holder = String::from_utf8_lossy(&value).into_owned();
            let own = holder == self.session;
            match self.held.get_mut(&number) {
                Some(held) if own => held.revision = revision,
                Some(_) => self.lose(number, out)?,
                None => {}
            }
            self.view.correct(names::lease(number), revision, holder, Instant::now());
        }
        Ok(())
    }

    fn lose(&mut self, number: u32, out: &mut dyn Write) -> Result<(), Failure> {
        self.held.remove(&number);
        self.office.health.leave(number);
        say(out, &format!("partition {number} lost"))
    }

    async fn release(&self, number: u32, revision: u64) {
        let update = self.office.broker.bucket.update(names::lease(number), Bytes::new(), revision);
        // If it fails, the lease lapses.
        let _ = shardwheel::timeout(self.lease / 3, update).await;
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

pub(crate) fn say(out: &mut dyn Write, line: &str) -> Result<(), Failure> {
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

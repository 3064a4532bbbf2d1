//! A worker: has partitions, and runs an owner for each.
//!
//! The worker renews its entry of the bucket three times in the length of a lease. It learns from
//! the bucket's changes who else lives, and so which partitions are its own (`view.rs`).
//!
//! A worker that sees no changes of the bucket, not even its own, is *blind*: it takes nothing and leaves
//! nothing, and counts anew when it sees again. Otherwise every other worker would seem to be dead while the
//! bucket elects a leader.

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use async_nats::jetstream::kv::Entry;
use bytes::Bytes;
use futures_util::FutureExt;
use shardwheel::Missed;
use shardwheel::global::Interval;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::failure::{Failure, SAY};
use super::held::Held;
use super::names;
use super::owner::{self, Office};
use super::view::View;
use super::watch;

/// The partition, and which time it is that this worker has it.
type Task = (u32, u64);

type Ended = Result<(Task, Result<(), Failure>), JoinError>;

pub(crate) struct Worker {
    office: Office,
    name: String,
    lease: Duration,
    view: View,
    changes: mpsc::UnboundedReceiver<Entry>,
    held: BTreeMap<u32, Held>,
    /// How often it has taken a partition.
    taken: u64,
    owners: JoinSet<(Task, Result<(), Failure>)>,
    /// Since when the worker is blind, and when it said so.
    blind: Option<(Instant, Instant)>,
}

/// What a worker waits for.
enum Event {
    Changed(Entry),
    Unwatched,
    CaughtUp(u32),
    Ended(Ended),
    Renewal,
    Lapsed,
    Signalled,
}

impl Worker {
    pub(crate) fn new(office: Office, name: String, lease: Duration) -> Self {
        let (view, held, owners) = (View::new(&name, lease), BTreeMap::new(), JoinSet::new());
        let (sender, changes) = mpsc::unbounded_channel();
        tokio::spawn(watch::follow(office.broker.bucket.clone(), lease, sender));
        Self { office, name, lease, view, changes, held, taken: 0, owners, blind: None }
    }

    /// Works until a signal ends it.
    pub(crate) async fn run(
        mut self,
        mut caught_up: mpsc::UnboundedReceiver<u32>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut ends = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
        let mut renewals = shardwheel::interval(self.lease / 3).missed(Missed::Skip);
        loop {
            match self.event(&mut renewals, &mut caught_up, &mut ends).await {
                Event::Changed(entry) => {
                    self.changed(&entry);
                    self.balance(out)?;
                }
                Event::Unwatched => return Err(Failure::permanent("the watch of the bucket has ended")),
                Event::CaughtUp(number) => self.serves(number, out)?,
                Event::Ended(ended) => self.ended(ended)?,
                Event::Renewal => {
                    self.balance(out)?;
                    self.renew().await;
                }
                Event::Lapsed => self.balance(out)?,
                Event::Signalled => {
                    self.leave().await;
                    return Ok(());
                }
            }
            self.say_blind();
        }
    }

    fn serves(&mut self, number: u32, out: &mut dyn Write) -> Result<(), Failure> {
        // A partition that is left may have caught up a moment before.
        let Some(held) = self.held.get_mut(&number) else { return Ok(()) };
        held.serves();
        say(out, &format!("partition {number} owned"))
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
        renewals: &mut Interval,
        caught_up: &mut mpsc::UnboundedReceiver<u32>,
        [terminate, interrupt]: &mut [Signal; 2],
    ) -> Event {
        let lapse = self.view.next_lapse(Instant::now());
        tokio::select! {
            entry = self.changes.recv() => entry.map_or(Event::Unwatched, Event::Changed),
            Some(number) = caught_up.recv() => Event::CaughtUp(number),
            Some(ended) = self.owners.join_next() => Event::Ended(ended),
            _ = renewals.tick() => Event::Renewal,
            () = shardwheel::sleep(lapse.unwrap_or_default()), if lapse.is_some() => Event::Lapsed,
            _ = terminate.recv() => Event::Signalled,
            _ = interrupt.recv() => Event::Signalled,
        }
    }

    /// Enters a change of the bucket.
    fn changed(&mut self, entry: &Entry) {
        let now = Instant::now();
        let Some(name) = names::worker_of(&entry.key) else { return };
        if name == self.name && self.is_blind(now) {
            // It begins to count anew.
            self.view.refresh(now);
        }
        self.view.note(name, entry.revision, !entry.value.is_empty(), now);
    }

    fn is_blind(&self, now: Instant) -> bool {
        self.view.blind_for(now).is_none_or(|blind| blind >= self.lease)
    }

    /// Says that this worker lives. If that fails, the next renewal may do.
    async fn renew(&self) {
        let renewed = self.office.broker.bucket.put(names::worker(&self.name), Bytes::from_static(b"here"));
        let _ = shardwheel::timeout(self.lease / 3, renewed).await;
    }

    /// Takes the partitions that are this worker's, and leaves the others.
    fn balance(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        let now = Instant::now();
        if self.is_blind(now) {
            return Ok(());
        }
        let mine = self.view.mine(self.office.broker.settings.partitions, now);
        let others = self.held.keys().copied().filter(|number| !mine.contains(number));
        for number in others.collect::<Vec<_>>() {
            self.lose(number, out)?;
        }
        for number in mine {
            if !self.held.contains_key(&number) {
                self.hold(number);
            }
        }
        Ok(())
    }

    fn hold(&mut self, number: u32) {
        self.taken += 1;
        let held = Held::new(self.taken);
        self.office.health.hold(number, held.pulse.clone());
        self.held.insert(number, held);
        self.start(number, Duration::ZERO);
    }

    /// Ends the owner.
    fn lose(&mut self, number: u32, out: &mut dyn Write) -> Result<(), Failure> {
        self.held.remove(&number);
        self.office.health.leave(number);
        say(out, &format!("partition {number} lost"))
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

    /// An owner has ended: the worker starts another one, if it has the partition still.
    fn ended(&mut self, ended: Ended) -> Result<(), Failure> {
        let ((number, since), result) = ended?;
        if let Some(held) = self.held.get_mut(&number).filter(|held| held.since == since) {
            let pause = result.err().map(|failure| held.failed(number, &failure));
            self.start(number, pause.unwrap_or_default());
        }
        Ok(())
    }

    /// Stops all owners, and says so.
    async fn leave(mut self) {
        self.owners.shutdown().await;
        let gone = self.office.broker.bucket.put(names::worker(&self.name), Bytes::new());
        let _ = shardwheel::timeout(self.lease, gone).await;
    }
}

pub(crate) fn say(out: &mut dyn Write, line: &str) -> Result<(), Failure> {
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

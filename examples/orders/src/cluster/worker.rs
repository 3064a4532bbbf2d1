//! A worker: has partitions, and runs an owner for each.
//!
//! Each worker has a message in the stream `workers`, which the broker forgets after the length of
//! a lease. Three times in that length a worker renews its own, and asks which others are there.
//! Whose each partition is follows from that (rendezvous hashing): nobody is asked, and few
//! partitions move when a worker comes or goes.
//!
//! This only keeps two owners from doing the same work, mostly. What is decided does not depend on
//! it, for the broker takes a result from one of them alone. So it is of no concern that workers
//! may see different things for a while, or have the same name.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use shardwheel::Missed;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::broker::{Broker, Failure};
use super::names::{self, DIGEST, digest};
use super::owner;

pub(crate) struct Worker {
    pub(crate) broker: Broker,
    pub(crate) name: String,
    /// Lines of a partition between two snapshots.
    pub(crate) snapshot_every: usize,
    /// The tasks that own partitions.
    pub(crate) owners: BTreeMap<u32, JoinHandle<()>>,
}

impl Worker {
    /// Works until a signal ends it.
    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let lease = Duration::from_millis(self.broker.settings.lease_ms);
        let mut looks = shardwheel::interval(lease / 3).missed(Missed::Skip);
        let mut blind_until = Instant::now();
        loop {
            tokio::select! {
                _ = looks.tick() => {}
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
            let living = shardwheel::timeout(lease, self.living()).await;
            match living.unwrap_or_else(|elapsed| Err(elapsed.into())) {
                Ok(workers) if Instant::now() >= blind_until => self.balance(&workers),
                Ok(_) => {}
                // The others may not have been able to renew theirs either.
                Err(failure) => {
                    if Instant::now() >= blind_until {
                        say!("{}: no workers are seen: {failure}", self.name);
                    }
                    blind_until = Instant::now() + lease;
                }
            }
        }
        self.leave(lease).await;
        Ok(())
    }

    /// Says that this worker lives; returns all that do.
    async fn living(&self) -> Result<BTreeSet<String>, Failure> {
        let mine = names::worker(&self.name);
        self.broker.jetstream.publish(mine.clone(), bytes::Bytes::new()).await?.await?;
        let workers = self.broker.stream(names::WORKERS).await?;
        let living = workers.info_with_subjects(names::worker("*")).await?;
        let living = living.map_ok(|(subject, _)| subject).try_collect::<BTreeSet<_>>().await?;
        Ok(living.into_iter().chain([mine]).collect())
    }

    /// Takes the partitions that are this worker's, and leaves the others.
    fn balance(&mut self, workers: &BTreeSet<String>) {
        let partitions = self.broker.settings.partitions;
        let mine = share(&names::worker(&self.name), workers, partitions);
        for number in 0..partitions {
            if !mine.contains(&number) {
                if let Some(owner) = self.owners.remove(&number) {
                    // It may be dropped at any instant, as by a crash.
                    owner.abort();
                    say!("partition {number} lost");
                }
            } else if self.owners.get(&number).is_none_or(JoinHandle::is_finished) {
                let owner = owner::own(self.broker.clone(), number, self.snapshot_every);
                self.owners.insert(number, tokio::spawn(owner));
            }
        }
    }

    /// Stops all owners, and says so.
    async fn leave(self, lease: Duration) {
        self.owners.values().for_each(JoinHandle::abort);
        let gone = async {
            let workers = self.broker.stream(names::WORKERS).await?;
            workers.purge().filter(names::worker(&self.name)).await?;
            Ok::<_, Failure>(())
        };
        let _ = shardwheel::timeout(lease, gone).await;
    }
}

/// The partitions of a worker, among those that live: each goes to the worker that ranks first for
/// it, of those that have no full share yet.
fn share(me: &str, workers: &BTreeSet<String>, partitions: u32) -> BTreeSet<u32> {
    let most = partitions.div_ceil(workers.len().max(1) as u32);
    let mut counts = workers.iter().map(|name| (name, 0)).collect::<Vec<_>>();
    let mut mine = BTreeSet::new();
    for number in 0..partitions {
        let rank = |name: &str| digest(digest(DIGEST, &number.to_le_bytes()), name.as_bytes());
        let first = counts.iter_mut().min_by_key(|(name, count)| (*count >= most, Reverse(rank(name))));
        if let Some((name, count)) = first {
            *count += 1;
            mine.extend((*name == me).then_some(number));
        }
    }
    mine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_has_one_worker_shares_are_fair_and_few_partitions_move() {
        let shares = |count: usize, partitions| {
            let workers = ["a", "b", "c", "d", "e"][..count].iter().copied().map(str::to_owned).collect();
            ["a", "b", "c", "d", "e"].map(|me| share(me, &workers, partitions))
        };
        for (count, partitions) in (1..=5).flat_map(|count| [1, 2, 5, 16, 64].map(|number| (count, number))) {
            let shares = shares(count, partitions);
            let all = shares.iter().flatten().copied().collect::<BTreeSet<_>>();
            let lengths = shares.each_ref().map(BTreeSet::len);
            assert!(
                all.into_iter().eq(0..partitions) && lengths.iter().sum::<usize>() == partitions as usize
            );
            assert_eq!(lengths.into_iter().max(), Some((partitions as usize).div_ceil(count)));
        }
        let pairs = shares(4, 64).into_iter().zip(shares(3, 64));
        let stayed = pairs.map(|(before, after)| before.intersection(&after).count()).sum::<usize>();
        assert!(stayed >= 32, "of 48");
    }
}

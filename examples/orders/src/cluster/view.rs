//! What a worker sees of the others: who lives, and so which partitions are its own. No broker and no clock.
//!
//! Each worker renews its entry of the bucket. The entry contains no time, because no two clocks agree: a
//! worker lives while its entry has changed within the length of a lease, by the clock of the one that
//! watches.
//!
//! Which worker has a partition follows from who lives, and nobody is asked: a partition is that of
//! the worker whose name ranks first for it (rendezvous hashing), among those that have less than P
//! / n partitions, rounded up. So few partitions move when a worker comes or goes. Workers that see
//! different things may both act, or none of them does for a while; what is decided does not depend
//! on it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::names::{DIGEST, digest};

/// The entry of a worker.
#[derive(Debug)]
struct Seen {
    revision: u64,
    /// It has not left.
    is_there: bool,
    /// When it was seen first in this revision.
    at: Instant,
}

/// The workers, as far as this one has seen them.
#[derive(Debug)]
pub(crate) struct View {
    me: String,
    lease: Duration,
    workers: BTreeMap<String, Seen>,
}

impl View {
    pub(crate) fn new(me: &str, lease: Duration) -> Self {
        Self { me: me.to_owned(), lease, workers: BTreeMap::new() }
    }

    /// Enters what a worker has written. The same revision again is no news.
    pub(crate) fn note(&mut self, name: &str, revision: u64, is_there: bool, now: Instant) {
        if self.workers.get(name).is_none_or(|seen| seen.revision != revision) {
            self.workers.insert(name.to_owned(), Seen { revision, is_there, at: now });
        }
    }

    /// Begins to count anew: the worker has seen nothing for a while.
    pub(crate) fn refresh(&mut self, now: Instant) {
        self.workers.values_mut().for_each(|seen| seen.at = now);
    }

    /// How long ago this worker saw its own entry change.
    pub(crate) fn blind_for(&self, now: Instant) -> Option<Duration> {
        self.workers.get(&self.me).map(|seen| now.saturating_duration_since(seen.at))
    }

    /// The partitions of this worker.
    pub(crate) fn mine(&self, partitions: u32, now: Instant) -> BTreeSet<u32> {
        let lives = |seen: &Seen| seen.is_there && now.saturating_duration_since(seen.at) < self.lease;
        let others = self.workers.iter().filter(|(name, seen)| **name != self.me && lives(seen));
        let mut workers =
            others.map(|(name, _)| name).chain([&self.me]).map(|name| (name, 0)).collect::<Vec<_>>();
        let most = partitions.div_ceil(workers.len() as u32);
        let mut mine = BTreeSet::new();
        for number in 0..partitions {
            let best =
                workers.iter_mut().min_by_key(|(name, count)| (*count >= most, Reverse(rank(name, number))));
            if let Some((name, count)) = best {
                *count += 1;
                mine.extend((**name == self.me).then_some(number));
            }
        }
        mine
    }

    /// The time until the next worker is taken for dead, if nothing happens.
    pub(crate) fn next_lapse(&self, now: Instant) -> Option<Duration> {
        let ages = self.workers.values().map(|seen| now.saturating_duration_since(seen.at));
        ages.filter_map(|age| self.lease.checked_sub(age).filter(|left| !left.is_zero())).min()
    }
}

fn rank(name: &str, partition: u32) -> u64 {
    digest(digest(DIGEST, &partition.to_le_bytes()), name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(2);

    /// The partitions of each worker, as it sees itself, when all of some names live.
    fn shares(names: &[&str], partitions: u32) -> Vec<BTreeSet<u32>> {
        let now = Instant::now();
        let share = |me: &&str| {
            let mut view = View::new(me, LEASE);
            names.iter().for_each(|name| view.note(name, 1, true, now));
            view.mine(partitions, now)
        };
        names.iter().map(share).collect()
    }

    #[test]
    fn each_partition_has_one_worker_and_shares_are_fair() {
        for partitions in [1, 2, 5, 16, 64] {
            for count in 1..=5 {
                let shares = shares(&["a", "b", "c", "d", "e"][..count], partitions);
                let all = shares.iter().flatten().collect::<BTreeSet<_>>();
                let sum = shares.iter().map(BTreeSet::len).sum::<usize>();
                assert_eq!((all.len(), sum), (partitions as usize, partitions as usize));
                let most = shares.iter().map(BTreeSet::len).max();
                assert_eq!(most, Some((partitions as usize).div_ceil(count)));
            }
        }
    }

    #[test]
    fn few_partitions_move_when_a_worker_goes() {
        let (before, after) = (shares(&["a", "b", "c", "d"], 64), shares(&["a", "b", "c"], 64));
        let stayed = before.iter().zip(&after).map(|(before, after)| before.intersection(after).count());
        assert!(stayed.sum::<usize>() >= 32, "of 48");
    }

    #[test]
    fn a_worker_is_dead_if_its_entry_stays_the_same() {
        let begin = Instant::now();
        let mut view = View::new("a", LEASE);
        assert_eq!(view.blind_for(begin), None);
        view.note("b", 5, true, begin);
        assert_eq!((view.mine(8, begin).len(), view.next_lapse(begin)), (4, Some(LEASE)));
        view.note("b", 5, true, begin + LEASE);
        assert_eq!(view.mine(8, begin + LEASE).len(), 8, "the same revision again is no renewal");
        view.note("b", 6, true, begin + LEASE);
        assert_eq!(view.mine(8, begin + LEASE).len(), 4);
        view.refresh(begin + LEASE * 3);
        assert_eq!(view.mine(8, begin + LEASE * 3).len(), 4);
        view.note("b", 7, false, begin + LEASE * 3);
        assert_eq!(view.mine(8, begin + LEASE * 3).len(), 8, "it has left");
    }
}

//! What a worker sees of the others: leases, and who is alive. No broker and no clock.
//!
//! A lease is an entry of the bucket that its holder renews. The entry contains no time, because no
//! two clocks agree. A lease has lapsed if its revision has not changed for the length of a lease,
//! by the clock of the worker that watches. The holder began its last renewal before the watcher saw
//! it, so the watcher never counts more time than the holder.
//!
//! Each of n living workers has a fair share of P partitions: P / n, and one more for the first
//! P mod n by name. The shares of all add up to P.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::names;

/// An entry, and when it was seen first.
#[derive(Debug)]
struct Seen {
    revision: u64,
    /// Empty if no worker has it.
    holder: String,
    at: Instant,
}

/// The bucket, as far as this worker has seen it.
#[derive(Debug)]
pub(crate) struct View {
    lease: Duration,
    /// When it began to look.
    began: Instant,
    entries: HashMap<String, Seen>,
}

impl View {
    pub(crate) fn new(lease: Duration) -> Self {
        Self { lease, began: Instant::now(), entries: HashMap::new() }
    }

    /// Enters what the bucket holds. An old entry that comes late changes nothing.
    pub(crate) fn note(&mut self, key: String, revision: u64, holder: String, now: Instant) {
        if self.entries.get(&key).is_none_or(|seen| seen.revision < revision) {
            self.entries.insert(key, Seen { revision, holder, at: now });
        }
    }

    /// Enters what the bucket holds, by the word of its leader, whatever came before.
    pub(crate) fn correct(&mut self, key: String, revision: u64, holder: String, now: Instant) {
        let (mut before, mut at) = (0, now);
        if let Some(seen) = self.entries.get(&key) {
            before = seen.revision;
            // It is the entry that was seen, under another number.
            at = if revision < before && seen.holder == holder { seen.at } else { now };
        }
        if before > revision {
            say!("{key}: revision {before} was seen, but the leader has {revision}");
        }
        if before != revision {
            self.entries.insert(key, Seen { revision, holder, at });
        }
    }

    /// Begins to count anew: the worker has seen nothing for a while.
    pub(crate) fn refresh(&mut self, now: Instant) {
        self.entries.values_mut().for_each(|seen| seen.at = now);
    }

    /// When an entry was seen first in its present revision.
    pub(crate) fn seen_at(&self, key: &str) -> Option<Instant> {
        self.entries.get(key).map(|seen| seen.at)
    }

    /// The revision of a lease that can be taken: no worker has had it for the length of `leases`
    /// leases, or it lapsed that long ago.
    pub(crate) fn free_for(&self, partition: u32, leases: u32, now: Instant) -> Option<u64> {
        let seen = self.entries.get(&names::lease(partition));
        let since = seen.map_or(self.began, |seen| seen.at);
        let held = u32::from(seen.is_some_and(|seen| !seen.holder.is_empty()));
        let free = now.saturating_duration_since(since) >= self.lease * (held + leases);
        free.then(|| seen.map_or(0, |seen| seen.revision))
    }

    /// Since when no worker has a lease, or when it lapses.
    pub(crate) fn vacant_since(&self, partition: u32) -> Instant {
        let Some(seen) = self.entries.get(&names::lease(partition)) else { return self.began };
        if seen.holder.is_empty() { seen.at } else { seen.at + self.lease }
    }

    fn has_lapsed(&self, seen: &Seen, now: Instant) -> bool {
        now.saturating_duration_since(seen.at) >= self.lease
    }

    /// How many of the partitions the worker should have.
    pub(crate) fn share(&self, me: &str, partitions: u32, now: Instant) -> usize {
        let prefix = names::worker("");
        let living = self.entries.iter().filter(|(_, seen)| !seen.holder.is_empty());
        let living = living.filter(|(_, seen)| !self.has_lapsed(seen, now));
        let others = living.filter_map(|(key, _)| key.strip_prefix(&prefix)).filter(|name| *name != me);
        let (mut before, mut workers) = (0, 1);
        for other in others {
            workers += 1;
            before += u32::from(other < me);
        }
        (partitions / workers + u32::from(before < partitions % workers)) as usize
    }

    /// When the next entry lapses, if nothing happens.
    pub(crate) fn next_lapse(&self, now: Instant) -> Option<Instant> {
        let counting = self.entries.values().filter(|seen| !seen.holder.is_empty());
        counting.map(|seen| seen.at + self.lease).filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(2);

    fn view(entries: &[(&str, u64, &str)], at: Instant) -> View {
        let mut view = View::new(LEASE);
        let note =
            |&(key, revision, holder): &_| view.note(str::to_owned(key), revision, str::to_owned(holder), at);
        entries.iter().for_each(note);
        view
    }

    #[test]
    fn a_lease_lapses_if_its_revision_stays_the_same() {
        let begin = Instant::now();
        let mut view = view(&[("lease.0", 5, "a"), ("lease.1", 6, "")], begin);
        assert_eq!([0, 1, 2].map(|number| view.free_for(number, 0, begin)), [None, Some(6), Some(0)]);
        let later = begin + LEASE;
        assert_eq!(view.free_for(0, 0, later), Some(5));
        view.note("lease.0".to_owned(), 5, "a".to_owned(), later);
        assert_eq!(view.free_for(0, 0, later), Some(5), "the same revision again is no renewal");
        view.note("lease.0".to_owned(), 9, "a".to_owned(), later);
        assert_eq!(view.free_for(0, 0, later + LEASE / 2), None);
        view.note("lease.0".to_owned(), 8, String::new(), later);
        assert_eq!(view.free_for(0, 0, later + LEASE / 2), None, "an old entry");
        view.correct("lease.0".to_owned(), 7, "b".to_owned(), later);
        let free = |view: &View, at| view.free_for(0, 0, at);
        assert_eq!([free(&view, later), free(&view, later + LEASE)], [None, Some(7)], "9 is gone");
        view.note("lease.0".to_owned(), 15, "b".to_owned(), later);
        view.correct("lease.0".to_owned(), 7, "b".to_owned(), later + LEASE);
        assert_eq!(free(&view, later + LEASE), Some(7), "15 is 7 by another number");
        view.correct("lease.0".to_owned(), 7, "b".to_owned(), later + LEASE);
        assert_eq!(free(&view, later + LEASE), Some(7), "no news");
        assert_eq!(view.free_for(0, 1, later + LEASE), None, "not free for long");
        assert_eq!(view.free_for(0, 1, later + LEASE * 2), Some(7));
        view.refresh(later + LEASE);
        assert_eq!(view.free_for(0, 0, later + LEASE), None);
    }

    #[test]
    fn the_shares_of_the_living_add_up() {
        let begin = Instant::now();
        let workers = [("worker.a", 1, "s"), ("worker.b", 2, "s"), ("worker.c", 3, "s"), ("worker.d", 4, "")];
        let mut view = view(&workers, begin);
        let shares = |view: &View, now| ["a", "b", "c"].map(|me| view.share(me, 8, now));
        assert_eq!(shares(&view, begin), [3, 3, 2]);
        view.note("worker.a".to_owned(), 9, "s".to_owned(), begin + LEASE / 2);
        assert_eq!(view.share("a", 8, begin + LEASE), 8, "the others have lapsed");
        assert_eq!(view.share("new", 8, begin), 2, "a worker counts itself");
        assert_eq!(view.next_lapse(begin), Some(begin + LEASE));
    }
}

//! Where things are in the broker, and in which partition an item is.

pub(crate) use crate::store::{DIGEST, digest};

/// The stream of all snapshots. Its description has the settings.
pub(crate) const BOOKS: &str = "books";
/// The stream of the workers that live.
pub(crate) const WORKERS: &str = "workers";

/// What a message of a partition's log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Orders,
    Payments,
    /// Nothing: it moves the partition's time.
    Tick,
}

impl Kind {
    /// The last part of its subject, and the path of its requests over HTTP.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Payments => "payments",
            Self::Tick => "ticks",
        }
    }

    /// The kind of message that has a subject.
    pub(crate) fn of(subject: &str) -> Option<Self> {
        let name = subject.rsplit('.').next()?;
        [Self::Orders, Self::Payments, Self::Tick].into_iter().find(|kind| kind.name() == name)
    }
}

/// The partition of an item: FNV-1a of its name. It stays the same for ever, as the logs do.
pub(crate) fn partition_of(item: &str, partitions: u32) -> u32 {
    (digest(DIGEST, item.as_bytes()) % u64::from(partitions)) as u32
}

/// The stream of a partition's log.
pub(crate) fn log(partition: u32) -> String {
    format!("shop-{partition}")
}

/// The subjects of a partition's log, by their kinds.
pub(crate) fn log_subjects(partition: u32) -> String {
    format!("shop.{partition}.*")
}

pub(crate) fn log_subject(partition: u32, kind: Kind) -> String {
    format!("shop.{partition}.{}", kind.name())
}

/// The stream of a partition's results.
pub(crate) fn results(partition: u32) -> String {
    format!("results-{partition}")
}

/// The only subject of a partition's results.
pub(crate) fn results_subject(partition: u32) -> String {
    format!("results.{partition}")
}

/// The subject of the parts of a partition's snapshots.
pub(crate) fn parts(partition: u32) -> String {
    format!("{BOOKS}.{partition}.part")
}

/// The subject of what names the newest snapshot of a partition.
pub(crate) fn head(partition: u32) -> String {
    format!("{BOOKS}.{partition}.head")
}

pub(crate) fn worker(name: &str) -> String {
    format!("{WORKERS}.{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_stays_in_its_partition() {
        // Logs that exist depend on these numbers.
        let found = ["item-1", "item-2", "nut", "é"].map(|item| partition_of(item, 16));
        assert_eq!(found, [0, 9, 8, 1]);
    }
}

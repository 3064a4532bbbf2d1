//! Why an entry was refused. The error hands its key and its value back.

use std::error::Error;
use std::fmt;

use shardwheel::ScheduleErrorKind;

/// Why an [`ExpiringMap`](crate::ExpiringMap) has refused an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertErrorKind {
    /// The map has as many entries as it may have, and none of them has this key.
    Full {
        /// The map's bound.
        limit: usize,
    },
    /// The `Timer` has refused: it has been shut down, it is full, or the system gives no memory.
    Timer(ScheduleErrorKind),
}

impl fmt::Display for InsertErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { limit } => {
                write!(f, "there is no room: the map has {limit} entries, which is its limit")
            }
            Self::Timer(kind) => kind.fmt(f),
        }
    }
}

/// The error of a refused entry: the reason, the key and the value.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::Timer;
/// use shardwheel_compat::{ExpiringMap, InsertErrorKind};
///
/// let map = ExpiringMap::new(Timer::global(), 1, |_map, _key: &str, _value| ());
/// map.insert("first", 1, Duration::from_secs(60)).unwrap();
/// let refused = map.insert("second", 2, Duration::from_secs(60)).unwrap_err();
/// assert_eq!(refused.kind(), InsertErrorKind::Full { limit: 1 });
/// assert_eq!(refused.into_entry(), ("second", 2));
/// ```
pub struct InsertError<K, V> {
    kind: InsertErrorKind,
    key: K,
    value: V,
}

impl<K, V> InsertError<K, V> {
    pub(super) fn new(kind: InsertErrorKind, key: K, value: V) -> Self {
        Self { kind, key, value }
    }

    /// Returns why the entry was refused.
    #[must_use]
    pub fn kind(&self) -> InsertErrorKind {
        self.kind
    }

    /// Hands back the key and the value.
    #[must_use]
    pub fn into_entry(self) -> (K, V) {
        (self.key, self.value)
    }
}

impl<K, V> fmt::Debug for InsertError<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InsertError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<K, V> fmt::Display for InsertError<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl<K, V> Error for InsertError<K, V> {}

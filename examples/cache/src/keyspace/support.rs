//! What must hold of a keyspace between commands: for tests and fuzzers.

use super::*;

impl Keyspace {
    /// Panics unless each key with a deadline has a timer, each timer a key, and the numbers are right.
    pub(crate) fn check(&self) {
        let mut all = (0, 0);
        for entry in self.tables.iter().flatten() {
            let found = self.find_by(entry.hash, |it| it.key() == entry.key()).expect("each key is found");
            assert!(std::ptr::eq(self.get(found), &**entry), "each key is there once");
            assert_eq!(entry.timer.is_some(), entry.expires.is_some());
            all = (all.0 + 1, all.1 + usize::from(entry.timer.is_some()));
        }
        assert_eq!(all, (self.stats.get(Figure::Keys), self.stats.get(Figure::ExpiringKeys)));
        if self.discarded.is_empty() {
            assert_eq!(self.timers.len(), all.1, "timers");
        }
    }
}

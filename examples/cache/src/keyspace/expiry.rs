//! Deadlines of keys, and what happens when they have passed.

use std::hint::black_box;

use shardwheel::Key;

use super::*;
use crate::clock::Deadline;

impl Keyspace {
    /// Gives a key a deadline, or another one: its timer moves in place if the deadline is later.
    pub(crate) fn set_deadline(&mut self, place: Place, deadline: Deadline) {
        let due = self.time.due(deadline);
        self.change(place, |entry, timers| {
            let moved = entry.timer.and_then(|timer| timers.reschedule(timer, due));
            // Without memory for a timer, the key goes when it is looked at.
            entry.timer = moved.or_else(|| timers.schedule(due, Due::Key(place.hash)).ok());
            entry.expires = Some(deadline);
        });
    }

    pub(crate) fn persist(&mut self, place: Place) -> bool {
        let has_one = self.get(place).expires.is_some();
        if has_one {
            self.change(place, |entry, timers| {
                entry.expires = None;
                entry.timer.take().and_then(|timer| timers.cancel(timer));
            });
        }
        has_one
    }

    pub(super) fn has_expired(&self, entry: &Entry) -> bool {
        entry.expires.is_some_and(|deadline| self.time.has_passed(deadline))
    }

    pub(super) fn expire(&mut self, place: Place) {
        let entry = self.remove(place);
        self.stats.add(Figure::Expired, 1);
        self.events.add(Class::EXPIRED, "expired", entry.key());
    }

    /// Reads what the expiry of these keys will read. Nearly all of it is out of the processor's
    /// caches; here the loads of several keys run at the same time, and not one after the other.
    pub(crate) fn warm(&self, timers: impl Iterator<Item = (Key, Hash)>) {
        let find = |(timer, hash)| self.find_by(hash, |entry| entry.timer == Some(timer));
        let places: Vec<_> = timers.filter_map(find).collect();
        for place in places {
            black_box(self.get(place).key().first());
        }
    }

    /// A key's timer has fired. The key may be gone: a flush cancels timers later.
    pub(crate) fn fired(&mut self, timer: Key, hash: Hash) {
        let Some(place) = self.find_by(hash, |entry| entry.timer == Some(timer)) else { return };
        match self.get(place).expires {
            // The wall clock was set back.
            Some(deadline) if !self.time.has_passed(deadline) => self.set_deadline(place, deadline),
            _ => self.expire(place),
        }
    }

    /// Reads the clocks. If the wall clock was set, dates are at other ticks now.
    pub(crate) fn wake(&mut self) {
        if self.time.refresh() {
            self.recheck = 0;
        }
    }

    /// Gives the timers of a table's dates the ticks at which the dates are now.
    pub(super) fn follow_clock(&mut self, table: usize) {
        for entry in &mut self.tables[table] {
            if let (Some(date), Some(timer)) = (entry.expires.filter(|it| it.is_date()), entry.timer) {
                entry.timer = self.timers.reschedule(timer, self.time.due(date));
            }
        }
    }
}

//! Moving the clock.

use std::sync::Arc;
use std::time::Duration;

use super::model::{Id, Kind, Model, State};
use super::{Nanos, Scene};
use crate::draw::magnitude;

/// The most occurrences of a fixed rate in one move of the clock.
pub(super) const OCCURRENCES: u64 = 64;

/// How often callbacks let time pass in one move of the clock, at most.
const PASSES: u32 = 8;

/// The most bits of a move when the clock's range ends: less than a day.
const LAST_STRIDE_BITS: u32 = 46;
const NEARLY_OVER: Nanos = 400 * 365 * 24 * 3600 * super::NANOS_PER_SECOND;

impl Scene {
    /// Moves the clock, from deadline to deadline or, as after a stall, at once.
    pub(super) fn drive(self: &Arc<Self>) {
        let now = self.now();
        let (by, leaps, too_fast) = {
            let mut model = self.model();
            let by = model.draw_stride(now);
            let leaps = model.rng.u32(..3) == 0;
            model.log.add(("drive", now, by, leaps));
            (by, leaps, model.faster_than(by / OCCURRENCES))
        };
        too_fast.into_iter().for_each(|id| self.cancel(id));
        self.model().begin_drive(now + by, by, leaps);
        let length = Duration::from_nanos(by);
        if leaps {
            self.clock.jump(length)
        } else {
            self.clock.advance(length)
        }
        let after = self.now();
        self.model().end_drive(now + by, after);
    }
}

impl Model {
    fn draw_stride(&mut self, now: Nanos) -> Nanos {
        let bits = if now > NEARLY_OVER { LAST_STRIDE_BITS } else { self.scale };
        let next = self.books.iter().filter_map(|books| {
            let &(tick, _) = books.pending.first()?;
            Some(books.start_of(tick).saturating_sub(now))
        });
        let next = next.min().filter(|&next| next < 1 << bits);
        let any = magnitude(&mut self.rng, bits);
        match (self.rng.u32(..8), next) {
            (0..2, Some(next)) => next,
            (2, Some(next)) => next.saturating_sub(1),
            _ => any,
        }
    }

    /// The timers that recur.
    pub(super) fn recurring(&self) -> impl Iterator<Item = (Id, &super::rhythm::Rhythm)> {
        let pending = self.books.iter().flat_map(|books| &books.pending);
        pending.filter_map(|&(_, id)| match &self.entries[id].kind {
            Kind::Recurring(recurrence) => Some((id, &recurrence.rhythm)),
            _ => None,
        })
    }

    fn faster_than(&self, period: Nanos) -> Vec<Id> {
        let too_fast = self.recurring().filter(|(_, rhythm)| rhythm.period() < period);
        too_fast.map(|(id, _)| id).collect()
    }

    fn begin_drive(&mut self, target: Nanos, by: Nanos, leaps: bool) {
        let slowest = self.recurring().map(|(_, rhythm)| rhythm.period()).min();
        self.least_period = (by / OCCURRENCES).max(1).max(slowest.unwrap_or(1).min(by));
        self.passes = PASSES;
        if leaps {
            self.note_leap(target);
        }
    }

    /// Nothing that was due is left.
    fn end_drive(&mut self, target: Nanos, now: Nanos) {
        self.least_period = 1;
        let has_passed = self.passes < PASSES;
        self.expect(now == target || has_passed && now > target, || {
            format!("the clock stands at {now}, not at {target}")
        });
        for which in 0..self.books.len() {
            let books = &self.books[which];
            let left = books.pending.first().filter(|&&(tick, _)| tick <= books.tick_at(now)).copied();
            self.expect(left.is_none(), || format!("left behind at {now}: {left:?} of timer {which}"));
        }
        let running = self.entries.iter().position(|entry| entry.state == State::Running);
        self.expect(running.is_none(), || format!("still running: {running:?}"));
    }
}

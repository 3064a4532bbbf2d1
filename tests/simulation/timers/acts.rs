//! What producers do, from outside or from a callback.

use std::sync::Arc;
use std::time::Duration;

use shardwheel::{Every, Missed, ScheduleErrorKind, TimerKey};

use super::books::When;
use super::model::{Id, Kind};
use super::payload::Payload;
use super::rhythm::{Gaps, Rhythm};
use super::{Nanos, Scene};
use crate::draw::{any, magnitude, once_in};

/// The most bits of a gap that is doubled a few times.
const GAP_BITS: u32 = 48;

/// The most timers that recur at a time.
const MOST_RECURRING: usize = 8;

type Taken = Result<TimerKey, ScheduleErrorKind>;

impl Scene {
    pub(super) fn produce(self: &Arc<Self>) {
        match self.draw(|rng| rng.u32(..32)) {
            0..9 => self.schedule_once(),
            9..11 => self.schedule_recurring(),
            11..16 => self.with_any(|id| self.cancel(id)),
            16..22 => self.with_any(|id| self.reschedule(id)),
            22..24 => self.use_stale(),
            24..26 => self.begin_wait(),
            _ => self.use_wait(),
        }
    }

    fn with_any(&self, act: impl FnOnce(Id)) {
        let picked = self.model().pick();
        if let Some(id) = picked {
            act(id);
        }
    }

    pub(super) fn when(&self) -> When {
        let (now, mut model) = (self.now(), self.model());
        let scale = model.scale;
        let rng = &mut model.rng;
        let length = if once_in(rng, 64) { Nanos::MAX } else { magnitude(rng, scale) };
        match rng.u32(..8) {
            0 => When::At(now.saturating_sub(length)),
            1..3 => When::At(now.saturating_add(length)),
            _ => When::After(length),
        }
    }

    pub(super) fn schedule_once(self: &Arc<Self>) {
        let (when, now) = (self.when(), self.now());
        let (id, timer, due, is_large) = {
            let mut model = self.model();
            let timer = model.rng.usize(..self.timers.len());
            let id = model.open(timer, Kind::Once);
            model.log.add(("schedule", id, timer, when));
            (id, timer, model.books[timer].due(when, now), model.rng.bool())
        };
        let payload = Payload::new(self, id);
        let result = if is_large {
            let ballast = [id; 8];
            self.take_once(timer, when, move || payload.run_with(&ballast))
        } else {
            self.take_once(timer, when, move || payload.run())
        };
        self.model().note_scheduled(id, due, now, result);
    }

    fn take_once(&self, timer: usize, when: When, callback: impl FnOnce() + Send + 'static) -> Taken {
        let timer = &self.timers[timer];
        let taken = match when {
            When::After(delay) => timer.schedule_after(Duration::from_nanos(delay), callback),
            When::At(at) => timer.schedule_at(self.instant(at), callback),
        };
        taken.map_err(|refused| refused.kind())
    }

    fn schedule_recurring(self: &Arc<Self>) {
        let now = self.now();
        let (id, timer, rhythm, due) = {
            let mut model = self.model();
            if model.recurring().count() >= MOST_RECURRING {
                return;
            }
            let (timer, least) = (model.rng.usize(..self.timers.len()), model.least_period);
            let scale = model.scale;
            let rhythm = draw_rhythm(&mut model.rng, scale, least);
            let (id, due) = model.open_recurring(timer, rhythm, now);
            model.log.add(("recurring", id, timer, rhythm));
            (id, timer, rhythm, due)
        };
        let payload = Payload::new(self, id);
        let result = self.take_recurring(timer, rhythm, payload);
        self.model().note_scheduled(id, due, now, result);
    }

    fn take_recurring(&self, timer: usize, rhythm: Rhythm, payload: Payload) -> Taken {
        let timer = &self.timers[timer];
        let callback = move || payload.run();
        let taken = match rhythm {
            Rhythm::Every(period, Missed::Burst) => {
                timer.schedule_every(Duration::from_nanos(period), callback)
            }
            Rhythm::Every(period, missed) => {
                timer.schedule_with(Every::new(Duration::from_nanos(period)).missed(missed), callback)
            }
            Rhythm::Given(gaps) => timer.schedule_with(gaps.schedule(), callback),
        };
        taken.map_err(|refused| refused.kind())
    }

    pub(super) fn cancel(&self, id: Id) {
        let Some((timer, key)) = self.key_of(id, "cancel") else { return };
        let answer = self.timers[timer].cancel(key);
        self.model().note_cancelled(id, answer);
    }

    pub(super) fn reschedule(&self, id: Id) {
        let Some((timer, key)) = self.key_of(id, "reschedule") else { return };
        let (mut when, now) = (self.when(), self.now());
        if let (When::At(at), Kind::Recurring(_)) = (when, self.model().entries[id].kind) {
            // A recurring timer goes on from its deadline, which must be known.
            when = When::After(at.saturating_sub(now));
        }
        let due = self.model().books[timer].due(when, now);
        let moved = match when {
            When::After(delay) => self.timers[timer].reschedule_after(key, Duration::from_nanos(delay)),
            When::At(at) => self.timers[timer].reschedule_at(key, self.instant(at)),
        };
        self.model().note_moved(id, moved, due, now);
    }

    fn key_of(&self, id: Id, act: &str) -> Option<(usize, TimerKey)> {
        let mut model = self.model();
        model.log.add((act, id));
        let entry = &model.entries[id];
        entry.key.map(|key| (entry.timer, key))
    }

    /// A key of an ended timer, or of another timer, names nothing.
    fn use_stale(&self) {
        let (stale, other) = {
            let mut model = self.model();
            let len = model.stale.len();
            let stale = any(&mut model.rng, len).map(|at| model.stale[at]);
            (stale, model.rng.usize(..self.timers.len()))
        };
        let Some((own, key)) = stale else { return };
        for timer in [own, other] {
            let hits = self.timers[timer].cancel(key)
                || self.timers[timer].reschedule_after(key, Duration::from_secs(1)).is_some();
            self.model().expect(!hits, || format!("a stale key named a timer: {key:?}"));
        }
    }
}

fn draw_rhythm(rng: &mut fastrand::Rng, scale: u32, least: Nanos) -> Rhythm {
    let period = magnitude(rng, scale).max(least);
    match rng.u32(..5) {
        0 => Rhythm::Every(period, Missed::Burst),
        1 => Rhythm::Every(period, Missed::Skip),
        2 => Rhythm::Every(period, Missed::Delay),
        _ => {
            let gap = magnitude(rng, scale.min(GAP_BITS)).max(1);
            Rhythm::Given(Gaps { gap, stays: once_in(rng, 3), left: rng.u32(1..8), fails: once_in(rng, 4) })
        }
    }
}

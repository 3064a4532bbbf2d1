//! What a callback captures, and what it does.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use super::Scene;
use super::model::Id;
use crate::draw::{magnitude, once_in};

/// What callbacks and schedules panic with.
pub(crate) struct Planned;

pub(crate) struct Payload {
    scene: Arc<Scene>,
    id: Id,
}

impl Payload {
    pub(crate) fn new(scene: &Arc<Scene>, id: Id) -> Self {
        scene.model().alive += 1;
        Self { scene: Arc::clone(scene), id }
    }

    /// The callback.
    pub(crate) fn run(&self) {
        if let Some(handed) = &mut self.scene.model().handed {
            handed.push(self.id);
            return;
        }
        self.scene.be_at_work(self.id);
    }

    /// The callback of a timer that captures more, in its node or boxed.
    pub(crate) fn run_with(&self, ballast: &[Id]) {
        let (id, intact) = (self.id, ballast.iter().all(|&word| word == self.id));
        self.scene.model().expect(intact, || format!("{id} was changed: {ballast:?}"));
        self.run();
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.scene.model().note_dropped(self.id);
    }
}

impl Scene {
    /// What a callback or a waker does.
    pub(super) fn be_at_work(self: &Arc<Self>, id: Id) {
        if !self.model().fire(id, self.now()) {
            return;
        }
        let _returned = Returned(self, id);
        let (acts, what) = self.draw(|rng| (rng.u32(..5).saturating_sub(2), rng.u32(..64)));
        (0..acts).for_each(|_| self.produce());
        match what {
            0..5 => self.pass(),
            5..8 => self.cancel(id),
            8 => self.reschedule(id),
            9 if self.draw(|rng| once_in(rng, 64)) => self.shut_from_within(),
            10..14 => self.panic(id),
            _ => {}
        }
    }

    /// Time passes while a callback runs.
    fn pass(&self) {
        let (by, at_once) = {
            let mut model = self.model();
            let Some(left) = model.passes.checked_sub(1) else { return };
            model.passes = left;
            let most = model.least_period.saturating_mul(super::drive::OCCURRENCES);
            let scale = model.scale;
            let by = magnitude(&mut model.rng, scale).min(most);
            let to = self.now().saturating_add(by);
            model.log.add(("pass", by));
            model.note_leap(to);
            (Duration::from_nanos(by), model.rng.bool())
        };
        if at_once { self.clock.jump(by) } else { self.clock.advance(by) }
    }

    fn panic(&self, id: Id) {
        let mut model = self.model();
        model.log.add(("panic", id));
        model.entry(id).1.panics += 1;
        drop(model);
        resume_unwind(Box::new(Planned));
    }

    fn shut_from_within(self: &Arc<Self>) {
        let which = self.draw(|rng| rng.usize(..self.timers.len()));
        self.shut(which);
    }
}

/// Notes that a callback has returned, also after a panic.
struct Returned<'a>(&'a Scene, Id);

impl Drop for Returned<'_> {
    fn drop(&mut self) {
        let now = self.0.now();
        self.0.model().note_returned(self.1, now);
    }
}

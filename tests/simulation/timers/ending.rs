//! Shutting down, in the middle or at the end.

use std::sync::Arc;
use std::time::Instant;

use shardwheel::Unfired;

use super::Scene;
use super::model::{Id, Kind, Model, State};

/// What a timer must hand back.
struct Expected {
    /// Their deadlines, sorted; none if one of them may be due at either of two ticks.
    deadlines: Option<Vec<u64>>,
    callbacks: Vec<Id>,
}

impl Scene {
    /// Shuts a timer down, and runs some of what it returns.
    pub(super) fn shut(self: &Arc<Self>, which: usize) {
        let expected = {
            let mut model = self.model();
            model.log.add(("shut down", which));
            model.begin_shutdown(which)
        };
        let unfired = self.timers[which].shutdown();
        let (callbacks, handed) = (unfired.len(), self.hand_out(unfired, &expected));
        let mut model = self.model();
        let count = expected.callbacks.len();
        model.expect(callbacks == count, || format!("{callbacks} were handed back, and should {count}"));
        let all_known = handed.iter().all(|id| expected.callbacks.contains(id));
        model.expect(all_known, || format!("handed back: {handed:?}"));
        let asleep = model.unwoken(which);
        model.expect(asleep.is_none(), || format!("a wait was not woken: {asleep:?}"));
    }

    /// Runs every other task, and drops the rest. Returns which were run.
    fn hand_out(&self, unfired: Unfired, expected: &Expected) -> Vec<Id> {
        self.model().handed = Some(Vec::new());
        let mut deadlines = Vec::new();
        for (number, task) in unfired.enumerate() {
            deadlines.push(task.deadline());
            if number % 2 == 0 {
                task.run();
            }
        }
        self.check_deadlines(deadlines, expected);
        self.model().handed.take().unwrap_or_default()
    }

    fn check_deadlines(&self, deadlines: Vec<Option<Instant>>, expected: &Expected) {
        let Some(expected) = &expected.deadlines else { return };
        let nanos = |at: Option<Instant>| {
            at.map_or(u64::MAX, |at| u64::try_from((at - self.begin).as_nanos()).unwrap_or(u64::MAX))
        };
        let mut deadlines: Vec<_> = deadlines.into_iter().map(nanos).collect();
        deadlines.sort_unstable();
        self.model()
            .expect(deadlines == *expected, || format!("handed back: {deadlines:?}, not {expected:?}"));
    }

    /// Ends the simulation: nothing of it is left.
    pub(super) fn end(self: &Arc<Self>) {
        for which in 0..self.timers.len() {
            self.shut(which);
        }
        self.check();
        self.poll_all();
        self.waits().clear();
        self.check();
        let holders = Arc::strong_count(self) - 1;
        let mut model = self.model();
        let left = (holders, model.alive, model.alarms);
        model.expect(left == (0, 0, 0), || format!("holders, callbacks and wakers that are left: {left:?}"));
    }
}

impl Model {
    fn begin_shutdown(&mut self, which: usize) -> Expected {
        let books = &mut self.books[which];
        books.is_shut = true;
        books.handed_back += books.pending.len() as u64;
        // The current occurrence is the last.
        books.fired += std::mem::take(&mut books.running) as u64;
        let all: Vec<_> = std::mem::take(&mut books.pending).into_iter().map(|(_, id)| id).collect();
        let is_callback = |id: &Id| !matches!(self.entries[*id].kind, Kind::Wait);
        let callbacks: Vec<_> = all.iter().copied().filter(is_callback).collect();
        let deadlines = self.known_deadlines(which, &callbacks);
        all.iter().for_each(|&id| self.hand_back(id));
        let running = self.at_work.filter(|&id| self.entries[id].timer == which);
        if let Some(running) = running.filter(|&id| self.entries[id].state == State::Running) {
            self.entries[running].state = State::Stopped;
        }
        Expected { deadlines, callbacks }
    }

    fn known_deadlines(&self, which: usize, ids: &[Id]) -> Option<Vec<u64>> {
        let deadline = |&id: &Id| {
            let due = self.entries[id].due;
            (due.first == due.last).then(|| self.books[which].start_of(due.first))
        };
        let mut deadlines = ids.iter().map(deadline).collect::<Option<Vec<_>>>()?;
        deadlines.sort_unstable();
        Some(deadlines)
    }

    /// A callback ends; a wait is woken later.
    fn hand_back(&mut self, id: Id) {
        self.close(id);
        if matches!(self.entries[id].kind, Kind::Wait) {
            self.entries[id].state = State::Stopped;
        }
    }

    fn unwoken(&self, which: usize) -> Option<Id> {
        let is_unwoken = |id: &Id| {
            let entry = &self.entries[*id];
            entry.timer == which && entry.state == State::Stopped && matches!(entry.kind, Kind::Wait)
        };
        (0..self.entries.len()).find(is_unwoken)
    }
}

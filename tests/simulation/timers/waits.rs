//! Sleeps, polled by hand.

use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use shardwheel::{ScheduleErrorKind, Sleep};

use super::books::{Due, When};
use super::model::{Id, Kind, Model, State};
use super::{Nanos, Scene};
use crate::draw::any;
use crate::support::{before_poll, poll};

/// The most waits at a time.
const MOST_WAITS: usize = 12;

pub(crate) struct Wait {
    id: Id,
    sleep: Sleep,
    deadline: Nanos,
    stage: Stage,
    waker: Waker,
    /// Whether the library was polled with another waker last.
    is_other_waker: bool,
}

type Outcome = Result<(), ScheduleErrorKind>;

/// What the library knows of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Waiting,
    /// It was reset to a time that had passed.
    Overdue,
    Done(Outcome),
}

/// What a waker wakes.
struct Alarm {
    scene: Arc<Scene>,
    id: Id,
}

impl Alarm {
    fn waker(scene: &Arc<Scene>, id: Id) -> Waker {
        scene.model().alarms += 1;
        Waker::from(Arc::new(Self { scene: Arc::clone(scene), id }))
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        let is_end = self.scene.model().note_woken_at_end(self.id);
        if !is_end {
            self.scene.be_at_work(self.id);
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.scene.model().alarms -= 1;
    }
}

impl Scene {
    pub(super) fn begin_wait(self: &Arc<Self>) {
        if self.waits().len() >= MOST_WAITS {
            return;
        }
        let (when, now) = (self.when(), self.now());
        let (id, which) = {
            let mut model = self.model();
            let which = model.rng.usize(..self.timers.len());
            let id = model.open(which, Kind::Wait);
            model.log.add(("wait", id, which, when));
            (id, which)
        };
        let timer = &self.timers[which];
        let (sleep, deadline) = match when {
            When::After(delay) => (timer.sleep(Duration::from_nanos(delay)), now.saturating_add(delay)),
            When::At(at) => (timer.sleep_until(self.instant(at)), at),
        };
        let (stage, waker) = (Stage::Idle, Alarm::waker(self, id));
        self.waits().push(Wait { id, sleep, deadline, stage, waker, is_other_waker: false });
    }

    pub(super) fn use_wait(self: &Arc<Self>) {
        let taken = {
            let mut waits = self.waits();
            let at = any(&mut self.model().rng, waits.len());
            at.map(|at| waits.swap_remove(at))
        };
        let Some(mut wait) = taken else { return };
        match self.draw(|rng| rng.u32(..16)) {
            0 => return self.end_wait(wait),
            1..5 => self.reset(&mut wait),
            5..8 => {
                (wait.waker, wait.is_other_waker) = (Alarm::waker(self, wait.id), true);
                self.poll(&mut wait);
            }
            _ => self.poll(&mut wait),
        }
        self.check_elapsed(&wait);
        self.waits().push(wait);
    }

    fn end_wait(&self, wait: Wait) {
        let id = wait.id;
        drop(wait);
        let mut model = self.model();
        model.log.add(("wait dropped", id));
        if model.entries[id].state == State::Pending {
            model.note_cancelled(id, true);
        }
    }

    fn reset(&self, wait: &mut Wait) {
        let When::At(at) = self.when() else { return };
        wait.sleep.reset(self.instant(at));
        let now = self.now();
        let is_overdue = now >= at;
        wait.deadline = at;
        let mut model = self.model();
        model.log.add(("wait reset", wait.id, at));
        let (entry, books) = model.entry(wait.id);
        let due = Due::at(books.tick_for(at));
        if entry.state == State::Pending {
            model.arm(wait.id, due, now);
            wait.stage = if is_overdue { Stage::Overdue } else { Stage::Waiting };
        } else {
            wait.stage = Stage::Idle;
        }
    }

    fn check_elapsed(&self, wait: &Wait) {
        let (answer, now) = (wait.sleep.is_elapsed(), self.now());
        let mut model = self.model();
        let expected = match wait.stage {
            Stage::Idle | Stage::Done(Err(_)) => now >= wait.deadline,
            Stage::Waiting => {
                let (entry, books) = model.entry(wait.id);
                entry.state != State::Pending && (!books.is_shut || now >= wait.deadline)
            }
            Stage::Overdue | Stage::Done(Ok(())) => true,
        };
        model.expect(answer == expected, || format!("{}: is_elapsed says {answer}", wait.id));
    }

    /// At the end, when nothing is pending, no poll returns pending.
    pub(super) fn poll_all(&self) {
        let waits = std::mem::take(&mut *self.waits());
        for mut wait in waits {
            self.poll(&mut wait);
        }
    }

    fn poll(&self, wait: &mut Wait) {
        before_poll();
        let outcome = poll(&mut wait.sleep, &wait.waker).map_err(|error| error.kind());
        let now = self.now();
        let mut model = self.model();
        model.log.add(("polled", wait.id, outcome.is_ready()));
        model.judge(wait, outcome, now);
        wait.is_other_waker = false;
        wait.stage = match outcome {
            Poll::Pending => Stage::Waiting,
            Poll::Ready(outcome) => Stage::Done(outcome),
        };
    }
}

impl Model {
    /// A wait is woken because its timer is shut down. Returns false if it is not.
    fn note_woken_at_end(&mut self, id: Id) -> bool {
        let entry = &mut self.entries[id];
        let is_end = entry.state == State::Stopped;
        if is_end {
            entry.state = State::Over;
        }
        is_end
    }

    /// Whether a poll must have had this result.
    fn judge(&mut self, wait: &Wait, outcome: Poll<Outcome>, now: Nanos) {
        let (entry, books) = self.entry(wait.id);
        let (is_pending, is_shut) = (entry.state == State::Pending, books.is_shut);
        let is_due = books.tick_for(wait.deadline) <= books.tick_at(now);
        // The clock has reached the wait's tick while its timer waits to be fired: a poll with
        // another waker may end the wait.
        let is_taken_early = is_pending && wait.is_other_waker && is_due && outcome.is_ready();
        let expected = match wait.stage {
            Stage::Idle => return self.judge_begun(wait, outcome, now),
            Stage::Waiting if is_pending && !is_taken_early => Poll::Pending,
            Stage::Waiting if !is_pending && is_shut && now < wait.deadline => {
                Poll::Ready(Err(ScheduleErrorKind::ShutDown))
            }
            Stage::Overdue | Stage::Waiting => {
                if is_pending {
                    self.note_cancelled(wait.id, true);
                }
                Poll::Ready(Ok(()))
            }
            Stage::Done(result) => Poll::Ready(result),
        };
        let id = wait.id;
        self.expect(outcome == expected, || format!("{id}, polled: {outcome:?}, and should be {expected:?}"));
    }

    /// The same for a wait that the library did not know before. If its deadline has passed it is over
    /// at once, and needs no room and no timer that is open.
    fn judge_begun(&mut self, wait: &Wait, outcome: Poll<Outcome>, now: Nanos) {
        let id = wait.id;
        let refusal = self.refusal(self.entries[id].timer);
        let (tick, is_over) = (self.entry(id).1.tick_for(wait.deadline), now >= wait.deadline);
        let is_right = match outcome {
            Poll::Ready(Ok(())) => is_over,
            Poll::Ready(Err(kind)) => refusal == Some(kind) && !is_over,
            Poll::Pending => refusal.is_none() && !is_over,
        };
        self.expect(is_right, || format!("{id}, polled: {outcome:?}, due at {}", wait.deadline));
        if outcome.is_pending() {
            self.arm_first(id, Due::at(tick), now);
        }
    }
}

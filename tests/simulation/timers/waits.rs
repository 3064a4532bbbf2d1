//! Sleeps and intervals, polled by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures::Stream;
use shardwheel::{Interval, Missed, ScheduleErrorKind, Sleep, SleepError};

use super::books::{Due, When};
use super::model::{Id, Kind, Model, State};
use super::rhythm::next_of;
use super::{Nanos, Scene};
use crate::draw::{any, magnitude};
use crate::support::before_poll;

/// The most waits at a time.
const MOST_WAITS: usize = 12;

pub(crate) struct Wait {
    id: Id,
    future: Waiting,
    deadline: Nanos,
    stage: Stage,
    waker: Waker,
    /// Whether the library was polled with another waker last.
    is_other_waker: bool,
}

enum Waiting {
    Sleep(Sleep),
    Interval(Interval, Nanos, Missed),
}

/// What the library knows of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Waiting,
    /// It was reset to a time that had passed.
    Overdue,
    Done(Result<(), ScheduleErrorKind>),
    /// An interval that has returned its error.
    Ended,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Over(Result<(), ScheduleErrorKind>),
    Tick(Instant),
    Ended,
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
        let (id, which, what) = {
            let mut model = self.model();
            let which = model.rng.usize(..self.timers.len());
            let id = model.open(which, Kind::Wait);
            model.log.add(("wait", id, which, when));
            (id, which, model.rng.u32(..6))
        };
        let (future, deadline) = match what {
            0 => self.interval(which, now),
            _ => self.sleep(which, when, now),
        };
        let waker = Alarm::waker(self, id);
        let wait = Wait { id, future, deadline, stage: Stage::Idle, waker, is_other_waker: false };
        self.waits().push(wait);
    }

    fn sleep(&self, which: usize, when: When, now: Nanos) -> (Waiting, Nanos) {
        let timer = &self.timers[which];
        let sleep = match when {
            When::After(delay) => timer.sleep(Duration::from_nanos(delay)),
            When::At(at) => timer.sleep_until(self.instant(at)),
        };
        (Waiting::Sleep(sleep), when.since(now))
    }

    fn interval(&self, which: usize, now: Nanos) -> (Waiting, Nanos) {
        let missed = [Missed::Burst, Missed::Skip, Missed::Delay];
        let (period, missed) = {
            let mut model = self.model();
            let scale = model.scale;
            (magnitude(&mut model.rng, scale).max(1), missed[model.rng.usize(..3)])
        };
        let interval = self.timers[which].interval(Duration::from_nanos(period)).missed(missed);
        (Waiting::Interval(interval, period, missed), now)
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
        let (Waiting::Sleep(sleep), When::At(at)) = (&mut wait.future, self.when()) else { return };
        sleep.reset(self.instant(at));
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
        let Waiting::Sleep(sleep) = &wait.future else { return };
        let (answer, now) = (sleep.is_elapsed(), self.now());
        let mut model = self.model();
        let expected = match wait.stage {
            Stage::Idle => now >= wait.deadline,
            Stage::Waiting => {
                let (entry, books) = model.entry(wait.id);
                entry.state != State::Pending && (!books.is_shut || now >= wait.deadline)
            }
            Stage::Overdue | Stage::Done(Ok(())) => true,
            Stage::Done(Err(_)) | Stage::Ended => now >= wait.deadline,
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
        let outcome = wait.poll();
        let now = self.now();
        let mut model = self.model();
        model.log.add(("polled", wait.id, outcome.is_ready()));
        let outcome = match outcome {
            Poll::Ready(Outcome::Tick(at)) => {
                let expected = self.instant(wait.deadline);
                model.expect(at == expected, || format!("{} has ticked at a wrong time", wait.id));
                Poll::Ready(Outcome::Over(Ok(())))
            }
            outcome => outcome,
        };
        model.judge(wait, &outcome, now);
        wait.is_other_waker = false;
        wait.note(outcome, now);
    }
}

impl Wait {
    /// No tick of an interval comes after the timer's end, also if it has passed.
    fn is_interval(&self) -> bool {
        matches!(self.future, Waiting::Interval(..))
    }

    fn poll(&mut self) -> Poll<Outcome> {
        let context = &mut Context::from_waker(&self.waker);
        let kind = |error: SleepError| error.kind();
        match &mut self.future {
            Waiting::Sleep(sleep) => {
                Pin::new(sleep).poll(context).map(|result| Outcome::Over(result.map_err(kind)))
            }
            Waiting::Interval(interval, ..) => Pin::new(interval).poll_next(context).map(|tick| match tick {
                None => Outcome::Ended,
                Some(Ok(at)) => Outcome::Tick(at),
                Some(Err(error)) => Outcome::Over(Err(error.kind())),
            }),
        }
    }

    fn note(&mut self, outcome: Poll<Outcome>, now: Nanos) {
        let Poll::Ready(outcome) = outcome else {
            self.stage = Stage::Waiting;
            return;
        };
        self.stage = match (&self.future, outcome) {
            (Waiting::Interval(_, period, missed), Outcome::Over(Ok(()))) => {
                self.deadline = next_of(*period, *missed, self.deadline, now);
                Stage::Idle
            }
            // A refusal does not end an interval: the next poll tries again.
            (Waiting::Interval(..), Outcome::Over(Err(ScheduleErrorKind::Full { .. }))) => Stage::Idle,
            (Waiting::Interval(..), _) => Stage::Ended,
            (_, Outcome::Over(result)) => Stage::Done(result),
            (_, _) => self.stage,
        };
    }
}

impl When {
    fn since(self, now: Nanos) -> Nanos {
        match self {
            Self::After(delay) => now.saturating_add(delay),
            Self::At(at) => at,
        }
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
    fn judge(&mut self, wait: &Wait, outcome: &Poll<Outcome>, now: Nanos) {
        let (entry, books) = self.entry(wait.id);
        let (state, is_shut) = (entry.state, books.is_shut);
        let is_due = books.tick_for(wait.deadline) <= books.tick_at(now);
        let expected = match wait.stage {
            Stage::Idle => return self.judge_begun(wait, outcome, now),
            Stage::Overdue => {
                if state == State::Pending {
                    self.note_cancelled(wait.id, true);
                }
                let has_ended = is_shut && wait.is_interval();
                let result = if has_ended { Err(ScheduleErrorKind::ShutDown) } else { Ok(()) };
                Poll::Ready(Outcome::Over(result))
            }
            // The clock has reached the wait's tick while its timer waits to be fired: a poll with
            // another waker ends the wait.
            Stage::Waiting
                if state == State::Pending && wait.is_other_waker && is_due && outcome.is_ready() =>
            {
                self.note_cancelled(wait.id, true);
                Poll::Ready(Outcome::Over(Ok(())))
            }
            Stage::Waiting if state == State::Pending => Poll::Pending,
            Stage::Waiting if is_shut && now < wait.deadline => {
                Poll::Ready(Outcome::Over(Err(ScheduleErrorKind::ShutDown)))
            }
            Stage::Waiting if is_shut && wait.is_interval() => {
                Poll::Ready(Outcome::Over(Err(ScheduleErrorKind::ShutDown)))
            }
            Stage::Waiting => Poll::Ready(Outcome::Over(Ok(()))),
            Stage::Done(result) => Poll::Ready(Outcome::Over(result)),
            Stage::Ended => Poll::Ready(Outcome::Ended),
        };
        self.expect(*outcome == expected, || {
            format!("{}, polled: {outcome:?}, and should be {expected:?}", wait.id)
        });
    }

    /// The same for a wait that the library did not know before. If its deadline has passed it is over
    /// at once, and needs no room and no timer that is open.
    fn judge_begun(&mut self, wait: &Wait, outcome: &Poll<Outcome>, now: Nanos) {
        let id = wait.id;
        let refusal = self.refusal(self.entries[id].timer);
        let (_, books) = self.entry(id);
        let has_ended = books.is_shut && wait.is_interval();
        let (tick, is_over) = (books.tick_for(wait.deadline), now >= wait.deadline && !has_ended);
        let is_right = match outcome {
            Poll::Ready(Outcome::Over(Ok(()))) => is_over,
            Poll::Ready(Outcome::Over(Err(kind))) => refusal == Some(*kind) && !is_over,
            Poll::Pending => refusal.is_none() && !is_over,
            Poll::Ready(_) => false,
        };
        self.expect(is_right, || format!("{id}, polled: {outcome:?}, due at {}", wait.deadline));
        if outcome.is_pending() {
            self.arm_first(id, Due::at(tick), now);
        }
    }
}

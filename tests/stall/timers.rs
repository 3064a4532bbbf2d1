//! A producer of a `Timer` with one shard is stopped: other sleeps and callbacks come in time, and
//! a shutdown returns.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use shardwheel::stall::Stop;
use shardwheel::{
    DelayQueue, Group, ManualClock, ScheduleError, Sleep, SleepError, Timer, TimerKey, Unfired,
};

use crate::first::{Case, First};
use crate::steps::{Findings, Job};
use crate::support::ledger::{End, Ledger, Payload};
use crate::support::{Bell, HOUR, comes_within, poll};

const NEAR: Duration = Duration::from_millis(20);
const TICK: Duration = Duration::from_millis(1);

/// How long an event in real time may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A limit that is soon reached.
const MOST_PENDING: usize = 64;

/// How the clock moves, and when the timer is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    ByHand,
    ByHandShutDownMeanwhile,
    RealTime,
    RealTimeShutDownMeanwhile,
}

impl Plan {
    const ALL: [Self; 4] =
        [Self::ByHand, Self::ByHandShutDownMeanwhile, Self::RealTime, Self::RealTimeShutDownMeanwhile];

    fn shuts_down_meanwhile(self) -> bool {
        matches!(self, Self::ByHandShutDownMeanwhile | Self::RealTimeShutDownMeanwhile)
    }

    fn clock(self) -> Option<ManualClock> {
        matches!(self, Self::ByHand | Self::ByHandShutDownMeanwhile).then(ManualClock::new)
    }
}

/// What the producer works with.
struct Desk {
    timer: Arc<Timer>,
    ledger: Ledger,
    /// A queue of its own, with one value, and the queue that all others use.
    own_queue: Option<DelayQueue<Payload>>,
    queue: Arc<DelayQueue<()>>,
    key: Option<TimerKey>,
    sleep: Option<Polled>,
    /// How many callbacks it has cancelled.
    cancelled: usize,
    /// Whether its callback recurs.
    recurs: bool,
    /// Whether the sleep was pending before the stop.
    was_asleep: bool,
    /// Whether it closes the queue.
    closes: bool,
}

/// A sleep, and the task that polled it last.
struct Polled {
    sleep: Sleep,
    task: Arc<Bell>,
    /// The result of that poll.
    answer: Option<Poll<Result<(), SleepError>>>,
}

impl Polled {
    fn new(sleep: Sleep) -> Self {
        Self { sleep, task: Arc::default(), answer: None }
    }

    /// Polls with another task's waker.
    fn poll(&mut self) -> Poll<Result<(), SleepError>> {
        let (task, waker) = Bell::new();
        self.task = task;
        let answer = poll(&mut self.sleep, &waker);
        self.answer = Some(answer);
        answer
    }

    /// Whether its task need not wait for ever.
    fn is_served(&self) -> bool {
        self.task.has_rung() || self.answer != Some(Poll::Pending)
    }
}

impl Desk {
    fn new(others: &Others) -> Self {
        Self {
            timer: Arc::clone(&others.timer),
            ledger: Ledger::default(),
            own_queue: None,
            queue: Arc::clone(&others.queue),
            key: None,
            sleep: None,
            cancelled: 0,
            recurs: false,
            was_asleep: false,
            closes: false,
        }
    }

    fn make_queue(&mut self) {
        let queue = DelayQueue::new(&self.timer);
        drop(queue.insert(self.ledger.payload(), HOUR));
        self.own_queue = Some(queue);
    }

    /// Drops the queue, and the value with it.
    fn drop_queue(&mut self) {
        self.cancelled += 1;
        self.own_queue = None;
    }

    fn close(&mut self) {
        self.closes = true;
        self.queue.close();
    }

    fn call_back(&mut self, delay: Duration) {
        let payload = self.ledger.payload();
        self.key = or_run(self.timer.schedule_after(delay, move || payload.end(End::Fired)));
    }

    fn call_every(&mut self, period: Duration) {
        self.recurs = true;
        let payload = self.ledger.payload();
        let every = self.timer.schedule_every(period, move || payload.note_once(End::Fired));
        self.key = every.map_err(|refused| refused.into_payload()()).ok();
    }

    fn cancel(&mut self) {
        let key = self.key.take().expect("it has scheduled one");
        self.cancelled += usize::from(self.timer.cancel(key));
    }

    fn move_to(&mut self, delay: Duration) {
        self.key = self.key.and_then(|key| self.timer.reschedule_after(key, delay));
    }

    fn make_sleep(&mut self, duration: Duration) {
        self.sleep = Some(Polled::new(self.timer.sleep(duration)));
    }

    fn poll(&mut self) {
        let _ = self.sleep().poll();
    }

    fn reset(&mut self, duration: Duration) {
        let deadline = self.timer.now() + duration;
        self.sleep().sleep.reset(deadline);
    }

    fn sleep(&mut self) -> &mut Polled {
        self.sleep.as_mut().expect("it has made one")
    }
}

/// Returns the key; a refused callback runs here.
fn or_run<F: FnOnce()>(scheduled: Result<TimerKey, ScheduleError<F>>) -> Option<TimerKey> {
    scheduled.map_err(|refused| refused.into_payload()()).ok()
}

fn cases() -> Vec<Case<Desk>> {
    fn nothing(_: &mut Desk) {}
    fn callback(desk: &mut Desk) {
        desk.call_back(HOUR);
    }
    fn recurring(desk: &mut Desk) {
        desk.call_every(HOUR);
    }
    fn sleep(desk: &mut Desk) {
        desk.make_sleep(HOUR);
    }
    fn sleeping(desk: &mut Desk) {
        sleep(desk);
        desk.poll();
        desk.was_asleep = true;
    }
    let case =
        |name, prepare, act| Case { name, prepare, act, pins: true, may_drop: false, to_its_end: false };
    let moving = |name, prepare, act| Case { may_drop: true, ..case(name, prepare, act) };
    vec![
        case("Timer::schedule_after", nothing, |desk: &mut Desk| desk.call_back(NEAR)),
        case("Timer::schedule_every", nothing, |desk| desk.call_every(HOUR)),
        case("Timer::cancel", callback, Desk::cancel),
        case("Timer::cancel, recurring", recurring, Desk::cancel),
        case("Timer::reschedule_after, later", callback, |desk| desk.move_to(2 * HOUR)),
        moving("Timer::reschedule_after, earlier", callback, |desk| desk.move_to(NEAR)),
        moving("Timer::reschedule_after, recurring", recurring, |desk| desk.move_to(NEAR)),
        case("Sleep, polled first", sleep, Desk::poll),
        case("Sleep, polled with another waker", sleeping, Desk::poll),
        moving("Sleep, reset earlier", sleeping, |desk| desk.reset(NEAR)),
        case("Sleep, reset later", sleeping, |desk| desk.reset(2 * HOUR)),
        case("Sleep, dropped", sleeping, |desk| desk.sleep = None),
        case("DelayQueue::close", nothing, Desk::close),
        case("DelayQueue, dropped", Desk::make_queue, Desk::drop_queue),
    ]
}

pub(crate) fn jobs() -> Vec<Job> {
    let plans = |case| Plan::ALL.map(|plan| [(case, plan, false), (case, plan, true)]).into_iter().flatten();
    let job = |(case, plan, in_group): (Case<Desk>, Plan, bool)| Job {
        name: format!("{}, {plan:?}{}", case.name, if in_group { ", in a group" } else { "" }),
        attempt: Arc::new(move |stop, findings| play(case, plan, in_group, stop, findings)),
    };
    cases().into_iter().flat_map(plans).map(job).collect()
}

/// All others.
struct Others {
    timer: Arc<Timer>,
    /// The group that the stopped producer and all others use, if any.
    group: Option<Group>,
    clock: Option<ManualClock>,
    patience: Cell<Duration>,
    queue: Arc<DelayQueue<()>>,
}

fn play(case: Case<Desk>, plan: Plan, in_group: bool, stop: &'static Stop, findings: &mut Findings) -> bool {
    let others = Others::new(plan.clock(), in_group);
    // The worker runs, and goes to sleep.
    others.go_about(findings);
    others.rest();
    let (first, go) = First::prepared(case, Desk::new(&others), stop);
    go();
    let has_stopped = first.has_stopped();
    // At the second time the worker has gone to sleep while the producer was stopped.
    (0..2).for_each(|_| others.go_about(findings));
    let desk = if plan.shuts_down_meanwhile() {
        others.shut_down(findings);
        first.finish()
    } else {
        others.pass(3 * HOUR);
        let keys = others.fill();
        let desk = first.finish();
        check_sleep(&desk, &others, case.may_drop, findings);
        keys.into_iter().for_each(|key| _ = others.timer.cancel(key));
        others.check_queue(desk.closes, findings);
        others.pass(3 * HOUR);
        others.shut_down(findings);
        desk
    };
    let may_drop = case.may_drop && plan.shuts_down_meanwhile();
    drop(others);
    check_outcome(desk, may_drop, findings);
    has_stopped
}

/// A sleep that was pending when its producer was stopped keeps its place and its deadline. A sleep
/// that is being moved may be placed after the clock has moved, and comes at its next move.
fn check_sleep(desk: &Desk, others: &Others, is_moved: bool, findings: &mut Findings) {
    if let Some(sleep) = desk.sleep.as_ref().filter(|_| desk.was_asleep) {
        let is_refused = matches!(sleep.answer, Some(Poll::Ready(Err(_))));
        findings.check("a pending sleep keeps its place", !is_refused);
        let is_due = others.clock.is_some() && !is_moved;
        findings.check("a pending sleep is woken at its deadline", !is_due || sleep.is_served());
    }
}

/// Checks that the stopped producer's operation had one outcome.
fn check_outcome(mut desk: Desk, may_drop: bool, findings: &mut Findings) {
    if let Some(sleep) = &mut desk.sleep {
        findings.check("the stopped sleep's task is woken", sleep.is_served() || may_drop);
        findings.check("the stopped sleep ends", sleep.poll().is_ready());
    }
    let Desk { timer, ledger, cancelled, recurs, .. } = desk;
    drop((timer, desk.sleep, desk.queue));
    let dropped = ledger.dropped_without_an_end();
    findings.check("each callback has one outcome", dropped.is_some());
    // A recurring callback may have run before it was cancelled.
    let is_right = |dropped| dropped == cancelled || recurs && dropped < cancelled;
    findings.check("nothing is lost", dropped.is_none_or(is_right) || may_drop);
}

impl Others {
    fn new(clock: Option<ManualClock>, in_group: bool) -> Self {
        let builder = Timer::builder().shards(1).tick(TICK).max_pending(MOST_PENDING);
        let builder = if let Some(clock) = &clock { builder.clock(clock.clone()) } else { builder };
        let timer = builder.build().expect("settings within their limits");
        let group = in_group.then(|| timer.group());
        let timer = group.as_deref().cloned().unwrap_or(timer);
        // A segment exists, and the worker has a time to sleep until.
        or_run(timer.schedule_after(2 * HOUR, || ()));
        let queue = Arc::new(DelayQueue::new(&timer));
        Self { timer: Arc::new(timer), group, clock, patience: Cell::new(PATIENCE), queue }
    }

    /// Gives the worker time to go to sleep.
    fn rest(&self) {
        if self.clock.is_none() {
            thread::sleep(TICK);
        }
    }

    fn pass(&self, time: Duration) {
        if let Some(clock) = &self.clock {
            clock.advance(time);
        }
    }

    /// Waits until `holds` returns true; with a manual clock it must do so at once.
    fn waits_for(&self, holds: impl Fn() -> bool) -> bool {
        let patience = if self.clock.is_none() { self.patience.get() } else { Duration::ZERO };
        let comes = comes_within(patience, holds);
        if !comes {
            // The case has failed; further failures are found without the wait.
            self.patience.set(Duration::ZERO);
        }
        comes
    }

    /// Schedules as many timers as there is room for.
    fn fill(&self) -> Vec<TimerKey> {
        let set = || self.timer.schedule_after(HOUR, || ()).ok();
        std::iter::from_fn(set).collect()
    }

    /// A sleep and a callback come in time, and another timer is cancelled.
    fn go_about(&self, findings: &mut Findings) {
        let mut sleep = Polled::new(self.timer.sleep(5 * TICK));
        let is_pending = sleep.poll().is_pending();
        let (called, call) = Bell::new();
        let set = or_run(self.timer.schedule_after(5 * TICK, move || call.wake()));
        let cancelled =
            or_run(self.timer.schedule_after(HOUR, || ())).is_some_and(|key| self.timer.cancel(key));
        let (value, removed) = (self.queue.insert((), 5 * TICK).ok(), self.queue.insert((), HOUR).ok());
        let is_removed = removed.is_none_or(|key| self.queue.remove(&key).is_some());
        findings.check("a value is removed", is_removed);
        findings.check("timers are accepted and cancelled", set.is_some() && cancelled);
        self.pass(4 * TICK);
        let is_early = self.clock.is_some() && (sleep.task.has_rung() || called.has_rung());
        findings.check("nothing is early", !is_early);
        self.pass(TICK);
        findings.check("another's sleep is woken", !is_pending || self.waits_for(|| sleep.task.has_rung()));
        findings.check("another's sleep has ended", sleep.poll() == Poll::Ready(Ok(())));
        findings.check("another's callback is called", self.waits_for(|| called.has_rung()));
        let comes_out = value.is_none() || self.waits_for(|| self.queue.try_recv().is_some());
        findings.check("another's value comes out", comes_out);
    }

    /// Once the close has returned, the queue refuses values and has ended.
    fn check_queue(&self, is_closed: bool, findings: &mut Findings) {
        let is_refused = self.queue.insert((), HOUR).is_err();
        let has_ended = poll(&mut self.queue.next(), Waker::noop()).is_ready();
        findings.check("a closed queue has ended", (is_refused, has_ended) == (is_closed, is_closed));
        self.queue.drain().for_each(drop);
    }

    /// Shutdown returns what is pending, and wakes the sleep.
    fn shut_down(&self, findings: &mut Findings) {
        let mut sleep = Polled::new(self.timer.sleep(HOUR));
        findings.check("a sleep waits", sleep.poll().is_pending());
        let (called, call) = Bell::new();
        or_run(self.timer.schedule_after(HOUR, move || call.wake()));
        if let Some(group) = &self.group {
            findings.check("the group can be asked", group.len() >= 2);
        }
        let unfired: Unfired = self.timer.shutdown();
        unfired.for_each(|task| task.run());
        findings.check("another's callback is handed back", called.has_rung());
        findings.check("another's sleep is woken by the shutdown", sleep.task.has_rung());
        findings.check("another's sleep returns an error", matches!(sleep.poll(), Poll::Ready(Err(_))));
    }
}

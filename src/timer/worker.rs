//! A shard's worker: moves its clock, runs what is due, sleeps.
//!
//! It works in turns. A turn takes in the recurring tasks that come back from the executor, moves the shard's clock to
//! the present, and runs what is due, one after the other and [`BUDGET`] at most; what is left stays
//! due and comes first in the next turn. So a slow callback makes what comes after it late, and loses nothing.
//!
//! While user code runs (a callback, a waker, a drop), nothing is held and the advancer lies in a thread-local
//! drawer, where a `shutdown` called by that code finds it. A worker that finds its drawer empty afterwards has
//! been shut down, and ends.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use super::executor::{Executor, Job};
use super::home::Home;
use super::key::TimerKey;
use super::run::{Done, Outlet, Work};
use super::task::{Kind, Task};
use super::time::Nanos;
use crate::Tick;
use crate::shard::{Advancer, Due};

/// Timers run in a turn at most.
const BUDGET: usize = 1024;

/// How long an idle shard sleeps at most while memory waits to be given back.
const UNTIL_NEXT_SHARE: Duration = Duration::from_millis(50);

/// A timer's number, and a shard's within it.
pub(crate) type Place = (u64, u32);

pub(crate) struct Worker {
    /// None once user code has shut the timer down.
    advancer: Option<Box<Advancer<Task>>>,
    home: Arc<Home>,
    place: Place,
    executor: Option<Arc<dyn Executor>>,
    done: (Sender<Done>, Receiver<Done>),
    /// Whether a recurring task was armed for a time that has passed: it comes in the next turn.
    is_behind: bool,
}

impl Worker {
    pub(crate) fn new(
        place: Place,
        advancer: Advancer<Task>,
        home: Arc<Home>,
        executor: Option<Arc<dyn Executor>>,
    ) -> Self {
        Self { advancer: Some(Box::new(advancer)), home, place, executor, done: channel(), is_behind: false }
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Runs what is due, as far as the budget goes; true if more may be.
    pub(crate) fn turn(&mut self) -> bool {
        let mut now = self.home.time.now();
        self.is_behind = false;
        self.take_back();
        let Some(advancer) = &mut self.advancer else { return false };
        advancer.move_to(self.home.time.tick_at(now));
        for _ in 0..BUDGET {
            let Some(due) = self.next_due() else {
                // What an executor has run at once would otherwise wait for the next turn.
                self.take_back();
                return self.is_behind;
            };
            now = self.fire(due, now);
        }
        self.end_turn();
        true
    }

    /// The next task that is due; the turn is over if there is none.
    fn next_due(&mut self) -> Option<(Tick, Work)> {
        if self.home.is_stopping() {
            return None;
        }
        let due = self.advancer.as_mut()?.next_due(Task::recurs);
        let Some(due) = due else {
            self.end_turn();
            return None;
        };
        Some(match due {
            Due::Fired(fired) => {
                let key = TimerKey::once(fired.key);
                (fired.deadline, Work { key, task: fired.payload, running: None })
            }
            Due::Recurring(running, task) => {
                let key = TimerKey::recurring(running.key());
                (running.deadline(), Work { key, task, running: Some(running) })
            }
        })
    }

    fn end_turn(&mut self) {
        if let Some(advancer) = &mut self.advancer {
            advancer.end_drain();
        }
    }

    /// Runs a task, or hands it to the executor; returns the time after that.
    fn fire(&mut self, (deadline, work): (Tick, Work), begin: Nanos) -> Nanos {
        self.home.counts.note_fired(deadline, begin.saturating_sub(self.home.time.start_of(deadline)));
        match &self.executor {
            Some(executor) if work.task.kind() != Kind::Wake => self.hand_over(&*Arc::clone(executor), work),
            _ => {
                let done = self.in_user_code(|home| home.run(work)).flatten();
                self.settle(done);
            }
        }
        // For the statistics, which a microsecond does not matter to.
        let end = self.home.time.now_or_later();
        self.home.counts.note_callback(end.saturating_sub(begin));
        end
    }

    fn hand_over(&mut self, executor: &dyn Executor, work: Work) {
        let key = work.key;
        let outlet = Outlet { home: Arc::clone(&self.home), done: self.done.0.clone() };
        let job = Job::new(work, outlet);
        self.in_user_code(|home| home.watch.over(&home.counts, Some(key), || executor.execute(job)));
    }

    /// Takes in the recurring tasks that have run elsewhere.
    fn take_back(&mut self) {
        while let Ok(done) = self.done.1.try_recv() {
            self.settle(Some(done));
        }
    }

    /// Arms a recurring task anew, or ends it.
    fn settle(&mut self, done: Option<Done>) {
        let Some(Done { running, next }) = done else { return };
        let Some(advancer) = &mut self.advancer else {
            self.home.discard(next);
            return;
        };
        let Some((at, task)) = next else { return advancer.end_running(running) };
        let tick = self.home.time.tick_for(at);
        self.is_behind |= tick <= self.home.scheduler.now();
        let stopped = advancer.rearm(running, tick, task).err();
        if let Some(task) = stopped {
            self.in_user_code(|home| home.discard(task));
        }
    }

    /// Runs user code, the advancer in the drawer.
    fn in_user_code<R>(&mut self, code: impl FnOnce(&Home) -> R) -> Option<R> {
        let advancer = self.advancer.take()?;
        DRAWER.with_borrow_mut(|drawer| drawer.push((self.place, advancer)));
        let result = code(&self.home);
        self.advancer = take_from_drawer(self.place);
        Some(result)
    }

    /// When to take the next turn.
    pub(crate) fn next_expiration(&self) -> Option<Tick> {
        self.advancer.as_ref()?.next_expiration()
    }

    /// Whether nodes of cancelled timers are still to be given back.
    pub(crate) fn is_sweeping(&self) -> bool {
        self.advancer.as_ref().is_some_and(|advancer| advancer.is_sweeping())
    }

    /// Ends: what is left to be done is with the advancer, unless it has been shut down before.
    pub(crate) fn end(mut self) -> Option<Box<Advancer<Task>>> {
        self.take_back();
        self.advancer
    }

    /// Notes that there is nothing to do until the next expiration.
    pub(crate) fn rest(&self) {
        self.home.counts.note_sleep(self.next_expiration());
    }

    // ---- on a thread of its own -------------------------------------------------------------------

    /// Works until told to stop.
    pub(crate) fn work(mut self) -> Option<Box<Advancer<Task>>> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        while !self.home.is_stopping() {
            if !self.turn() && !self.is_sweeping() {
                self.sleep(&waker);
            }
        }
        self.end()
    }

    /// Sleeps until the next expiration, or until something needs attention before. Whoever wants that unparks
    /// this thread after he has done what it is to see, so nothing is missed between the look and the park.
    fn sleep(&mut self, waker: &Waker) {
        let Some(advancer) = &mut self.advancer else { return };
        advancer.register_waker(waker);
        let next = advancer.next_expiration();
        self.home.counts.note_sleep(next);
        let until =
            |tick| Duration::from_nanos(self.home.time.start_of(tick).saturating_sub(self.home.time.now()));
        let left = next.map(until);
        if advancer.owes_memory() && left.is_none_or(|left| left > UNTIL_NEXT_SHARE) {
            thread::park_timeout(UNTIL_NEXT_SHARE);
            advancer.shed();
        } else {
            match left {
                None => thread::park(),
                Some(Duration::ZERO) => {}
                Some(left) => thread::park_timeout(left),
            }
        }
    }
}

/// Wakes a thread that parks.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// The advancers of this thread's workers that run user code at the moment, the innermost last.
    static DRAWER: RefCell<Vec<(Place, Box<Advancer<Task>>)>> = const { RefCell::new(Vec::new()) };
}

/// The advancer of that shard, if user code that this thread runs for it has called us.
pub(crate) fn take_from_drawer(place: Place) -> Option<Box<Advancer<Task>>> {
    DRAWER.with_borrow_mut(|drawer| {
        let at = drawer.iter().rposition(|(of, _)| *of == place)?;
        Some(drawer.remove(at).1)
    })
}

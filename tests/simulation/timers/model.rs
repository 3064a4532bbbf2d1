//! All callbacks and waits, and what each may do now.
//!
//! With a clock that stops at each deadline there is one right time to fire: the start of the
//! deadline's tick. If the clock has jumped over that, it is the time after the jump; if the timer
//! was set later, it is the time at which it was set.

use fastrand::Rng;
use shardwheel::{ScheduleErrorKind, Tick, TimerKey};

use super::Nanos;
use super::books::{Books, Due};
use super::rhythm::{Next, Rhythm};
use crate::draw::{any, once_in};
use crate::log::Log;

pub(crate) type Id = usize;

/// The most bits of a delay: from a millisecond to nine years.
const LEAST_SCALE: u32 = 20;
const MOST_SCALE: u32 = 58;

/// What a timer of the library is used for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Once,
    Recurring(Recurrence),
    /// A future waits.
    Wait,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Recurrence {
    pub(crate) rhythm: Rhythm,
    /// When it was due last, and that deadline's tick.
    previous: Nanos,
    armed_for: Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Unknown to the library: a wait that has not been polled.
    Idle,
    Pending,
    /// Its callback runs, and it recurs.
    Running,
    /// Its callback runs for the last time.
    Stopped,
    Over,
}

pub(crate) struct Entry {
    pub(crate) timer: usize,
    pub(crate) kind: Kind,
    pub(crate) state: State,
    pub(crate) due: Due,
    pub(crate) key: Option<TimerKey>,
    armed_at: Nanos,
    is_dropped: bool,
}

pub(crate) struct Model {
    pub(crate) rng: Rng,
    /// The most bits of delays and moves: seconds in one simulation, years in another.
    pub(crate) scale: u32,
    pub(crate) log: Log,
    pub(crate) books: Vec<Books>,
    pub(crate) entries: Vec<Entry>,
    /// Keys that name nothing any more.
    pub(crate) stale: Vec<(usize, TimerKey)>,
    /// The first failure.
    pub(crate) fault: Option<String>,
    /// The entry whose callback or waker runs.
    pub(crate) at_work: Option<Id>,
    /// The numbers of unfired tasks that have been run.
    pub(crate) handed: Option<Vec<Id>>,
    /// The shortest period that is used now, so that the current move of the clock ends.
    pub(crate) least_period: Nanos,
    /// How often callbacks may still let time pass in the current move.
    pub(crate) passes: u32,
    /// Callbacks and wakers that exist.
    pub(crate) alive: usize,
    pub(crate) alarms: usize,
    /// The time to which the clock jumped last.
    leapt_to: Nanos,
}

impl Model {
    pub(crate) fn new(mut rng: Rng, log: Log, books: Vec<Books>) -> Self {
        let scale = rng.u32(LEAST_SCALE..=MOST_SCALE);
        Self {
            rng,
            scale,
            log,
            books,
            entries: Vec::new(),
            stale: Vec::new(),
            fault: None,
            at_work: None,
            handed: None,
            least_period: 1,
            passes: 0,
            alive: 0,
            alarms: 0,
            leapt_to: 0,
        }
    }

    pub(crate) fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.fault.is_none() {
            let what = what();
            self.log.add(("fault", &what));
            self.fault = Some(what);
        }
    }

    pub(crate) fn entry(&mut self, id: Id) -> (&mut Entry, &mut Books) {
        let entry = &mut self.entries[id];
        let books = &mut self.books[entry.timer];
        (entry, books)
    }

    /// A timer to use, of those that have a key: most often a pending one.
    pub(crate) fn pick(&mut self) -> Option<Id> {
        let which = self.rng.usize(..self.books.len());
        let pending = &self.books[which].pending;
        let picked = if once_in(&mut self.rng, 5) {
            any(&mut self.rng, self.entries.len())
        } else {
            any(&mut self.rng, pending.len()).and_then(|at| pending.iter().nth(at)).map(|&(_, id)| id)
        };
        picked.filter(|&id| self.entries[id].key.is_some())
    }

    pub(crate) fn open(&mut self, timer: usize, kind: Kind) -> Id {
        let (due, key) = (Due::at(0), None);
        let state = State::Idle;
        self.entries.push(Entry { timer, kind, state, due, key, armed_at: 0, is_dropped: false });
        self.entries.len() - 1
    }

    /// Notes a new recurring timer, and when it is due.
    pub(crate) fn open_recurring(&mut self, timer: usize, mut rhythm: Rhythm, now: Nanos) -> (Id, Due) {
        let previous = rhythm.first(now);
        let armed_for = self.books[timer].tick_for(previous);
        let id = self.open(timer, Kind::Recurring(Recurrence { rhythm, previous, armed_for }));
        (id, Due::at(armed_for))
    }

    /// What the library must answer to one more timer.
    pub(crate) fn refusal(&self, timer: usize) -> Option<ScheduleErrorKind> {
        let books = &self.books[timer];
        let full = books.is_full().then_some(ScheduleErrorKind::Full { limit: books.limit });
        if books.is_shut { Some(ScheduleErrorKind::ShutDown) } else { full }
    }

    /// The library has accepted a timer, or refused it.
    pub(crate) fn note_scheduled(
        &mut self,
        id: Id,
        due: Due,
        now: Nanos,
        result: Result<TimerKey, ScheduleErrorKind>,
    ) {
        let expected = self.refusal(self.entries[id].timer);
        self.expect(result.err() == expected, || format!("{id}: {result:?}, and should be {expected:?}"));
        self.entries[id].key = result.ok();
        match result {
            Ok(_) => self.arm_first(id, due, now),
            Err(_) => self.entries[id].state = State::Over,
        }
    }

    pub(crate) fn arm_first(&mut self, id: Id, due: Due, now: Nanos) {
        self.entry(id).1.scheduled += 1;
        self.arm(id, due, now);
    }

    /// The timer is pending from now on, or has a new deadline.
    pub(crate) fn arm(&mut self, id: Id, due: Due, now: Nanos) {
        self.disarm(id);
        let (entry, books) = self.entry(id);
        (entry.state, entry.due, entry.armed_at) = (State::Pending, due, now);
        books.pending.insert((due.last, id));
    }

    fn disarm(&mut self, id: Id) {
        let (entry, books) = self.entry(id);
        books.pending.remove(&(entry.due.last, id));
    }

    pub(crate) fn note_moved(&mut self, id: Id, key: Option<TimerKey>, due: Due, now: Nanos) {
        let was_pending = self.entries[id].state == State::Pending;
        self.expect(key.is_some() == was_pending, || format!("{id} was rescheduled, or not: {key:?}"));
        if let (Some(key), true) = (key, was_pending) {
            let former = self.entries[id].key.replace(key);
            let timer = self.entries[id].timer;
            self.stale.extend(former.filter(|&former| former != key).map(|former| (timer, former)));
            self.arm(id, due, now);
        }
    }

    pub(crate) fn note_cancelled(&mut self, id: Id, answer: bool) {
        let state = self.entries[id].state;
        let expected = matches!(state, State::Pending | State::Running);
        self.expect(answer == expected, || format!("cancelling {id}, which is {state:?}, says {answer}"));
        self.disarm(id);
        let (entry, books) = self.entry(id);
        books.cancelled += u64::from(expected);
        match state {
            State::Running => {
                books.running -= 1;
                entry.state = State::Stopped;
            }
            State::Pending => self.close(id),
            State::Idle | State::Stopped | State::Over => {}
        }
    }

    pub(crate) fn close(&mut self, id: Id) {
        self.disarm(id);
        let entry = &mut self.entries[id];
        entry.state = State::Over;
        self.stale.extend(entry.key.map(|key| (entry.timer, key)));
    }

    /// A callback begins, or a waker is woken. Returns false if that is a failure.
    pub(crate) fn fire(&mut self, id: Id, now: Nanos) -> bool {
        self.log.add(("fired", id, now));
        self.check_fired(id, now);
        self.disarm(id);
        self.at_work = Some(id);
        let (entry, books) = self.entry(id);
        match entry.kind {
            Kind::Recurring(_) => {
                entry.state = State::Running;
                books.running += 1;
            }
            Kind::Once | Kind::Wait => {
                books.fired += 1;
                self.close(id);
            }
        }
        self.fault.is_none()
    }

    fn check_fired(&mut self, id: Id, now: Nanos) {
        let leapt_to = self.leapt_to;
        let (entry, books) = self.entry(id);
        let (state, due) = (entry.state, entry.due);
        let not_before = entry.armed_at.max(leapt_to);
        let times = [due.first, due.last].map(|tick| books.start_of(tick).max(not_before));
        self.expect(state == State::Pending, || format!("{id} has fired, and is {state:?}"));
        self.expect(times.contains(&now), || format!("{id} has fired at {now}, not at {times:?}"));
    }

    /// A callback returns, or panics.
    pub(crate) fn note_returned(&mut self, id: Id, now: Nanos) {
        self.at_work = None;
        let (entry, books) = self.entry(id);
        match entry.state {
            State::Running => {
                books.running -= 1;
                books.fired += 1;
                if let Some(due) = self.next_due(id, now) {
                    self.entry(id).1.recurred += 1;
                    self.arm(id, due, now);
                } else {
                    self.close(id);
                }
            }
            State::Stopped => {
                // Its schedule is called nevertheless.
                let _ = self.next_due(id, now);
                self.close(id);
            }
            State::Idle | State::Pending | State::Over => {}
        }
    }

    /// When a recurring timer is due next whose callback returns now.
    fn next_due(&mut self, id: Id, now: Nanos) -> Option<Due> {
        let (entry, books) = self.entry(id);
        let Kind::Recurring(recurrence) = &mut entry.kind else { return None };
        let due = entry.due.first;
        if due != recurrence.armed_for {
            recurrence.previous = books.start_of(due);
        }
        match recurrence.rhythm.next(recurrence.previous, now) {
            Next::At(next, armed_at) => {
                (recurrence.previous, recurrence.armed_for) = (next, books.tick_for(armed_at));
                Some(Due::at(recurrence.armed_for))
            }
            Next::End => None,
            Next::Failure => {
                books.panics += 1;
                None
            }
        }
    }

    /// The clock jumps to `to`: what is due by then fires there.
    pub(crate) fn note_leap(&mut self, to: Nanos) {
        self.leapt_to = self.leapt_to.max(to);
    }

    pub(crate) fn note_dropped(&mut self, id: Id) {
        let twice = std::mem::replace(&mut self.entries[id].is_dropped, true);
        self.expect(!twice, || format!("{id} was dropped twice"));
        self.alive = self.alive.wrapping_sub(1);
    }

    /// As many callbacks exist as are pending.
    pub(crate) fn check_alive(&mut self) {
        let is_callback = |&&(_, id): &&(Tick, Id)| !matches!(self.entries[id].kind, Kind::Wait);
        let pending: usize =
            self.books.iter().map(|books| books.pending.iter().filter(is_callback).count()).sum();
        let alive = self.alive;
        self.expect(alive == pending, || format!("{alive} callbacks exist, {pending} are pending"));
    }
}

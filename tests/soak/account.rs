//! The account of one timer: what became of it, and of its payload.
//!
//! The payload is part of the timer's callback and holds the account, as do the threads that have
//! the timer's key. When all of them have dropped it nothing can happen any more, and the account
//! is checked.
//!
//! A cancel is noted after it has returned, so a callback that ran nevertheless may be noted first.
//! Two outcomes remain two outcomes, and the last check finds them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use shardwheel::TimerKey;

use crate::acts;
use crate::books::Books;
use crate::ending::VERY_LATE;
use crate::scene::{Nanos, Scene};
use crate::support::ledger::{End, Outcome};

/// The kind of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Once,
    /// It recurs, at most once in `period` nanoseconds, for ever or `times` times.
    Recurring {
        period: Nanos,
        times: Option<u32>,
    },
}

pub(crate) struct Account {
    pub(crate) scene: Arc<Scene>,
    pub(crate) which: usize,
    pub(crate) kind: Kind,
    /// The seed of what its callback does.
    pub(crate) seed: u64,
    /// When it was made, or a little earlier.
    made: Nanos,
    /// It must not fire before this if it fires once. If it recurs: the latest deadline that a move
    /// set.
    due: AtomicU64,
    /// How often it was moved, if it recurs; that many occurrences may be early.
    moves: AtomicU32,
    /// Its last key.
    key: Mutex<Option<TimerKey>>,
    /// Whether two threads have its key.
    shared: AtomicBool,
    is_running: AtomicBool,
    /// When its last occurrence ended; at first, when it was made.
    last: AtomicU64,
    /// Its ends, and the drops of its payload.
    outcome: Outcome,
    /// Occurrences that began after it was cancelled.
    late_starts: AtomicU8,
    was_dropped_by_cancel: AtomicBool,
}

impl Account {
    pub(crate) fn open(scene: &Arc<Scene>, which: usize, kind: Kind, due: Nanos, seed: u64) -> Arc<Self> {
        scene.books(which).opened.one();
        let made = scene.now();
        Arc::new(Self {
            scene: Arc::clone(scene),
            which,
            kind,
            seed,
            made,
            last: AtomicU64::new(made),
            due: AtomicU64::new(due),
            moves: AtomicU32::new(0),
            key: Mutex::new(None),
            shared: AtomicBool::new(false),
            is_running: AtomicBool::new(false),
            outcome: Outcome::default(),
            late_starts: AtomicU8::new(0),
            was_dropped_by_cancel: AtomicBool::new(false),
        })
    }

    pub(crate) fn books(&self) -> &Books {
        self.scene.books(self.which)
    }

    pub(crate) fn recurs(&self) -> bool {
        self.kind != Kind::Once
    }

    pub(crate) fn due(&self) -> Nanos {
        self.due.load(Ordering::Relaxed)
    }

    pub(crate) fn key(&self) -> Option<TimerKey> {
        *self.key.lock().expect("no thread panics with the lock")
    }

    pub(crate) fn set_key(&self, key: TimerKey) {
        *self.key.lock().expect("no thread panics with the lock") = Some(key);
    }

    pub(crate) fn fired(&self) -> u32 {
        self.outcome.count(End::Fired)
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        let once_fired = self.kind == Kind::Once && self.fired() > 0;
        once_fired || self.outcome.has(End::Cancelled) || self.outcome.drops() > 0
    }

    /// Whether it must be pending: it is due in a while, no other thread has its key, and nothing
    /// has ended it.
    pub(crate) fn is_surely_pending(&self, before: Nanos) -> bool {
        const A_WHILE: Nanos = 2_000_000_000;
        let ahead = self.kind == Kind::Once && self.due() > before.saturating_add(A_WHILE);
        ahead && !self.shared.load(Ordering::Relaxed) && !self.has_ended() && !self.scene.is_shut(self.which)
    }

    pub(crate) fn share(&self) {
        self.shared.store(true, Ordering::Relaxed);
    }

    /// It may fire at `due` from now on.
    pub(crate) fn may_come_sooner(&self, due: Nanos) {
        if self.kind == Kind::Once {
            self.due.fetch_min(due, Ordering::Relaxed);
        }
        self.moves.fetch_add(1, Ordering::Relaxed);
    }

    /// It must not fire before `due` from now on, if it fires once.
    pub(crate) fn must_come_later(&self, due: Nanos) {
        self.due.fetch_max(due, Ordering::Relaxed);
    }

    pub(crate) fn note_refused(&self) {
        self.outcome.note(End::Refused);
    }

    /// A call of `cancel` has returned true.
    pub(crate) fn note_cancelled(&self) {
        let (books, twice) = (self.books(), self.outcome.note(End::Cancelled) > 0);
        books.cancelled.one();
        books.expect(!twice, format_args!("cancelled twice: {}", self.describe()));
        if !self.was_dropped_by_cancel.load(Ordering::Relaxed) {
            books.stopped.one();
            books.expect(self.recurs(), format_args!("cancelled but not dropped: {}", self.describe()));
        }
        self.check_not_overdue(self.scene.now().saturating_sub(VERY_LATE.as_nanos() as Nanos));
    }

    /// Its callback begins.
    fn begin(&self) {
        let now = self.scene.now();
        let books = self.books();
        books.runs.one();
        let before = self.outcome.note(End::Fired);
        let overlaps = self.is_running.swap(true, Ordering::AcqRel);
        books.expect(!overlaps, format_args!("called while it runs: {}", self.describe()));
        let is_in_time = match self.kind {
            Kind::Once => before == 0 && now >= self.due(),
            Kind::Recurring { period, times } => {
                times.is_none_or(|times| before < times) && before < self.most_by(now, period)
            }
        };
        books.expect(is_in_time, format_args!("too early or too often, at {now}: {}", self.describe()));
        self.note_late_start();
    }

    /// How often it may have fired by `now`.
    fn most_by(&self, now: Nanos, period: Nanos) -> u32 {
        let regular = (now - self.made).checked_div(period).unwrap_or(u64::from(u32::MAX));
        u32::try_from(regular).unwrap_or(u32::MAX).saturating_add(self.moves.load(Ordering::Relaxed))
    }

    /// The occurrence that was current at the cancel may begin after it.
    fn note_late_start(&self) {
        if self.outcome.has(End::Cancelled) {
            let is_first = self.late_starts.fetch_add(1, Ordering::AcqRel) == 0;
            let allowed = self.recurs() && is_first;
            self.books().expect(allowed, format_args!("fired after a cancel: {}", self.describe()));
        }
    }

    fn note_drop(&self) {
        self.books().drops.one();
        self.outcome.note_drop();
        match Cause::now() {
            Cause::Other => {}
            Cause::Cancel => self.was_dropped_by_cancel.store(true, Ordering::Relaxed),
            Cause::Unrun => {
                self.outcome.note(End::Unrun);
                self.books().unrun.one();
            }
            Cause::Shutdown => {
                self.outcome.note(End::HandedBack);
                self.books().handed_back.one();
                self.check_not_overdue(self.scene.caught_up(self.which));
            }
        }
    }

    /// It has not fired, so it must not have been due by then.
    fn check_not_overdue(&self, by: Nanos) {
        /// Nanoseconds for which a thread may be interrupted between two readings of the clock.
        const HELD_UP: Nanos = 500_000_000;
        let due = match self.kind {
            Kind::Once => self.due().max(self.made),
            Kind::Recurring { period, .. } => {
                self.due().max(self.last.load(Ordering::Acquire) + period) + HELD_UP
            }
        };
        let expected = due > by || self.is_running.load(Ordering::Acquire);
        self.books().expect(expected, format_args!("lost, by {by}: {}", self.describe()));
    }

    /// Whether its outcome is consistent.
    fn is_in_balance(&self) -> bool {
        let fired = self.fired();
        let was_unrun = self.outcome.has(End::Unrun);
        let ended = match self.kind {
            Kind::Once => self.outcome.ends() == 1,
            // The current occurrence is the last one if the timer is shut down, or if the job is
            // dropped.
            Kind::Recurring { times, .. } => {
                let ends = [End::Cancelled, End::Refused, End::HandedBack];
                let others: u32 = ends.iter().map(|&end| self.outcome.count(end)).sum();
                let is_over = times == Some(fired) || was_unrun || self.scene.is_shut(self.which);
                others == 1 || others == 0 && is_over
            }
        };
        ended && self.outcome.drops() == 1
    }

    fn describe(&self) -> String {
        format!(
            "{:?} of timer {}, made {}, due {}, moves {}, late starts {}, dropped by a cancel: {}, {:?}",
            self.kind,
            self.which,
            self.made,
            self.due(),
            self.moves.load(Ordering::Relaxed),
            self.late_starts.load(Ordering::Acquire),
            self.was_dropped_by_cancel.load(Ordering::Relaxed),
            self.outcome,
        )
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.books().expect(self.is_in_balance(), format_args!("not one outcome: {}", self.describe()));
        self.books().closed.one();
    }
}

/// What a callback captures.
pub(crate) struct Payload {
    account: Arc<Account>,
}

impl Payload {
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        Self { account: Arc::clone(account) }
    }

    /// Checks what was captured beside it.
    pub(crate) fn check(&self, content: &[u64]) {
        let intact = content.iter().all(|&word| word == self.account.seed);
        self.account.books().expect(intact, format_args!("changed: {content:?}"));
    }

    /// The callback.
    pub(crate) fn run(&self) {
        if Cause::now() == Cause::Shutdown {
            return;
        }
        self.account.begin();
        let _returned = Returned(&self.account);
        acts::act(&self.account);
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.account.note_drop();
    }
}

/// Notes that a callback has returned, also after a panic.
struct Returned<'a>(&'a Account);

impl Drop for Returned<'_> {
    fn drop(&mut self) {
        self.0.last.store(self.0.scene.now(), Ordering::Release);
        self.0.is_running.store(false, Ordering::Release);
    }
}

/// Why this thread drops a payload, or wakes a waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It has fired, or was refused.
    Other,
    /// It is being cancelled.
    Cancel,
    /// The executor drops its job.
    Unrun,
    /// The timer is shut down.
    Shutdown,
}

thread_local! {
    static CAUSE: Cell<Cause> = const { Cell::new(Cause::Other) };
}

impl Cause {
    pub(crate) fn now() -> Self {
        CAUSE.get()
    }

    /// Runs `what` for this cause.
    pub(crate) fn of<R>(self, what: impl FnOnce() -> R) -> R {
        let before = CAUSE.replace(self);
        let result = what();
        CAUSE.set(before);
        result
    }
}

//! A shard as producers use it, and which shard a thread schedules on.
//!
//! A thread finds its shard in a thread local (`SEAT`), which caches the shard of the last timer
//! that the thread used. On a miss the shard follows from the thread's origin: its core, if it may
//! run on one core only, or else a number.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::advancer_slot::AdvancerSlot;
use super::affinity::Core;
use super::counts::Counts;
use super::panics::PanicGuard;
use super::parker::Parker;
use super::task::Task;
use super::time::{Nanos, Time, nanos};
use crate::clock::{ThreadNumber, this_thread, unpoisoned};
use crate::shard::Kept;
use crate::sync::Ordering;
use crate::sync::plain::{AtomicU32, AtomicU64};
use crate::unwind;
use crate::{Advancer, Scheduler, Tick};

/// One shard of a timer. Its worker, the timer and all its futures share it. Producers on different
/// shards share no counter, except for the bound on pending timers.
pub(crate) struct ShardHandle {
    pub(crate) scheduler: Scheduler<Task>,
    pub(crate) time: Time,
    pub(crate) counts: Counts,
    pub(crate) panic_guard: PanicGuard,
    /// The core that the shard's thread is pinned to. Set by the worker before `build` returns.
    pub(crate) core: OnceLock<usize>,
    /// Wakes the shard's thread, if it has one of its own.
    pub(crate) parker: Arc<Parker>,
    /// Where the advancer lies while user code runs. The worker writes it at each callback, so it
    /// is padded apart from what producers read.
    pub(crate) advancer_slot: CachePadded<AdvancerSlot<Advancer<Task>>>,
    /// The thread that runs the worker, or that ran it last. Written by that thread.
    runner: AtomicU64,
    /// The state of the shard's end. Written by the shutdown, then by [`Unfired`](super::Unfired).
    pub(super) ended: Mutex<Ended>,
    /// Whom the end of the shard concerns, beside its timers. Written under its lock, by any thread.
    watchers: Mutex<Vec<Weak<dyn WatchesEnd>>>,
}

/// What a shutdown tells that the shard has ended, after all timers of the shard have.
pub(crate) trait WatchesEnd: Send + Sync {
    /// May run user code.
    fn end(&self);
}

/// How far a shutdown has ended a shard. It lies in the shard's handle, so a shutdown allocates
/// nothing.
#[derive(Default)]
pub(super) enum Ended {
    #[default]
    Not,
    /// The shutdown has taken the advancer.
    Retrieved(Box<Advancer<Task>>),
    /// The shutdown has ended the shard.
    Closed(Kept<Task>),
}

impl ShardHandle {
    pub(crate) fn new(scheduler: Scheduler<Task>, time: Time, panic_guard: PanicGuard) -> Self {
        Self {
            scheduler,
            time,
            counts: Counts::new(),
            panic_guard,
            core: OnceLock::new(),
            parker: Arc::new(Parker::new()),
            advancer_slot: CachePadded::new(AdvancerSlot::new()),
            runner: AtomicU64::new(0),
            ended: Mutex::new(Ended::default()),
            watchers: Mutex::new(Vec::new()),
        }
    }

    /// Reads the user's clock by `code`, beside a value of the user's: see [`unwind::beside`].
    #[inline]
    pub(crate) fn beside<K, R>(&self, kept: K, code: impl FnOnce() -> R) -> (K, R) {
        if self.time.is_users() { unwind::beside(kept, code) } else { (kept, code()) }
    }

    // ---- time --------------------------------------------------------------------------------

    /// The time now, or a little later: for deadlines. If a user's clock has been set back behind
    /// the shard's own time, this is the shard's own time.
    #[inline]
    pub(crate) fn now_or_later(&self) -> Nanos {
        self.time.fast_now().unwrap_or_else(|| self.now())
    }

    /// The time now, for deadlines; at least the shard's own time.
    pub(crate) fn now(&self) -> Nanos {
        let now = self.time.now();
        if self.time.is_users() { now.max(self.own_time()) } else { now }
    }

    /// The time now, for schedules; at least the shard's own time.
    pub(crate) fn now_instant(&self) -> Instant {
        let now = self.time.now_instant();
        if self.time.is_users() { now.max(self.own_instant()) } else { now }
    }

    /// The time that the shard's clock has reached.
    fn own_time(&self) -> Nanos {
        self.time.start_of(self.scheduler.clock())
    }

    fn own_instant(&self) -> Instant {
        self.time.instant(self.own_time()).unwrap_or(self.time.start)
    }

    /// The time by the clock, or the shard's own time if the clock panics; for the worker and for
    /// jobs.
    pub(crate) fn present(&self) -> Nanos {
        let present =
            if self.time.is_users() { self.run_guarded(|| self.time.now()) } else { Some(self.time.now()) };
        present.unwrap_or_else(|| self.own_time())
    }

    /// As [`present`](Self::present), or a little later: for statistics, where a microsecond does
    /// not matter.
    #[inline]
    pub(crate) fn present_or_later(&self) -> Nanos {
        self.time.fast_now().unwrap_or_else(|| self.present())
    }

    /// [`now_instant`](Self::now_instant), or the shard's own time where the clock panics.
    pub(crate) fn present_instant(&self) -> Instant {
        let now = || self.now_instant();
        let present = if self.time.is_users() { self.run_guarded(now) } else { Some(now()) };
        present.unwrap_or_else(|| self.own_instant())
    }

    /// The tick for a timer that is due `delay` from now: never early, and not before the next
    /// tick.
    #[inline]
    pub(crate) fn tick_after(&self, delay: Duration) -> Tick {
        let now = self.now_or_later();
        let tick = self.time.tick_for(now.saturating_add(nanos(delay)));
        tick.max(self.time.tick_at(now).saturating_add(1))
    }

    /// The tick for a timer that is due at `deadline`: never early. If the shard has flushed that
    /// tick or the tick before it, the result is at least the next tick by the clock, so time
    /// passes for a callback that keeps scheduling for the past. Only then is the clock read.
    #[inline]
    pub(crate) fn tick_for(&self, deadline: Instant) -> Tick {
        let tick = self.time.tick_for(self.time.since_start(deadline));
        if tick > self.scheduler.now().saturating_add(1) { tick } else { tick.max(self.next_tick()) }
    }

    #[cold]
    fn next_tick(&self) -> Tick {
        self.time.tick_at(self.now()).saturating_add(1)
    }

    // ---- the worker and the end --------------------------------------------------------------

    pub(super) fn ended(&self) -> MutexGuard<'_, Ended> {
        unpoisoned(self.ended.lock())
    }

    pub(super) fn take_kept(&self) -> Option<Kept<Task>> {
        let ended = std::mem::take(&mut *self.ended());
        if let Ended::Closed(kept) = ended { Some(kept) } else { None }
    }

    /// Makes the shutdown call `watcher`. False if the timer has been shut down, or if there is no
    /// memory.
    ///
    /// Against the shutdown, which marks the shard as stopping and then takes the watchers: the
    /// lock orders the two, so either the shutdown finds the watcher, or this sees the mark.
    pub(crate) fn watch_end(&self, watcher: Weak<dyn WatchesEnd>) -> bool {
        let mut watchers = unpoisoned(self.watchers.lock());
        watchers.retain(|watcher| watcher.strong_count() > 0);
        let is_watched = !self.is_stopping() && watchers.try_reserve(1).is_ok();
        if is_watched {
            watchers.push(watcher);
        }
        is_watched
    }

    /// Tells all watchers, once. The lock is released before they run.
    pub(super) fn end_watchers(&self) {
        let watchers = std::mem::take(&mut *unpoisoned(self.watchers.lock()));
        for watcher in watchers.iter().filter_map(Weak::upgrade) {
            self.run_guarded(|| watcher.end());
        }
    }

    /// Whether the timer has been shut down.
    pub(crate) fn is_stopping(&self) -> bool {
        self.advancer_slot.is_stopping()
    }

    /// Marks the shard as stopping and notifies its thread; false if it was marked before.
    pub(crate) fn stop(&self) -> bool {
        let first = self.advancer_slot.stop();
        self.parker.notify();
        first
    }

    /// The thread that runs the worker, or that ran it last.
    pub(crate) fn runner(&self) -> ThreadNumber {
        // Ordering: Relaxed. A thread that finds its own number has written it itself. Another
        // thread's number was written under the lock of the worker slots, which the reader has
        // taken since, or before `build` returned the timer to the reader.
        self.runner.load(Ordering::Relaxed)
    }

    /// Makes the calling thread the one that runs the worker.
    pub(crate) fn set_runner(&self) {
        // Ordering: Relaxed, see `runner`.
        self.runner.store(this_thread(), Ordering::Relaxed);
    }

    /// Whether the calling thread runs the worker: it is in user code that the worker called.
    pub(crate) fn is_run_here(&self) -> bool {
        self.runner() == this_thread()
    }
}

/// A number that no other timer has; never 0.
pub(crate) fn next_timer_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Ordering: Relaxed, the number alone matters.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Which shard a thread schedules on. The thread alone reads and writes it.
#[derive(Clone, Copy)]
struct Seat {
    /// The timer that the thread used last, and the thread's shard there. 0 is no timer.
    timer: u64,
    shard: usize,
}

/// What decides a thread's shard in each timer.
#[derive(Clone, Copy)]
enum Origin {
    /// The thread may run on this core only.
    Core(usize),
    /// The thread may run on any core. Threads are numbered in the order of their first use of a
    /// timer.
    Number(usize),
}

thread_local! {
    static SEAT: Cell<Seat> = const { Cell::new(Seat { timer: 0, shard: 0 }) };
    /// `None` before the thread's first use of a timer.
    static ORIGIN: Cell<Option<Origin>> = const { Cell::new(None) };
}

/// The calling thread's shard of a timer.
#[inline]
pub(crate) fn own_shard(timer: u64, handles: &[Arc<ShardHandle>]) -> usize {
    let seat = SEAT.get();
    if seat.timer == timer { seat.shard } else { take_seat(timer, handles) }
}

#[cold]
fn take_seat(timer: u64, handles: &[Arc<ShardHandle>]) -> usize {
    let shard = match origin() {
        Origin::Core(core) => {
            let pinned = handles.iter().position(|handle| handle.core.get() == Some(&core));
            pinned.unwrap_or(core % handles.len())
        }
        Origin::Number(number) => number % handles.len(),
    };
    SEAT.set(Seat { timer, shard });
    shard
}

/// Makes a shard the calling thread's own; for the shard's worker.
pub(crate) fn settle_in(timer: u64, shard: usize) {
    SEAT.set(Seat { timer, shard });
    ORIGIN.set(Some(Origin::Number(shard)));
}

fn origin() -> Origin {
    let origin = ORIGIN.get().unwrap_or_else(find_origin);
    ORIGIN.set(Some(origin));
    origin
}

fn find_origin() -> Origin {
    static THREADS: AtomicU32 = AtomicU32::new(0);
    match Core::only() {
        Some(only) => Origin::Core(only.id()),
        // Ordering: Relaxed, the number alone matters.
        None => Origin::Number(THREADS.fetch_add(1, Ordering::Relaxed) as usize),
    }
}

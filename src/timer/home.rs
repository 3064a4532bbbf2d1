//! A shard as those who schedule on it see it, and which shard is a thread's own.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::stats::Counts;
use super::task::Task;
use super::time::{Time, nanos};
use super::watch::Watch;
use crate::sync::plain::{AtomicU32, AtomicU64};
use crate::sync::{AtomicBool, Ordering};
use crate::{Scheduler, Tick};

/// One shard of a timer. Its worker, the timer and every future of it hold it; who schedules on his own shard
/// shares none of its counters with those who schedule on another.
pub(crate) struct Home {
    pub(crate) scheduler: Scheduler<Task>,
    pub(crate) time: Time,
    pub(crate) counts: Counts,
    pub(crate) watch: Watch,
    /// The core that the shard's thread is pinned to. Set by the worker before the timer is handed out.
    pub(crate) core: OnceLock<usize>,
    /// The shard's thread, if it has one of its own.
    pub(crate) thread: OnceLock<Thread>,
    /// Set once, by who shuts the timer down.
    stopping: AtomicBool,
}

impl Home {
    pub(crate) fn new(scheduler: Scheduler<Task>, time: Time, watch: Watch) -> Self {
        Self {
            scheduler,
            time,
            counts: Counts::new(),
            watch,
            core: OnceLock::new(),
            thread: OnceLock::new(),
            stopping: AtomicBool::new(false),
        }
    }

    /// The tick for a timer that is due `delay` from now: never early, and not before the next tick.
    #[inline]
    pub(crate) fn tick_after(&self, delay: Duration) -> Tick {
        let now = self.time.now_or_later();
        let tick = self.time.tick_for(now.saturating_add(nanos(delay)));
        tick.max(self.time.tick_at(now) + 1)
    }

    /// The tick for a timer that is due at that moment: never early. Where the shard is at work it is not before the next
    /// tick, so that a callback that schedules for the past has time pass. The clock is read only if the shard has come
    /// to the deadline.
    #[inline]
    pub(crate) fn tick_for(&self, deadline: Instant) -> Tick {
        let tick = self.time.tick_for(self.time.since_start(deadline));
        if tick > self.scheduler.now().saturating_add(1) { tick } else { tick.max(self.next_tick()) }
    }

    #[cold]
    fn next_tick(&self) -> Tick {
        self.time.tick_at(self.time.now()) + 1
    }

    /// Whether the timer has been shut down.
    pub(crate) fn is_stopping(&self) -> bool {
        // Ordering: Relaxed. The worker is unparked after it was set; who finds his timer gone because the shard has
        // ended sees it by way of the fence with which that closed.
        self.stopping.load(Ordering::Relaxed)
    }

    /// Tells the worker to stop; false if it has been told before.
    pub(crate) fn stop(&self) -> bool {
        // Ordering: Relaxed, the read-modify-write alone decides who is first.
        let first = !self.stopping.swap(true, Ordering::Relaxed);
        self.unpark();
        first
    }

    /// Has the worker look around.
    pub(crate) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// Tells timers apart; 0 is none.
pub(crate) fn next_timer_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Ordering: Relaxed, the number alone matters.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Which shard a thread schedules on.
#[derive(Clone, Copy)]
struct Seat {
    /// The timer of the thread's last call, and its shard there.
    timer: u64,
    shard: usize,
}

/// By what a thread is given a shard of each timer.
#[derive(Clone, Copy)]
enum Origin {
    /// It may run on this core only.
    Core(usize),
    /// It runs anywhere; threads are numbered in the order in which they come.
    Number(usize),
}

thread_local! {
    static SEAT: Cell<Seat> = const { Cell::new(Seat { timer: 0, shard: 0 }) };
    /// None before the thread's first use of a timer.
    static ORIGIN: Cell<Option<Origin>> = const { Cell::new(None) };
}

/// The calling thread's shard of that timer.
#[inline]
pub(crate) fn own_shard(timer: u64, homes: &[Arc<Home>]) -> usize {
    let seat = SEAT.get();
    if seat.timer == timer { seat.shard } else { take_seat(timer, homes) }
}

#[cold]
fn take_seat(timer: u64, homes: &[Arc<Home>]) -> usize {
    let shard = match origin() {
        Origin::Core(core) => {
            let pinned = homes.iter().position(|home| home.core.get() == Some(&core));
            pinned.unwrap_or(core % homes.len())
        }
        Origin::Number(number) => number % homes.len(),
    };
    SEAT.set(Seat { timer, shard });
    shard
}

/// Makes that shard the calling thread's own, for its worker.
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
    // The cores that the calling thread may run on.
    match core_affinity::get_core_ids().as_deref() {
        Some([only]) => Origin::Core(only.id),
        // Ordering: Relaxed, the number alone matters.
        _ => Origin::Number(THREADS.fetch_add(1, Ordering::Relaxed) as usize),
    }
}

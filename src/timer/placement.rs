//! Which shard a thread schedules on.
//!
//! A thread gets a shard of a timer at its first use of the timer: of the shards that the fewest
//! living threads have got, the one that its core or its turn points to. It keeps that shard until
//! it ends. So threads are spread evenly whatever their cores and their numbers are.
//!
//! The thread finds its shard in a thread local (`PLACE`), which caches the shard of the timer that
//! it used last. Behind that lies the list of all places that the thread has taken (`TAKEN`), which
//! also counts it as a user of its shards. Timers with another [`Placement`] choose a shard for
//! each timer that is scheduled, or for several of them, and count no users.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use crossbeam_utils::CachePadded;

use super::shard_handle::ShardHandle;
use crate::fallible;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU32;

/// Which shard of a [`Timer`](crate::Timer) a thread schedules on, for
/// [`TimerBuilder::placement`](crate::TimerBuilder::placement).
///
/// A callback that schedules does so on its own shard, unless the placement is
/// [`RoundRobin`](Self::RoundRobin) or [`LeastLoaded`](Self::LeastLoaded).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Placement {
    /// Each thread schedules on one shard, which it gets at its first use of the timer. If a
    /// shard's thread is pinned to the core to which the calling thread is pinned, it is that
    /// shard. Otherwise it is one of the shards that the fewest threads have.
    ///
    /// This is the fastest: threads on different shards share nothing.
    #[default]
    OwnShard,
    /// Each thread schedules on one shard after the other. This spreads the callbacks of a thread
    /// that schedules everything.
    RoundRobin,
    /// Each thread schedules on the shard with the fewest pending timers. It looks for that shard
    /// at every 64th timer, and the look takes O(shards × threads).
    LeastLoaded,
}

/// With [`Placement::LeastLoaded`] a thread schedules so many timers on a shard before it looks for
/// another one.
const USES: u32 = 64;

/// The most timers of which a thread remembers its place.
const MOST_TAKEN: usize = 32;

/// How many living threads have got each shard of a timer. Written by these threads.
pub(super) struct Users {
    counts: Box<[CachePadded<AtomicU32>]>,
    /// The number of places given out, for threads that are not pinned.
    given: AtomicU32,
}

impl Users {
    pub(super) fn new(shards: usize) -> Arc<Self> {
        let counts = (0..shards).map(|_| CachePadded::new(AtomicU32::new(0))).collect();
        Arc::new(Self { counts, given: AtomicU32::new(0) })
    }

    /// The shard with the fewest users; of several, the first from `start` on. Two threads that
    /// come at once may get the same shard.
    fn least_used(&self, start: usize) -> usize {
        let shards = self.counts.len();
        // Ordering: Relaxed, a count.
        let users = |&shard: &usize| self.counts[shard].load(Ordering::Relaxed);
        (0..shards).map(|step| (start + step) % shards).min_by_key(users).unwrap_or(0)
    }
}

/// A thread's place in a timer. The thread alone reads and writes it.
#[derive(Clone, Copy)]
struct Place {
    /// 0 is no timer.
    timer: u64,
    shard: usize,
    /// How many timers the thread has scheduled there.
    uses: u32,
}

/// A place that the thread keeps. The drop gives it up.
struct Taken {
    timer: u64,
    shard: usize,
    users: Weak<Users>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(users) = self.users.upgrade() {
            // Ordering: Relaxed, a count.
            users.counts[self.shard].fetch_sub(1, Ordering::Relaxed);
        }
    }
}

const NOWHERE: Place = Place { timer: 0, shard: 0, uses: 0 };

thread_local! {
    /// The place in the timer that the thread used last.
    static PLACE: Cell<Place> = const { Cell::new(NOWHERE) };
    /// The shard that the thread visits; for a driver.
    static VISITED: Cell<Place> = const { Cell::new(NOWHERE) };
    static TAKEN: RefCell<Vec<Taken>> = const { RefCell::new(Vec::new()) };
    /// The only core that the thread may run on. `None` before the thread's first use of a timer.
    static CORE: Cell<Option<Option<usize>>> = const { Cell::new(None) };
}

/// The shard of a timer that the calling thread schedules on.
#[inline]
pub(super) fn shard_of_thread(
    timer: u64,
    placement: Placement,
    users: &Arc<Users>,
    handles: &[Arc<ShardHandle>],
) -> usize {
    let place = PLACE.get();
    if place.timer == timer && placement == Placement::OwnShard {
        return place.shard;
    }
    let place = if place.timer == timer { place } else { find_place(timer, users, handles) };
    let place = match placement {
        Placement::OwnShard => place,
        Placement::RoundRobin => Place { shard: (place.shard + 1) % handles.len(), ..place },
        Placement::LeastLoaded => least_loaded(place, handles),
    };
    PLACE.set(place);
    place.shard
}

/// Makes a shard the calling thread's own; for a driver that visits it.
pub(super) fn settle_in(timer: u64, shard: usize) {
    let place = Place { timer, shard, uses: 0 };
    PLACE.set(place);
    VISITED.set(place);
}

#[cold]
fn find_place(timer: u64, users: &Arc<Users>, handles: &[Arc<ShardHandle>]) -> Place {
    let visited = VISITED.get();
    if visited.timer == timer {
        return visited;
    }
    let shard = TAKEN
        .try_with(|taken| taken.borrow().iter().find(|taken| taken.timer == timer).map(|taken| taken.shard));
    let shard = shard.ok().flatten().unwrap_or_else(|| take_place(timer, users, handles));
    Place { timer, shard, uses: 0 }
}

fn take_place(timer: u64, users: &Arc<Users>, handles: &[Arc<ShardHandle>]) -> usize {
    let core = only_core();
    let pinned = |core| handles.iter().position(|handle| handle.core.get() == Some(&core));
    if let Some(shard) = core.and_then(pinned) {
        return shard;
    }
    // Ordering: Relaxed, the number alone matters.
    let turn = || users.given.fetch_add(1, Ordering::Relaxed) as usize;
    let shard = users.least_used(core.unwrap_or_else(turn));
    // At the end of the thread the list is gone. Then the thread is not counted.
    let _ = TAKEN.try_with(|taken| remember(&mut taken.borrow_mut(), timer, shard, users));
    shard
}

/// Counts the thread as a user, unless there is no memory for that.
fn remember(taken: &mut Vec<Taken>, timer: u64, shard: usize, users: &Arc<Users>) {
    taken.retain(|taken| taken.users.strong_count() > 0);
    if taken.len() == MOST_TAKEN {
        taken.swap_remove(0);
    }
    if taken.try_reserve(1).is_ok() {
        // Ordering: Relaxed, a count.
        users.counts[shard].fetch_add(1, Ordering::Relaxed);
        taken.push(Taken { timer, shard, users: Arc::downgrade(users) });
    }
}

fn least_loaded(place: Place, handles: &[Arc<ShardHandle>]) -> Place {
    if place.uses != 0 && place.uses < USES {
        return Place { uses: place.uses + 1, ..place };
    }
    let shards = handles.len();
    let from_own = (0..shards).map(|step| (place.shard + step) % shards);
    let shard = from_own.min_by_key(|&shard| handles[shard].scheduler.len()).unwrap_or(place.shard);
    Place { shard, uses: 1, ..place }
}

/// The core to which the calling thread is pinned.
fn only_core() -> Option<usize> {
    let core = CORE.get().unwrap_or_else(find_core);
    CORE.set(Some(core));
    core
}

fn find_core() -> Option<usize> {
    /// In bytes; more than the list of cores takes.
    const MOST_ASKED_FOR: usize = 1 << 14;
    // `get_core_ids` ends the process if there is no memory for the list.
    let has_memory = fallible::has_memory(MOST_ASKED_FOR);
    // Lists the cores that the calling thread may run on.
    match has_memory.then(core_affinity::get_core_ids).flatten().as_deref() {
        Some([only]) => Some(only.id),
        _ => None,
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use std::thread;

    use super::*;
    use crate::{ManualClock, Timer};

    /// Schedules on the timer and returns the shard; for a thread that lives on.
    fn shard_used(timer: &Timer) -> usize {
        let before = timer.stats().shards.iter().map(|shard| shard.scheduled).collect::<Vec<_>>();
        timer.schedule_after(std::time::Duration::from_secs(1), || ()).expect("the timer is open");
        let after = timer.stats();
        (0..before.len())
            .find(|&shard| after.shards[shard].scheduled > before[shard])
            .expect("it is scheduled")
    }

    fn timer(shards: usize, placement: Placement) -> Timer {
        let builder = Timer::builder().clock(ManualClock::new()).shards(shards);
        builder.placement(placement).build().expect("the settings are in range")
    }

    #[test]
    fn living_threads_are_spread_evenly() {
        let timer = timer(4, Placement::OwnShard);
        // Threads that have ended do not count.
        (0..3).for_each(|_| drop(thread::scope(|scope| scope.spawn(|| shard_used(&timer)).join())));
        let (used, barrier) = (std::sync::Mutex::new(vec![0; 4]), std::sync::Barrier::new(8));
        let use_it = || {
            let mut used = used.lock().expect("no thread panics");
            used[shard_used(&timer)] += 1;
            drop(used);
            barrier.wait();
        };
        thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(use_it))));
        assert_eq!(*used.lock().unwrap(), [2; 4]);
    }

    #[test]
    fn a_thread_keeps_its_shard_while_it_uses_other_timers() {
        let timers = [0; 3].map(|_| timer(5, Placement::OwnShard));
        let own = timers.each_ref().map(shard_used);
        for _ in 0..3 {
            assert_eq!(timers.each_ref().map(shard_used), own);
        }
    }

    #[test]
    fn one_thread_spreads_its_timers_in_turn() {
        let timer = timer(4, Placement::RoundRobin);
        let mut used = [0; 4].map(|_| shard_used(&timer));
        used.sort_unstable();
        assert_eq!(used, [0, 1, 2, 3]);
    }

    #[test]
    fn one_thread_fills_the_emptiest_shard() {
        let timer = timer(3, Placement::LeastLoaded);
        let used = (0..6 * USES).map(|_| shard_used(&timer)).fold([0; 3], |mut used, shard| {
            used[shard] += 1;
            used
        });
        assert_eq!(used, [2 * USES; 3]);
    }
}

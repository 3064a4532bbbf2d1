//! Which shard a thread schedules on.
//!
//! A thread gets a shard of a `Timer` at its first use of the `Timer`: of the shards that the
//! fewest living threads have got, the one that its turn points to. It keeps that shard until it
//! ends. So threads are spread evenly whatever their cores and their numbers are. Only a thread
//! that is pinned to the core of a shard's thread has that shard, and is not counted. Neither is
//! one for whose entry in the list the system has no memory.
//!
//! The thread finds its shard in a thread local (`CACHED`), which caches the shard of the `Timer`
//! that it used last, and the shard that it visits: a callback schedules there. Behind that lies
//! the list of all places that the thread has taken (`TAKEN`), which also counts it as a user of
//! its shards. Timers with another [`Placement`] choose a shard for each timer that is scheduled,
//! or for several of them, and count no users.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use crossbeam_utils::CachePadded;

use super::affinity;
use super::handle::ShardHandle;
use crate::sync::plain::AtomicU32;
use crate::sync::{Ordering, thread_local};

/// Which shard of a [`Timer`](crate::Timer) a thread schedules on, for
/// [`TimerBuilder::placement`](crate::TimerBuilder::placement).
///
/// A callback that schedules does so on its own shard, unless the placement is
/// [`RoundRobin`](Self::RoundRobin) or [`LeastLoaded`](Self::LeastLoaded). On an
/// [`Executor`](crate::Executor) it does so as its thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Placement {
    /// Each thread schedules on one shard, which it gets at its first use of the `Timer`. If a
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

/// How many timers a thread schedules on a shard with [`Placement::LeastLoaded`] before it looks
/// for another one.
const USES: u32 = 64;

/// The shards of a timer, and how a thread gets one of them.
pub(crate) struct Shards {
    /// Distinguishes the timer from others in thread locals.
    pub(in crate::timer) id: u64,
    pub(in crate::timer) handles: Arc<[Arc<ShardHandle>]>,
    placement: Placement,
    /// How often a thread without a place has asked for a shard. Written by these threads.
    asked: CachePadded<AtomicU32>,
    /// The shard that the last look found least loaded. Written by these threads.
    least_loaded: AtomicU32,
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

const NO_PLACE: Place = Place { timer: 0, shard: 0, uses: 0 };

/// What the thread remembers without a search.
#[derive(Clone, Copy)]
struct Cached {
    /// The place in the timer that the thread used last.
    used: Place,
    /// The shard that the thread visits: it runs that shard's callbacks.
    visited: Place,
}

/// A place that the thread keeps. The drop gives it up.
struct Taken {
    timer: u64,
    shard: usize,
    /// How many living threads have got the shard.
    users: Weak<AtomicU32>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(users) = self.users.upgrade() {
            // Ordering: Relaxed, a count.
            users.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

thread_local! {
    static CACHED: Cell<Cached> = const { Cell::new(Cached { used: NO_PLACE, visited: NO_PLACE }) };
    /// In the order of the timers' numbers.
    static TAKEN: RefCell<Vec<Taken>> = const { RefCell::new(Vec::new()) };
}

impl Shards {
    pub(in crate::timer) fn new(id: u64, handles: Arc<[Arc<ShardHandle>]>, placement: Placement) -> Self {
        let (asked, least_loaded) = (CachePadded::default(), AtomicU32::default());
        Self { id, handles, placement, asked, least_loaded }
    }

    /// The shard that the calling thread schedules its next timer on.
    #[inline]
    pub(in crate::timer) fn next_shard(&self) -> &Arc<ShardHandle> {
        let Cached { used: place, visited } = CACHED.get();
        let is_here = place.timer == self.id;
        let place = match self.placement {
            Placement::OwnShard if is_here => return &self.handles[place.shard],
            Placement::OwnShard if visited.timer == self.id => visited,
            Placement::OwnShard => self.find_place(),
            Placement::RoundRobin => {
                let next = if is_here { place.shard + 1 } else { self.turn() };
                self.place(next % self.handles.len())
            }
            Placement::LeastLoaded => self.least_loaded(if is_here { place } else { self.place(0) }),
        };
        CACHED.set(Cached { used: place, visited });
        &self.handles[place.shard]
    }

    /// The shard that the calling thread schedules on, or has scheduled on last.
    pub(in crate::timer) fn present_shard(&self) -> &Arc<ShardHandle> {
        let place = CACHED.get().used;
        if self.placement == Placement::OwnShard {
            return self.next_shard();
        }
        &self.handles[if place.timer == self.id { place.shard } else { 0 }]
    }

    fn place(&self, shard: usize) -> Place {
        Place { timer: self.id, shard, uses: 0 }
    }

    fn turn(&self) -> usize {
        // Ordering: Relaxed, the number alone matters.
        self.asked.fetch_add(1, Ordering::Relaxed) as usize
    }

    #[cold]
    fn find_place(&self) -> Place {
        let shard = TAKEN.try_with(|taken| {
            let taken = taken.borrow();
            self.search(&taken).ok().map(|at| taken[at].shard)
        });
        self.place(shard.ok().flatten().unwrap_or_else(|| self.take_place()))
    }

    /// Where the timer's place is in the list, or belongs.
    fn search(&self, taken: &[Taken]) -> Result<usize, usize> {
        taken.binary_search_by_key(&self.id, |taken| taken.timer)
    }

    /// The shard whose thread is pinned to the calling thread's only core. If there is none, the
    /// shard with the fewest users; of several, the first from the thread's turn on. Two threads
    /// that come at once may get the same shard.
    fn take_place(&self) -> usize {
        let is_on = |core| self.handles.iter().position(|handle| handle.core.get() == Some(&core));
        // The list of cores takes memory, so it is made only for a timer with pinned threads.
        if self.handles.iter().any(|handle| handle.core.get().is_some())
            && let [core] = affinity::cores()[..]
            && let Some(shard) = is_on(core)
        {
            return shard;
        }
        let start = self.turn();
        // Ordering: Relaxed, a count.
        let users = |&shard: &usize| self.handles[shard].users.load(Ordering::Relaxed);
        let shards = self.handles.len();
        let shard = (0..shards).map(|step| (start + step) % shards).min_by_key(users).unwrap_or(0);
        // At the end of the thread the list is gone. Then the thread is not counted.
        let _ = TAKEN.try_with(|taken| self.remember(&mut taken.borrow_mut(), shard));
        shard
    }

    /// Counts the thread as a user, if there is memory.
    fn remember(&self, taken: &mut Vec<Taken>, shard: usize) {
        // Now and then: a look at all for each new one would take long.
        if taken.len().is_power_of_two() {
            taken.retain(|taken| taken.users.strong_count() > 0);
        }
        let (Err(at), Ok(())) = (self.search(taken), taken.try_reserve(1)) else { return };
        let users = &self.handles[shard].users;
        // Ordering: Relaxed, a count.
        users.fetch_add(1, Ordering::Relaxed);
        taken.insert(at, Taken { timer: self.id, shard, users: Arc::downgrade(users) });
    }

    /// Chooses again if the place is new, or has been used often enough. A thread that alternates
    /// between two timers makes a new place each time. So a new place takes the result of an
    /// earlier look; only every 64th new place looks itself.
    fn least_loaded(&self, place: Place) -> Place {
        let looks = match place.uses {
            0 => self.turn().is_multiple_of(USES as usize),
            uses if uses < USES => return Place { uses: uses + 1, ..place },
            _ => true,
        };
        if looks {
            let pending = |&shard: &usize| self.handles[shard].scheduler.len();
            let shard = (0..self.handles.len()).min_by_key(pending).unwrap_or(0);
            // Ordering: Relaxed, a hint.
            self.least_loaded.store(shard as u32, Ordering::Relaxed);
        }
        // Ordering: Relaxed, a hint.
        Place { shard: self.least_loaded.load(Ordering::Relaxed) as usize, uses: 1, ..place }
    }
}

/// Runs `code`, which catches all panics, while a shard is the calling thread's own; for the thread
/// that visits the shard.
pub(in crate::timer) fn with_own_shard<R>((timer, shard): (u64, usize), code: impl FnOnce() -> R) -> R {
    let place = Place { timer, shard, uses: 0 };
    let before = CACHED.replace(Cached { used: place, visited: place });
    let result = code();
    CACHED.set(before);
    result
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
        // Ordering: Relaxed, the joins order the threads.
        let users = |handle: &Arc<ShardHandle>| handle.users.load(Ordering::Relaxed);
        assert_eq!(timer.inner.shards.handles.iter().map(users).collect::<Vec<_>>(), [0; 4]);
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
    fn a_thread_forgets_its_places_in_timers_that_have_ended() {
        let uses_many = || {
            (0..20).for_each(|_| _ = shard_used(&timer(2, Placement::OwnShard)));
            TAKEN.with(|taken| taken.borrow().len())
        };
        let places = thread::spawn(uses_many).join().expect("the thread does not panic");
        assert!(places < 4, "{places} places");
    }

    #[test]
    fn the_time_is_asked_of_the_shard_that_was_used_last() {
        for placement in [Placement::OwnShard, Placement::RoundRobin, Placement::LeastLoaded] {
            let timer = timer(4, placement);
            for _ in 0..4 {
                let used = &timer.inner.shards.handles[shard_used(&timer)];
                assert!(Arc::ptr_eq(timer.inner.shards.present_shard(), used), "{placement:?}");
            }
        }
    }

    #[test]
    fn turns_go_on_beside_another_timer_and_a_look_at_the_time() {
        let timers = [0; 2].map(|_| timer(4, Placement::RoundRobin));
        for timer in timers.iter().cycle().take(16) {
            timer.schedule_at(timer.now(), || ()).expect("the timer is open");
        }
        let used =
            timers.each_ref().map(|timer| timer.stats().shards.iter().all(|shard| shard.scheduled == 2));
        assert_eq!(used, [true; 2]);
    }

    #[test]
    fn a_callback_schedules_on_its_own_shard() {
        let clock = ManualClock::new();
        let builder = Timer::builder().clock(clock.clone()).shards(3).placement(Placement::OwnShard);
        let timer = builder.build().expect("the settings are in range");
        let own = shard_used(&timer);
        for shard in 0..3 {
            let inner = timer.clone();
            let schedule = || timer.schedule_at(timer.now(), move || _ = shard_used(&inner));
            with_own_shard((timer.inner.shards.id, shard), schedule).expect("the timer is open");
        }
        clock.advance(std::time::Duration::from_millis(1));
        let scheduled = (0..3).map(|shard| 2 + u64::from(shard == own)).collect::<Vec<_>>();
        let stats = timer.stats();
        assert_eq!(stats.shards.iter().map(|shard| shard.scheduled).collect::<Vec<_>>(), scheduled);
        assert_eq!(shard_used(&timer), own, "the thread that moves the clock keeps its shard");
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

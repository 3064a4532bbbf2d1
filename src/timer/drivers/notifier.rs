//! How producers make a driver visit a shard. They take no lock: all of this is atomic, so a
//! producer that stops for ever holds nothing up.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crossbeam_utils::CachePadded;

use super::Limits;
use super::parker::Parker;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use crate::timer::{NEVER, Nanos};

/// The `busy_since` of a leader that sleeps, or is about to.
const RESTING: Nanos = 0;
/// The watchdog if there is none.
const NOBODY: usize = usize::MAX;

/// What producers and drivers read of each other. The module docs of [`drivers`](super) say why no
/// wake-up is lost.
pub(crate) struct Notifier {
    /// For each shard, whether a visit is requested. Set by any thread, cleared by the driver that
    /// takes the shard's worker.
    requested: Box<[CachePadded<AtomicBool>]>,
    parkers: Box<[CachePadded<Parker>]>,
    pub(super) limits: Limits,
    // The rest is written by drivers, under the pool's lock.
    leader: CachePadded<AtomicUsize>,
    /// When the leader began its visit, or [`RESTING`].
    busy_since: AtomicU64,
    /// The first spare driver.
    watchdog: AtomicUsize,
    /// When the watchdog looks at the shards next.
    looks_at: AtomicU64,
}

impl Notifier {
    /// For a pool of threads. The first of them leads.
    pub(crate) fn new(shards: usize, threads: usize, limits: Limits) -> Arc<Self> {
        Self::with(shards, (0..threads).map(|_| Parker::for_thread()), limits)
    }

    /// For a driver without a thread.
    pub(crate) fn for_task(shards: usize, limits: Limits) -> Arc<Self> {
        Self::with(shards, [Parker::for_task()], limits)
    }

    fn with(shards: usize, parkers: impl IntoIterator<Item = Parker>, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            requested: (0..shards).map(|_| CachePadded::new(AtomicBool::new(false))).collect(),
            parkers: parkers.into_iter().map(CachePadded::new).collect(),
            limits,
            leader: CachePadded::new(AtomicUsize::new(0)),
            busy_since: AtomicU64::new(RESTING),
            watchdog: AtomicUsize::new(NOBODY),
            looks_at: AtomicU64::new(NEVER),
        })
    }

    pub(crate) fn parker(&self, driver: usize) -> &Parker {
        &self.parkers[driver]
    }

    pub(super) fn parkers(&self) -> impl Iterator<Item = &Parker> {
        self.parkers.iter().map(|parker| &**parker)
    }

    // ---- for any thread ----------------------------------------------------------------------

    /// Makes a driver visit the shard: the leader or, if that does not come back from its visit,
    /// the watchdog.
    pub(crate) fn request(&self, shard: usize) {
        // Ordering: Release, pairs with `take_request`: what the request is about is visible. A
        // read-modify-write continues the release sequences of earlier requests.
        self.requested[shard].swap(true, Ordering::Release);
        // Ordering: SeqCst, see the module docs of `drivers`.
        fence(Ordering::SeqCst);
        // A manual clock has no drivers.
        let Some(leader) = self.parkers.get(self.leader()) else { return };
        leader.notify();
        if let Some(since) = self.busy_since() {
            self.ensure_look(since.saturating_add(self.limits.patience));
        }
    }

    // ---- for drivers -------------------------------------------------------------------------

    pub(super) fn is_requested(&self, shard: usize) -> bool {
        // Ordering: Relaxed, a fence of the caller orders it; `take_request` acquires.
        self.requested[shard].load(Ordering::Relaxed)
    }

    /// Clears the request for a visit that begins.
    pub(super) fn take_request(&self, shard: usize) {
        // Ordering: Acquire, pairs with `request`: what the requests are about is visible to the
        // visit.
        self.requested[shard].swap(false, Ordering::Acquire);
    }

    pub(super) fn leader(&self) -> usize {
        // Ordering: Relaxed. The lock of the pool orders it for drivers, the fence for producers.
        self.leader.load(Ordering::Relaxed)
    }

    /// When the leader began its visit. `None` if it sleeps.
    pub(super) fn busy_since(&self) -> Option<Nanos> {
        // Ordering: Relaxed, see `leader`.
        Some(self.busy_since.load(Ordering::Relaxed)).filter(|&since| since != RESTING)
    }

    /// Makes the driver lead, before it searches for a shard to visit.
    pub(super) fn lead(&self, driver: usize, now: Nanos) {
        // Ordering: Relaxed, the fence orders it.
        self.leader.store(driver, Ordering::Relaxed);
        // Ordering: Relaxed, the fence orders it.
        self.busy_since.store(now.max(RESTING + 1), Ordering::Relaxed);
        // Ordering: SeqCst, see the module docs of `drivers`.
        fence(Ordering::SeqCst);
    }

    /// Notes that the leader goes to sleep.
    pub(super) fn rest(&self) {
        // Ordering: Relaxed. A request that still reads the leader as busy does no harm.
        self.busy_since.store(RESTING, Ordering::Relaxed);
    }

    pub(super) fn watchdog(&self) -> Option<usize> {
        // Ordering: Relaxed, see `leader`.
        Some(self.watchdog.load(Ordering::Relaxed)).filter(|&watchdog| watchdog != NOBODY)
    }

    /// Makes that driver the watchdog. It looks at the shards next.
    pub(super) fn set_watchdog(&self, driver: Option<usize>) {
        // Ordering: Relaxed, the fence in `announce_look` orders it.
        self.watchdog.store(driver.unwrap_or(NOBODY), Ordering::Relaxed);
    }

    /// Announces when the watchdog looks next.
    pub(super) fn announce_look(&self, looks_at: Nanos) {
        // Ordering: Relaxed, the fence orders it.
        self.looks_at.store(looks_at, Ordering::Relaxed);
        // Ordering: SeqCst, see the module docs of `drivers`.
        fence(Ordering::SeqCst);
    }

    /// Wakes the watchdog if it would look later than `by`.
    pub(super) fn ensure_look(&self, by: Nanos) {
        // Ordering: Relaxed, see `leader`.
        let looks_at = self.looks_at.load(Ordering::Relaxed);
        if looks_at > by.saturating_add(self.limits.slack) {
            self.watchdog().into_iter().for_each(|watchdog| self.parkers[watchdog].notify());
        }
    }
}

/// The waker of one shard's advancer. A job that comes back from an executor calls it, too.
pub(crate) struct ShardWaker {
    notifier: Arc<Notifier>,
    shard: usize,
}

impl ShardWaker {
    /// For the shard that has this number in the pool.
    pub(crate) fn waker(notifier: &Arc<Notifier>, shard: usize) -> Waker {
        Waker::from(Arc::new(Self { notifier: Arc::clone(notifier), shard }))
    }
}

impl Wake for ShardWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notifier.request(self.shard);
    }
}

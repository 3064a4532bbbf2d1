//! How producers make a driver visit a shard. They take no lock: all of this is atomic, so a
//! producer that stops for ever holds nothing up.

use std::sync::Arc;
use std::task::{Wake, Waker};

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use crate::timer::parker::Parker;
use crate::timer::time::{NEVER, Nanos};

/// The `busy_since` of a leader that sleeps, or is about to.
const RESTING: Nanos = 0;

/// What producers and drivers read of each other. The module docs of [`threads`](super) say why no
/// wake-up is lost.
pub(crate) struct Notifier {
    /// For each shard, whether a visit is requested. Set by any thread, cleared by the driver that
    /// takes the shard's worker.
    requested: Box<[CachePadded<AtomicBool>]>,
    parkers: Box<[CachePadded<Parker>]>,
    /// How long a visit that does not end holds up other shards before the watchdog helps.
    pub(super) patience: Nanos,
    /// How much later than that the watchdog may look; also, for how long visits that end hold up
    /// other shards before a spare thread helps.
    pub(super) leeway: Nanos,
    // The rest is written by drivers, under the pool's lock.
    leader: CachePadded<AtomicUsize>,
    /// When the leader began its visit, or [`RESTING`].
    busy_since: AtomicU64,
    /// The first spare driver; their number if there is none.
    watchdog: AtomicUsize,
    /// When the watchdog looks at the shards next.
    looks_at: AtomicU64,
}

impl Notifier {
    /// For a pool with so many drivers, each with a thread or, in an event loop, without. The first
    /// of them leads.
    pub(crate) fn new(shards: usize, drivers: usize, (patience, leeway): (Nanos, Nanos)) -> Arc<Self> {
        Arc::new(Self {
            requested: (0..shards).map(|_| CachePadded::new(AtomicBool::new(false))).collect(),
            parkers: (0..drivers).map(|_| CachePadded::new(Parker::new())).collect(),
            patience,
            leeway,
            leader: CachePadded::new(AtomicUsize::new(0)),
            busy_since: AtomicU64::new(RESTING),
            watchdog: AtomicUsize::new(drivers),
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
        // Ordering: SeqCst, see the module docs of `threads`.
        fence(Ordering::SeqCst);
        self.notify(self.leader());
        if let Some(since) = self.busy_since() {
            self.ensure_look(since.saturating_add(self.patience));
        }
    }

    /// Notifies a driver, if there is one of that number. A manual clock has no drivers.
    pub(super) fn notify(&self, driver: usize) {
        self.parkers.get(driver).into_iter().for_each(|parker| parker.notify());
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
        // Ordering: SeqCst, see the module docs of `threads`.
        fence(Ordering::SeqCst);
    }

    /// Notes that the leader goes to sleep.
    pub(super) fn rest(&self) {
        // Ordering: Relaxed. A request that still reads the leader as busy does no harm.
        self.busy_since.store(RESTING, Ordering::Relaxed);
    }

    pub(super) fn watchdog(&self) -> usize {
        // Ordering: Relaxed, see `leader`.
        self.watchdog.load(Ordering::Relaxed)
    }

    /// Makes that driver the watchdog. It looks at the shards next.
    pub(super) fn set_watchdog(&self, driver: usize) {
        // Ordering: Relaxed, the fence in `announce_look` orders it.
        self.watchdog.store(driver, Ordering::Relaxed);
    }

    /// Announces when the watchdog looks next.
    pub(super) fn announce_look(&self, looks_at: Nanos) {
        // Ordering: Relaxed, the fence orders it.
        self.looks_at.store(looks_at, Ordering::Relaxed);
        // Ordering: SeqCst, see the module docs of `threads`.
        fence(Ordering::SeqCst);
    }

    /// Wakes the watchdog if it would look later than `by`.
    pub(super) fn ensure_look(&self, by: Nanos) {
        // Ordering: Relaxed, see `leader`.
        let looks_at = self.looks_at.load(Ordering::Relaxed);
        if looks_at > by.saturating_add(self.leeway) {
            self.notify(self.watchdog());
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

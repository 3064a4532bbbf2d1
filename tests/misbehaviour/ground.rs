//! Cases of a shard: its waker, on a producer's thread, and the loop over fired timers. (Keys of
//! batches misbehave in a `Timer`; `tests/shard/hostile/batches.rs` has those of a shard that
//! panic.)

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

use crate::scene::{Act, Hold, lock};
use crate::support::ledger::{End, Ledger, Payload};
use crate::support::{Count, To, hooked, until};

/// A shard, and what the case does to it.
struct Shard {
    act: Act,
    scheduler: Mutex<Option<Scheduler<Payload>>>,
    advancer: Mutex<Option<Advancer<Payload>>>,
    neighbour: Mutex<Option<Key>>,
    begun: Count,
    hold: Hold,
    ledger: Ledger,
}

impl Shard {
    fn new(act: Act) -> Arc<Self> {
        let (scheduler, advancer) = shard(&Config::default());
        let ledger = Ledger::default();
        let neighbour = scheduler.schedule(1 << 20, ledger.payload()).ok();
        Arc::new(Self {
            act,
            scheduler: Mutex::new(Some(scheduler)),
            advancer: Mutex::new(Some(advancer)),
            neighbour: Mutex::new(neighbour),
            begun: Count::default(),
            hold: Hold::default(),
            ledger,
        })
    }

    fn scheduler(&self) -> Option<Scheduler<Payload>> {
        lock(&self.scheduler).clone()
    }

    fn schedule(&self, tick: u64) -> bool {
        self.scheduler().is_some_and(|scheduler| scheduler.schedule(tick, self.ledger.payload()).is_ok())
    }

    /// Misbehaves, once.
    fn misbehave(&self) {
        if self.begun.one_more() > 1 {
            return;
        }
        let key = (*lock(&self.neighbour)).expect("it was scheduled");
        let scheduler = || self.scheduler().expect("there is a handle");
        match self.act {
            Act::Panics => panic!("on purpose"),
            Act::Parks | Act::Blocks | Act::Spins | Act::NeverReturns => self.hold.stay(self.act),
            Act::Schedules => assert!(self.schedule(3)),
            Act::Cancels => drop(scheduler().cancel(key)),
            Act::Reschedules => drop(scheduler().reschedule(key, 1 << 10)),
            Act::ShutsDown => _ = lock(&self.advancer).take().map(|advancer| advancer.into_pending().count()),
            Act::DropsLast => drop(lock(&self.scheduler).take()),
        }
    }

    /// Schedules another timer and advances: it fires, and nothing that is due is left.
    fn goes_on(&self, tick: u64) {
        let mut advancer = lock(&self.advancer).take().expect("it has not ended");
        assert!(self.schedule(tick) || self.act == Act::DropsLast);
        drop(advancer.advance(tick).last());
        drop(advancer.advance(tick).last());
        assert!(advancer.next_expiration().is_none_or(|next| next > tick), "something is due still");
        *lock(&self.advancer) = Some(advancer);
    }

    fn end(&self, kept: usize) {
        let scheduler = lock(&self.scheduler).take();
        if let Some(advancer) = lock(&self.advancer).take() {
            advancer.into_pending().for_each(drop);
        }
        if let Some(scheduler) = scheduler {
            let stats = scheduler.stats();
            assert_eq!(stats.scheduled, stats.fired + stats.cancelled + stats.handed_back, "{stats:?}");
        }
        until("each payload is dropped", || self.ledger.dropped() + kept == self.ledger.made());
        self.ledger.check_drops();
    }
}

/// The waker misbehaves on the thread of a producer.
pub(crate) fn play_waker(act: Act) {
    let shard = Shard::new(act);
    let inner = Arc::clone(&shard);
    let waker = hooked(move |to| {
        if to == To::Wake {
            inner.misbehave();
        }
    });
    let mut advancer = lock(&shard.advancer).take().expect("the shard is new");
    advancer.register_waker(&waker);
    assert!(advancer.next_expiration().is_some());
    *lock(&shard.advancer) = Some(advancer);
    let other = Arc::clone(&shard);
    let producer = thread::spawn(move || other.schedule(5));
    until("the waker is woken", || shard.begun.get() >= 1);
    if act.can_be_released() || act == Act::NeverReturns {
        shard.goes_on(10);
    }
    shard.hold.release();
    if act != Act::NeverReturns {
        drop(producer.join());
    }
    if act != Act::ShutsDown {
        shard.goes_on(20);
        // The next advance handles what the stopped producer had begun.
        shard.goes_on(2_000);
    }
    // The waker and the shard hold each other.
    lock(&shard.advancer).iter_mut().for_each(|advancer| advancer.register_waker(std::task::Waker::noop()));
    shard.end(0);
}

/// The loop over due timers misbehaves while it holds the first of three.
pub(crate) fn play_loop(act: Act) {
    let shard = Shard::new(act);
    (5..8).for_each(|tick| assert!(shard.schedule(tick)));
    let inner = Arc::clone(&shard);
    let user = thread::spawn(move || {
        let mut advancer = lock(&inner.advancer).take().expect("the shard is new");
        let run = || {
            for fired in advancer.advance(10) {
                fired.payload.note(End::Fired);
                inner.misbehave();
            }
        };
        drop(catch_unwind(AssertUnwindSafe(run)));
        *lock(&inner.advancer) = Some(advancer);
    });
    until("the loop holds the first timer", || shard.begun.get() >= 1);
    if act.can_be_released() || act == Act::NeverReturns {
        let scheduler = shard.scheduler().expect("there is a handle");
        let key = scheduler.schedule(1 << 30, shard.ledger.payload()).expect("the timer is open");
        assert!(scheduler.reschedule(key, 1 << 31).and_then(|key| scheduler.cancel(key)).is_some());
    }
    if act == Act::NeverReturns {
        return;
    }
    shard.hold.release();
    user.join().expect("the thread does not panic");
    shard.goes_on(20);
    let ran = shard.ledger.noted(End::Fired);
    assert_eq!(
        ran,
        if act == Act::Panics { 1 } else { ran.max(3) },
        "what was not taken comes at the next advance"
    );
    shard.end(0);
}

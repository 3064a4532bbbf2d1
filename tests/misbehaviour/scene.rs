//! One case: what is done where, and what keeps account of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};

use shardwheel::{Sleep, Timer, TimerKey, Unfired};

use crate::support::ledger::{End, Ledger};
use crate::support::{Count, Fuse, HOUR, ms, on_shard};

/// What user code does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Panics,
    Parks,
    Blocks,
    Spins,
    Schedules,
    Cancels,
    Reschedules,
    ShutsDown,
    DropsLast,
    NeverReturns,
}

pub(crate) const ACTS: [Act; 10] = [
    Act::Panics,
    Act::Parks,
    Act::Blocks,
    Act::Spins,
    Act::Schedules,
    Act::Cancels,
    Act::Reschedules,
    Act::ShutsDown,
    Act::DropsLast,
    Act::NeverReturns,
];

impl Act {
    /// Whether it stays where it is until it is released.
    pub(crate) fn can_be_released(self) -> bool {
        matches!(self, Self::Parks | Self::Blocks | Self::Spins)
    }

    /// Whether the timer is gone afterwards.
    pub(crate) fn ends_the_timer(self) -> bool {
        matches!(self, Self::ShutsDown | Self::DropsLast)
    }
}

/// Holds a place until it is released.
#[derive(Default)]
pub(crate) struct Hold {
    is_released: AtomicBool,
    parked: Mutex<Option<Thread>>,
}

impl Hold {
    pub(crate) fn release(&self) {
        self.is_released.store(true, Ordering::SeqCst);
        if let Some(thread) = lock(&self.parked).take() {
            thread.unpark();
        }
    }

    fn is_held(&self) -> bool {
        !self.is_released.load(Ordering::SeqCst)
    }

    /// Stays here in that way.
    pub(crate) fn stay(&self, act: Act) {
        *lock(&self.parked) = Some(thread::current());
        while self.is_held() || act == Act::NeverReturns {
            match act {
                Act::Spins => thread::yield_now(),
                Act::Blocks => thread::sleep(ms(1)),
                _ => thread::park(),
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A timer, and what is done to it.
pub(crate) struct Scene {
    pub(crate) act: Act,
    /// The only handle, but for those that are in use at the moment.
    timer: Mutex<Option<Timer>>,
    /// What is done is done once, when this has been lit.
    pub(crate) fuse: Fuse,
    pub(crate) begun: Count,
    /// Not if it panics.
    pub(crate) done: Count,
    pub(crate) hold: Hold,
    /// The timer that is cancelled or rescheduled.
    pub(crate) key: Mutex<Option<TimerKey>>,
    pub(crate) ledger: Ledger,
    /// Whether a schedule has not been asked yet.
    pub(crate) first: Mutex<bool>,
    pub(crate) sleep: Mutex<Option<Sleep>>,
    unfired: Mutex<Vec<Unfired>>,
}

impl Scene {
    pub(crate) fn new(act: Act) -> Arc<Self> {
        Arc::new(Self {
            act,
            timer: Mutex::new(None),
            fuse: Fuse::default(),
            begun: Count::default(),
            done: Count::default(),
            hold: Hold::default(),
            key: Mutex::new(None),
            ledger: Ledger::default(),
            first: Mutex::new(true),
            sleep: Mutex::new(None),
            unfired: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn open(&self, timer: Timer) {
        *lock(&self.timer) = Some(timer);
    }

    /// A handle, if the last one has not been dropped.
    pub(crate) fn timer(&self) -> Option<Timer> {
        lock(&self.timer).clone()
    }

    /// Takes the last handle away.
    pub(crate) fn close(&self) -> Option<Timer> {
        lock(&self.timer).take()
    }

    /// What the place calls: does what the scene is about, once.
    pub(crate) fn misbehave(&self) {
        if self.fuse.goes_off() {
            self.begun.one();
            self.do_it();
            self.done.one();
        }
    }

    fn do_it(&self) {
        match self.act {
            Act::Panics => panic!("on purpose"),
            Act::Parks | Act::Blocks | Act::Spins | Act::NeverReturns => self.hold.stay(self.act),
            Act::DropsLast => drop(self.close()),
            Act::ShutsDown => self.shut_down(&self.timer().expect("it is open")),
            Act::Schedules => drop(self.schedule(&self.timer().expect("it is open"), 1)),
            Act::Cancels => _ = self.with_key(|timer, key| timer.cancel(key)),
            Act::Reschedules => {
                _ = self.with_key(|timer, key| timer.reschedule_after(key, 2 * HOUR).is_some())
            }
        }
    }

    fn with_key(&self, act: impl FnOnce(&Timer, TimerKey) -> bool) -> bool {
        let key = *lock(&self.key);
        key.is_some_and(|key| act(&self.timer().expect("it is open"), key))
    }

    /// Schedules a callback in so many milliseconds; none where the timer has been shut down.
    pub(crate) fn schedule(&self, timer: &Timer, delay: u64) -> Option<TimerKey> {
        let payload = self.ledger.payload();
        timer.schedule_after(ms(delay), move || payload.note(End::Fired)).ok()
    }

    /// The same on that shard, or, with a single core, on any.
    pub(crate) fn schedule_on(&self, timer: &Timer, shard: usize, delay: u64) -> Option<TimerKey> {
        on_shard(timer, shard, || self.schedule(timer, delay)).unwrap_or_else(|| self.schedule(timer, delay))
    }

    /// Shuts the timer down, and keeps what comes back.
    pub(crate) fn shut_down(&self, timer: &Timer) {
        let unfired = timer.shutdown();
        lock(&self.unfired).push(unfired);
    }

    /// Drops what came back, and the sleep; how much it was.
    pub(crate) fn clear(&self) -> usize {
        drop(lock(&self.sleep).take());
        let unfired = std::mem::take(&mut *lock(&self.unfired));
        unfired.into_iter().map(Iterator::count).sum()
    }
}

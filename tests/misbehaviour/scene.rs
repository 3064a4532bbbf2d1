//! One case: what user code does, the timer that it does it to, and the ledger.

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
    /// Whether the code stays at the place until it is released.
    pub(crate) fn can_be_released(self) -> bool {
        matches!(self, Self::Parks | Self::Blocks | Self::Spins)
    }

    /// Whether the timer has ended afterwards.
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

    /// Stays at the place, in the way of `act`.
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

/// A timer, and what the case does to it.
pub(crate) struct Scene {
    pub(crate) act: Act,
    /// The only handle, except for those in use at the moment.
    timer: Mutex<Option<Timer>>,
    /// The code misbehaves once, after the fuse was set.
    pub(crate) fuse: Fuse,
    pub(crate) begun: Count,
    /// Misbehaviours that returned; a panic does not.
    pub(crate) done: Count,
    pub(crate) hold: Hold,
    /// The timer that is cancelled or rescheduled.
    pub(crate) key: Mutex<Option<TimerKey>>,
    pub(crate) ledger: Ledger,
    /// Whether the schedule has not been called yet.
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

    /// A handle, unless the last one has been dropped.
    pub(crate) fn timer(&self) -> Option<Timer> {
        lock(&self.timer).clone()
    }

    /// Takes the last handle.
    pub(crate) fn close(&self) -> Option<Timer> {
        lock(&self.timer).take()
    }

    /// What the place calls: misbehaves, once.
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
            Act::ShutsDown => self.shut_down(&self.timer().expect("the timer is open")),
            Act::Schedules => drop(self.schedule(&self.timer().expect("the timer is open"), 1)),
            Act::Cancels => _ = self.with_key(|timer, key| timer.cancel(key)),
            Act::Reschedules => {
                _ = self.with_key(|timer, key| timer.reschedule_after(key, 2 * HOUR).is_some())
            }
        }
    }

    fn with_key(&self, act: impl FnOnce(&Timer, TimerKey) -> bool) -> bool {
        let key = *lock(&self.key);
        key.is_some_and(|key| act(&self.timer().expect("the timer is open"), key))
    }

    /// Schedules a callback in `delay` milliseconds; none if the timer has been shut down.
    pub(crate) fn schedule(&self, timer: &Timer, delay: u64) -> Option<TimerKey> {
        let payload = self.ledger.payload();
        timer.schedule_after(ms(delay), move || payload.note(End::Fired)).ok()
    }

    /// The same on that shard, or on any shard on a machine with one core.
    pub(crate) fn schedule_on(&self, timer: &Timer, shard: usize, delay: u64) -> Option<TimerKey> {
        on_shard(timer, shard, || self.schedule(timer, delay)).unwrap_or_else(|| self.schedule(timer, delay))
    }

    /// Shuts the timer down, and keeps what it returns.
    pub(crate) fn shut_down(&self, timer: &Timer) {
        let unfired = timer.shutdown();
        lock(&self.unfired).push(unfired);
    }

    /// Drops what the shutdown returned, and the sleep. Returns how many callbacks that were.
    pub(crate) fn clear(&self) -> usize {
        drop(lock(&self.sleep).take());
        let unfired = std::mem::take(&mut *lock(&self.unfired));
        unfired.into_iter().map(Iterator::count).sum()
    }
}

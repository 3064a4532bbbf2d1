//! The wheels of `hierarchical_hash_wheel_timer`: four levels of 256 buckets.
//!
//! [`QuadWheel`] cannot cancel. [`WeakQuadWheel`] can: it holds weak references and a hash map of
//! the pending timers. Its reference counts are not atomic, so no lock makes it shareable. A cancel
//! does not return the payload, so the handle has it.

use std::rc::Rc;
use std::time::Duration;

use hierarchical_hash_wheel_timer::TimerError;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::{self, CancellableTimerEntry};
use hierarchical_hash_wheel_timer::wheels::quad_wheel::{QuadWheelWithOverflow, no_prune};

use super::structure::{First, Removal, Structure};

/// Moves a clock to `now` or to the first tick with due timers. The wheels have no common trait.
macro_rules! move_clock {
    ($self:ident, $now:ident) => {
        while $self.due.is_empty() && $self.clock < $now {
            let left = u32::try_from($now - $self.clock).unwrap_or(u32::MAX);
            let ticks = match $self.wheel.can_skip() {
                Skip::Empty => left,
                Skip::Millis(ticks) => left.min(ticks),
                Skip::None => 0,
            };
            if ticks > 0 {
                $self.wheel.skip(ticks);
            } else {
                $self.due = $self.wheel.tick();
            }
            $self.clock += u64::from(ticks.max(1));
        }
    };
}

/// Both wheels say how many ticks they can skip; something may be due at the tick after those.
macro_rules! first {
    ($($wheel:ty),+) => {
        $(impl First for $wheel {
            #[inline]
            fn next_expiration(&self) -> Option<u64> {
                match self.wheel.can_skip() {
                    Skip::Empty if self.due.is_empty() => None,
                    Skip::Millis(ticks) if self.due.is_empty() => Some(self.clock + u64::from(ticks) + 1),
                    _ => Some(self.clock + 1),
                }
            }
        })+
    };
}

first!(QuadWheel, WeakQuadWheel);

pub(crate) struct QuadWheel {
    wheel: QuadWheelWithOverflow<(u64, u64)>,
    due: Vec<(u64, u64)>,
    clock: u64,
}

impl Structure for QuadWheel {
    const NAMES: [&'static str; 2] = ["quad wheel", "quad wheel without a lock"];

    type Handle = ();

    fn new() -> Self {
        Self { wheel: QuadWheelWithOverflow::new(no_prune), due: Vec::new(), clock: 0 }
    }

    /// The wheel refuses a timer that is due at once, so the adapter keeps it.
    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) {
        let delay = Duration::from_millis(deadline.saturating_sub(self.clock));
        if let Err(TimerError::Expired(timer)) = self.wheel.insert_with_delay((deadline, payload), delay) {
            self.due.push(timer);
        }
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        move_clock!(self, now);
        self.due.pop()
    }
}

#[derive(Debug)]
struct Entry {
    id: u64,
    deadline: u64,
    payload: u64,
}

impl CancellableTimerEntry for Entry {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.id
    }
}

pub(crate) struct WeakQuadWheel {
    wheel: cancellable::QuadWheelWithOverflow<Entry>,
    due: Vec<Rc<Entry>>,
    clock: u64,
    next_id: u64,
}

impl Structure for WeakQuadWheel {
    const NAMES: [&'static str; 2] = ["quad wheel with cancel", "quad wheel with cancel without a lock"];

    /// The timer's number and payload.
    type Handle = (u64, u64);

    fn new() -> Self {
        let wheel = cancellable::QuadWheelWithOverflow::new();
        Self { wheel, due: Vec::new(), clock: 0, next_id: 0 }
    }

    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) -> (u64, u64) {
        let id = self.next_id;
        self.next_id += 1;
        let delay = Duration::from_millis(deadline.saturating_sub(self.clock));
        let entry = Rc::new(Entry { id, deadline, payload });
        if let Err(TimerError::Expired(entry)) = self.wheel.insert_ref_with_delay(entry, delay) {
            self.due.push(entry);
        }
        (id, payload)
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        move_clock!(self, now);
        self.due.pop().map(|entry| (entry.deadline, entry.payload))
    }
}

impl Removal for WeakQuadWheel {
    #[inline]
    fn cancel(&mut self, (id, payload): (u64, u64)) -> Option<u64> {
        self.wheel.cancel(&id).is_ok().then_some(payload)
    }
}

//! The wheel of `hierarchical_hash_wheel_timer` that can cancel: the same four levels of weak references, and a
//! hash map of the timers that are pending.
//!
//! Its references are counted without atomics, so no lock lets threads share it. Cancelling does not hand the
//! payload back; the adapter has it in the handle. There is no way to extend, other than to cancel and insert.

use std::rc::Rc;
use std::time::Duration;

use hierarchical_hash_wheel_timer::TimerError;
use hierarchical_hash_wheel_timer::wheels::cancellable::{CancellableTimerEntry, QuadWheelWithOverflow};

use super::quad_wheel::skippable;
use crate::structure::{Removal, Structure};

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

/// A cancellable [`QuadWheelWithOverflow`].
pub struct WeakQuadWheel {
    wheel: QuadWheelWithOverflow<Entry>,
    due: Vec<Rc<Entry>>,
    clock: u64,
    next_id: u64,
}

impl WeakQuadWheel {
    fn step(&mut self, left: u64) {
        if let Some(ticks) = skippable(&self.wheel.can_skip(), left) {
            self.wheel.skip(ticks);
            self.clock += u64::from(ticks);
        } else {
            self.due = self.wheel.tick();
            self.clock += 1;
        }
    }
}

impl Structure for WeakQuadWheel {
    const NAME: &'static str = "quad wheel with cancel, no lock";
    const NAME_LOCKED: &'static str = "quad wheel with cancel";

    /// The timer's number and payload.
    type Handle = (u64, u64);

    fn new() -> Self {
        Self { wheel: QuadWheelWithOverflow::new(), due: Vec::new(), clock: 0, next_id: 0 }
    }

    /// The wheel refuses what is due at once, so that is kept beside it.
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
        while self.due.is_empty() && self.clock < now {
            self.step(now - self.clock);
        }
        self.due.pop().map(|entry| (entry.deadline, entry.payload))
    }
}

impl Removal for WeakQuadWheel {
    #[inline]
    fn cancel(&mut self, (id, payload): (u64, u64)) -> Option<u64> {
        self.wheel.cancel(&id).is_ok().then_some(payload)
    }

    #[inline]
    fn extend(&mut self, handle: (u64, u64), deadline: u64) -> Option<(u64, u64)> {
        let payload = self.cancel(handle)?;
        Some(self.schedule(deadline, payload))
    }
}

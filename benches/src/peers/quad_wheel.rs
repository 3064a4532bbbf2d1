//! The wheel of `hierarchical_hash_wheel_timer` that cannot cancel: four levels of 256 buckets.

use std::time::Duration;

use hierarchical_hash_wheel_timer::TimerError;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::quad_wheel::{QuadWheelWithOverflow, no_prune};

use crate::structure::Structure;

/// How many of `left` ticks a wheel may skip; `None` where the next tick has to be taken.
pub(super) fn skippable(skip: &Skip, left: u64) -> Option<u32> {
    let left = u32::try_from(left).unwrap_or(u32::MAX);
    match *skip {
        Skip::Empty => Some(left),
        Skip::Millis(ticks) => Some(left.min(ticks)),
        Skip::None => None,
    }
}

/// A [`QuadWheelWithOverflow`] of deadlines and payloads.
pub struct QuadWheel {
    wheel: QuadWheelWithOverflow<(u64, u64)>,
    due: Vec<(u64, u64)>,
    clock: u64,
}

impl QuadWheel {
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

impl Structure for QuadWheel {
    const NAME: &'static str = "quad wheel, no lock";
    const NAME_LOCKED: &'static str = "quad wheel";

    type Handle = ();

    fn new() -> Self {
        Self { wheel: QuadWheelWithOverflow::new(no_prune), due: Vec::new(), clock: 0 }
    }

    /// The wheel refuses what is due at once, so that is kept beside it.
    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) {
        let delay = Duration::from_millis(deadline.saturating_sub(self.clock));
        if let Err(TimerError::Expired(timer)) = self.wheel.insert_with_delay((deadline, payload), delay) {
            self.due.push(timer);
        }
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        while self.due.is_empty() && self.clock < now {
            self.step(now - self.clock);
        }
        self.due.pop()
    }
}

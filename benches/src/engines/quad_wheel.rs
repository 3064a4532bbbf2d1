//! The wheels of `hierarchical_hash_wheel_timer`: four levels of 256 buckets. This one cannot cancel.

use std::time::Duration;

use hierarchical_hash_wheel_timer::TimerError;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::quad_wheel::{QuadWheelWithOverflow, no_prune};

use super::structure::Structure;

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

    /// Moves the clock to `now` or to the first tick with due timers.
    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        while self.due.is_empty() && self.clock < now {
            let left = u32::try_from(now - self.clock).unwrap_or(u32::MAX);
            let ticks = match self.wheel.can_skip() {
                Skip::Empty => left,
                Skip::Millis(ticks) => left.min(ticks),
                Skip::None => 0,
            };
            if ticks > 0 {
                self.wheel.skip(ticks);
            } else {
                self.due = self.wheel.tick();
            }
            self.clock += u64::from(ticks.max(1));
        }
        self.due.pop()
    }
}

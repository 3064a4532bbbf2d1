//! The ring of `Vec`s of the crate `wheel_timer`: one level, no cancel, no delay beyond the ring.

use wheel_timer::WheelTimer;

use super::structure::Structure;
use crate::workload::ONE_LEVEL;

/// A [`WheelTimer`] whose ring holds the longest delay of the workloads.
pub(crate) struct RingWheel {
    wheel: WheelTimer<(u64, u64)>,
    due: Vec<(u64, u64)>,
    /// The tick whose timers the next call returns.
    next: u64,
}

impl Structure for RingWheel {
    const NAMES: [&'static str; 2] = ["ring wheel", "ring wheel without a lock"];

    type Handle = ();

    fn new() -> Self {
        Self { wheel: WheelTimer::new(ONE_LEVEL), due: Vec::new(), next: 0 }
    }

    /// A delay beyond the ring would fire a round early, so it is refused.
    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) {
        let ticks = deadline.saturating_sub(self.next) as usize;
        assert!(ticks < ONE_LEVEL, "a delay of {ticks} ticks is longer than the ring");
        self.wheel.schedule(ticks, (deadline, payload));
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        while self.due.is_empty() && self.next <= now {
            self.due = self.wheel.tick();
            self.next += 1;
        }
        self.due.pop()
    }
}

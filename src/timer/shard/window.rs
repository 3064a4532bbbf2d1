//! The ends of a window in which a timer may fire.

use std::ops::{RangeInclusive, Sub};

use super::handle::ShardHandle;
use crate::error::ScheduleErrorKind;
use crate::time::{Duration, Instant};
use crate::timer::time::{Nanos, nanos};

impl ShardHandle {
    /// The start of a window, and its length.
    pub(crate) fn window(
        &self,
        window: RangeInclusive<impl WindowEnd>,
    ) -> Result<(Nanos, Nanos), ScheduleErrorKind> {
        let (start, end) = window.into_inner();
        if end < start {
            return Err(ScheduleErrorKind::WindowEndsBeforeStart { by: start - end });
        }
        let [start, end] = sealed::End::times([start, end], self);
        Ok((start, end - start))
    }
}

/// An end of a window, as of [`Timer::schedule_within`](crate::Timer::schedule_within): an
/// [`Instant`], or a [`Duration`] from the call on. No other type can be one.
pub trait WindowEnd: sealed::End {}

impl WindowEnd for Instant {}
impl WindowEnd for Duration {}

mod sealed {
    use super::{Duration, Instant, Nanos, ShardHandle, Sub, nanos};

    pub trait End: Copy + Ord + Sub<Output = Duration> {
        /// The ends by the shard's time, all from one reading of its clock.
        fn times(ends: [Self; 2], handle: &ShardHandle) -> [Nanos; 2];
    }

    impl End for Instant {
        fn times(ends: [Self; 2], handle: &ShardHandle) -> [Nanos; 2] {
            ends.map(|at| handle.time.since_start(at))
        }
    }

    impl End for Duration {
        fn times(ends: [Self; 2], handle: &ShardHandle) -> [Nanos; 2] {
            let now = handle.now_or_later();
            ends.map(|after| now.saturating_add(nanos(after)))
        }
    }
}

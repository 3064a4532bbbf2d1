//! The hash map of buckets of the crate `timewheel`: a timer further ahead than one round counts rounds.
//!
//! A bucket whose timers have rounds to go is rebuilt in each of them, so the map has as many buckets as the
//! longest delay has ticks. Cancelling searches the timer's bucket for an equal value, so each value has a number.

use std::collections::VecDeque;
use std::task::Poll;

use timewheel::TimeWheel;

use super::BUCKETS;
use crate::structure::{Removal, Structure};

/// A number of its own, the deadline and the payload.
type Entry = (u64, u64, u64);

/// A [`TimeWheel`] with a bucket for each tick.
pub struct HashedWheel {
    wheel: TimeWheel<Entry>,
    due: VecDeque<Entry>,
    /// The tick whose timers the next call hands out.
    next: u64,
    next_id: u64,
}

impl Structure for HashedWheel {
    const NAME: &'static str = "hashed wheel, no lock";
    const NAME_LOCKED: &'static str = "hashed wheel";

    /// The bucket, and what to look for in it.
    type Handle = (u128, Entry);

    fn new() -> Self {
        Self { wheel: TimeWheel::new(BUCKETS as u128), due: VecDeque::new(), next: 0, next_id: 0 }
    }

    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) -> (u128, Entry) {
        let entry = (self.next_id, deadline, payload);
        self.next_id += 1;
        let bucket = self.wheel.add(u128::from(deadline.saturating_sub(self.next)), entry);
        (bucket, entry)
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        while self.due.is_empty() && self.next <= now {
            if let Poll::Ready(due) = self.wheel.tick() {
                self.due = due;
            }
            self.next += 1;
        }
        self.due.pop_front().map(|(_, deadline, payload)| (deadline, payload))
    }
}

impl Removal for HashedWheel {
    #[inline]
    fn cancel(&mut self, (bucket, entry): (u128, Entry)) -> Option<u64> {
        self.wheel.remove(bucket, entry).then_some(entry.2)
    }

    #[inline]
    fn extend(&mut self, handle: (u128, Entry), deadline: u64) -> Option<(u128, Entry)> {
        let payload = self.cancel(handle)?;
        Some(self.schedule(deadline, payload))
    }
}

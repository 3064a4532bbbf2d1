//! Crowds: many timers that come while the advancer sleeps.
//!
//! The advancer empties a full overflow bucket little by little, during the bucket's *lead* (see
//! [`early_cascade`](crate::shard::advancer::early_cascade)). Where few timers are pending it does
//! not wake for that: it sleeps until the bucket expires, and cascades it at once. If a crowd of
//! timers comes during that sleep, none of them wakes the advancer, because each is due later than
//! the sleep ends. So one producer in `LIMITS.few_pending` schedules looks whether many timers are
//! pending by now and the sleep ends after the lead has begun, and then wakes the advancer, which
//! counts anew.
//!
//! Each lane counts its own schedules. So of a crowd that `n` threads bring, up to `n` times as
//! many timers may go unnoticed, and the bucket that holds them is cascaded at once. No timer
//! depends on this wake; it is a matter of how long an advance takes.

use super::Shared;
use crate::config::LIMITS;
use crate::tick::Tick;

impl<T> Shared<T> {
    /// Whether the producer of a timer that is due at `deadline` must wake the advancer because a
    /// crowd has come; `scheduled` timers have been scheduled on its lane. O(lanes) once in
    /// `LIMITS.few_pending` calls, otherwise O(1).
    #[inline]
    pub(crate) fn must_wake_for_crowd(&self, scheduled: u64, deadline: Tick) -> bool {
        scheduled.is_multiple_of(LIMITS.few_pending as u64) && self.is_crowd_slept_through(deadline)
    }

    #[cold]
    fn is_crowd_slept_through(&self, deadline: Tick) -> bool {
        let from = self.clock.flushed();
        let slot = self.geometry.place(from, deadline.max(from));
        let lead = self.geometry.expiration(slot).saturating_sub(self.geometry.span(slot.level));
        slot.level > 0 && self.len() > LIMITS.few_pending && self.must_wake(lead)
    }
}

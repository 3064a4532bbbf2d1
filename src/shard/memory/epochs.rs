//! Epoch reclamation: decides when memory that producers may still be reading can be given back.
//!
//! This is the only file that names `crossbeam_epoch`. A producer that reads a node which it does
//! not own (through a key), or the advancer's waker, is *pinned* meanwhile. It needs no pin if it
//! has free nodes of its own in the node's segment, which keep the segment. Only the advancer takes
//! memory away: it makes the memory unreachable, and [defers](Participant::defer) the rest until
//! every participant that was pinned then has unpinned.
//!
//! Each shard has its own epochs. Each lane is a participant, and so is the advancer. So a
//! pinned participant delays no other shard, a producer that advances the epoch looks only at the
//! few participants of its shard, and a producer reaches its participant in one step. Two producers
//! on two shards share nothing.
//!
//! In most loom models what is deferred never runs, because the model itself would read freed
//! memory; loom does not see the pins. Nodes are used again at once in any case.

use std::marker::PhantomData;

use crossbeam_epoch::{Collector, LocalHandle};

/// The epochs of one shard.
#[derive(Debug)]
pub(crate) struct Epochs(Collector);

impl Epochs {
    pub(crate) fn new() -> Self {
        Self(Collector::new())
    }

    /// The epochs of a new shard, and the one right to take memory away from it.
    pub(crate) fn with_reclaimer() -> (Self, Reclaimer) {
        let epochs = Self::new();
        let (mut spare, participant) = (Vec::new(), epochs.join());
        // Without it, the process ends if memory is refused at the shard's end.
        let _ = spare.try_reserve_exact(SPARE_BYTES);
        (epochs, Reclaimer { _spare: spare, participant })
    }

    /// Adds a participant, which may read memory that the advancer takes away.
    pub(crate) fn join(&self) -> Participant {
        Participant {
            handle: self.0.register(),
            #[cfg(miri)]
            _collector: self.0.clone(),
        }
    }
}

/// A participant can be pinned; one thread at a time uses it.
#[derive(Debug)]
pub(crate) struct Participant {
    handle: LocalHandle,
    /// Dropped after the handle. If dropping the handle also drops the collector,
    /// crossbeam-epoch frees memory that its own caller still references (`Local::finalize`),
    /// which Miri reports.
    #[cfg(miri)]
    _collector: Collector,
}

// SAFETY: a handle is bound to no thread, but must not be shared. Its cells are reached only
// through the handle and its guards, and the deferred calls in its bag are Send. No guard
// outlives the call that made it (and no guard is Send). Handing the handle to another thread
// makes all earlier uses visible to it.
unsafe impl Send for Participant {}

impl Participant {
    /// Pins the participant. No user code runs while it is pinned.
    #[inline]
    pub(crate) fn pin(&self) -> Guard<'_> {
        Guard { _epoch: self.handle.pin(), participant: PhantomData }
    }

    /// Calls `run` once no participant is pinned that was pinned before this call. Any
    /// participant may be the one that runs it, within a pin.
    ///
    /// # Safety
    ///
    /// `run` may be called, by any thread, as long as a participant of these epochs exists.
    pub(crate) unsafe fn defer(&self, run: impl FnOnce()) {
        #[cfg(all(shardwheel_loom, not(shardwheel_loom_epoch)))]
        let run = || std::mem::forget(run);
        let guard = self.handle.pin();
        // SAFETY: by the caller's promise. The collector, which the participants own, runs it
        // or is dropped with it.
        unsafe { guard.defer_unchecked(run) };
        guard.flush();
    }

    /// As [`defer`](Self::defer), for a call that borrows nothing.
    #[cfg(any(test, shardwheel_loom, shardwheel_model))]
    pub(crate) fn defer_static(&self, run: impl FnOnce() + Send + 'static) {
        // SAFETY: it may be called at any time.
        unsafe { self.defer(run) };
    }

    /// Helps the epochs on. Otherwise they move only when participants pin often enough.
    pub(crate) fn help(&self) {
        self.handle.pin().flush();
    }
}

/// While a guard exists, nothing that its participant can reach is given back.
#[derive(Debug)]
pub(crate) struct Guard<'p> {
    _epoch: crossbeam_epoch::Guard,
    /// Meanwhile the participant is not handed to another thread.
    participant: PhantomData<&'p Participant>,
}

/// The bytes that crossbeam-epoch takes when a participant is dropped, and hardly more: an allocator
/// that has classes of sizes takes both from one.
const SPARE_BYTES: usize = 2080;

/// The right to take memory away from producers. A shard has one: its advancer's.
#[derive(Debug)]
pub(crate) struct Reclaimer {
    /// Dropped first, so that the drop of the participant finds memory, also if the system has none:
    /// where one shard of many is refused, those before it are dropped.
    _spare: Vec<u8>,
    participant: Participant,
}

impl Reclaimer {
    /// The advancer as a participant of the epochs.
    #[inline]
    pub(crate) fn participant(&self) -> &Participant {
        &self.participant
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_pinned_participant_delays_its_own_shard_alone() {
        let (one, other) = (Epochs::new(), Epochs::new());
        let (reader, advancer) = (one.join(), other.join());
        let pinned = reader.pin();
        let has_run = Arc::new(AtomicBool::new(false));
        let run = Arc::clone(&has_run);
        // Ordering: Relaxed for both, a flag.
        advancer.defer_static(move || run.store(true, Ordering::Relaxed));
        while !has_run.load(Ordering::Relaxed) {
            advancer.help();
        }
        drop(pinned);
    }
}

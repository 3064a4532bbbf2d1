//! Epoch reclamation: when may memory that producers can still be reading be used again?
//!
//! The only file that names `crossbeam_epoch`. A producer that looks at a node which it does not own (a
//! key, a hint) or at a wheel that may be given back is *pinned* meanwhile, unless free nodes of its own keep
//! the node's segment; the advancer, which alone takes things away, makes them unreachable first, then starts a
//! [`Grace`] period, and uses them again only when that has passed: all who were pinned at its start have been
//! unpinned since.
//!
//! Each shard has epochs of its own, and each lane is a participant, as is the advancer. So who is pinned holds up
//! nothing of another shard, a producer that moves its epoch on looks at the few that share the shard, and pinning is a
//! step from the lane at hand. Two producers on two shards share nothing.
//!
//! A grace period is one deferred call that sets a flag, whatever number of nodes, segments and wheels
//! waits for it. The deferred call touches nothing of the shard, so it may run on any thread, at any later
//! time, also when the shard is long gone, and the payload type need not be `'static`.
//!
//! In most loom models a stand-in takes the place of the epochs: a grace period that has always passed.
//! Nodes are then used again at once, which is harder on the protocol than any real reclaimer would be; only
//! what goes back to the system is kept to the end, as the model itself would read freed memory.

use std::ptr::NonNull;

/// Something that nobody finds any more, but that who was pinned before may still be looking at, so it stays
/// behind a pointer; freed when dropped. Its owner drops it when a grace period has passed, or when the shard
/// ends and nobody can look any more.
#[derive(Debug)]
pub(crate) struct Unlinked<M>(NonNull<M>);

impl<M> Unlinked<M> {
    /// `None` if the pointer is null.
    ///
    /// # Safety
    ///
    /// It came from `Box::into_raw`, is no longer reachable for those who are pinned from now on, and is given
    /// to this function once.
    pub(crate) unsafe fn new(memory: *mut M) -> Option<Self> {
        NonNull::new(memory).map(Self)
    }

    pub(crate) fn get(&self) -> &M {
        // SAFETY: it lives until `self` is dropped.
        unsafe { self.0.as_ref() }
    }
}

// SAFETY: it owns the memory; others may read it meanwhile, so it is shared as well.
unsafe impl<M: Send + Sync> Send for Unlinked<M> {}

impl<M> Drop for Unlinked<M> {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and nobody looks at it any more, as the owner waits for that.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

#[cfg(any(not(shardwheel_loom), feature = "loom-epoch"))]
mod epochs {
    use crossbeam_epoch::{Collector, LocalHandle};

    use crate::sync::{Arc, AtomicBool, Ordering};

    pub(crate) const IS_STAND_IN: bool = false;

    /// The epochs of one shard.
    #[derive(Debug)]
    pub(crate) struct Epochs(Collector);

    impl Epochs {
        pub(crate) fn new() -> Self {
            Self(Collector::new())
        }

        /// Someone who may read what the advancer takes away.
        pub(crate) fn join(&self) -> Participant {
            Participant {
                handle: Some(self.0.register()),
                #[cfg(miri)]
                collector: self.0.clone(),
            }
        }

        /// Has one that has left take part again.
        pub(crate) fn join_again(&self, participant: &mut Participant) {
            participant.handle.get_or_insert_with(|| self.0.register());
        }
    }

    /// One who may be pinned, used by one thread at a time; or one who has left, and is not pinned until it has joined
    /// again.
    #[derive(Debug)]
    pub(crate) struct Participant {
        handle: Option<LocalHandle>,
        /// Dropped after the handle. Where a handle's end is the collector's as well, crossbeam-epoch frees what its own
        /// caller still has a reference to (`Local::finalize`), which Miri reports.
        #[cfg(miri)]
        collector: Collector,
    }

    // SAFETY: a handle is bound to no thread, only not to be shared: its cells are looked at through it and its guards
    // alone, and the deferred calls in its bag are Send. No guard outlives the call that it was made in (and none is
    // Send), and who passes the handle on passes all that was done with it.
    unsafe impl Send for Participant {}

    impl Participant {
        /// Pins it. Nothing of the user's runs while it is pinned.
        #[inline]
        pub(crate) fn pin(&self) -> Guard {
            Guard { _epoch: self.handle().pin() }
        }

        /// Leaves: from now on it holds nothing up and costs nobody anything.
        pub(crate) fn leave(&mut self) -> Self {
            Self {
                handle: self.handle.take(),
                #[cfg(miri)]
                collector: self.collector.clone(),
            }
        }

        fn handle(&self) -> &LocalHandle {
            self.handle.as_ref().expect("it has joined: the owner of a lane sees to that")
        }
    }

    /// While one exists, nothing that its participant can reach is given back.
    #[derive(Debug)]
    pub(crate) struct Guard {
        _epoch: crossbeam_epoch::Guard,
    }

    /// A period after which no participant holds what was unreachable at its start.
    #[derive(Debug)]
    pub(crate) struct Grace {
        passed: Arc<AtomicBool>,
    }

    impl Grace {
        pub(crate) fn begin(advancer: &Participant) -> Self {
            let passed = Arc::new(AtomicBool::new(false));
            let flag = Arc::clone(&passed);
            let guard = advancer.handle().pin();
            // Protects: every reader that was pinned before this and may have found a node, a segment or
            // a wheel before the caller made it unreachable.
            guard.defer(move || {
                // Ordering: Release, pairs with `has_passed`: the readers' accesses come before.
                flag.store(true, Ordering::Release);
            });
            guard.flush();
            Self { passed }
        }

        pub(crate) fn has_passed(&self) -> bool {
            // Ordering: Acquire, pairs with the deferred Release.
            self.passed.load(Ordering::Acquire)
        }

        /// Helps the epochs on, which otherwise move only when somebody pins often enough.
        pub(crate) fn help(advancer: &Participant) {
            advancer.handle().pin().flush();
        }
    }
}

#[cfg(all(shardwheel_loom, not(feature = "loom-epoch")))]
mod epochs {
    pub(crate) const IS_STAND_IN: bool = true;

    #[derive(Debug)]
    pub(crate) struct Epochs;

    impl Epochs {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) fn join(&self) -> Participant {
            Participant
        }

        pub(crate) fn join_again(&self, _: &mut Participant) {}
    }

    #[derive(Debug)]
    pub(crate) struct Participant;

    impl Participant {
        pub(crate) fn pin(&self) -> Guard {
            Guard { _private: () }
        }

        pub(crate) fn leave(&mut self) -> Self {
            Self
        }
    }

    #[derive(Debug)]
    pub(crate) struct Guard {
        _private: (),
    }

    #[derive(Debug)]
    pub(crate) struct Grace;

    impl Grace {
        pub(crate) fn begin(_: &Participant) -> Self {
            Self
        }

        pub(crate) fn has_passed(&self) -> bool {
            true
        }

        pub(crate) fn help(_: &Participant) {}
    }
}

pub(crate) use epochs::{Epochs, Grace, Guard, IS_STAND_IN, Participant};

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_grace_period_outlasts_who_was_pinned_before_it() {
        let epochs = Epochs::new();
        let (reader, advancer) = (epochs.join(), epochs.join());
        let (pinned, unpin) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let (pinned, unpin) = (&pinned, &unpin);
            scope.spawn(move || {
                let guard = reader.pin();
                pinned.wait();
                unpin.wait();
                drop(guard);
            });
            pinned.wait();
            let grace = Grace::begin(&advancer);
            (0..100).for_each(|_| Grace::help(&advancer));
            assert!(!grace.has_passed());
            unpin.wait();
            while !grace.has_passed() {
                Grace::help(&advancer);
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn who_is_pinned_holds_up_his_own_shard_alone() {
        let (one, other) = (Epochs::new(), Epochs::new());
        let (reader, advancer) = (one.join(), other.join());
        let pinned = reader.pin();
        let grace = Grace::begin(&advancer);
        while !grace.has_passed() {
            Grace::help(&advancer);
        }
        drop(pinned);
    }
}

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
//! crossbeam-epoch ends the process where the system gives it no memory. It asks for some in two places: when somebody
//! joins, and when a grace period begins. So both look first whether there is as much ([`has_memory`]), and do without if
//! not. What is left is the moment between the look and the request, in which another thread may take the memory.
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

/// More than crossbeam-epoch asks for at once.
#[cfg(any(not(shardwheel_loom), feature = "loom-epoch"))]
const MOST_ASKED_FOR: usize = 4096;

/// Whether the system has memory for what crossbeam-epoch is about to ask for.
#[cfg(any(not(shardwheel_loom), feature = "loom-epoch"))]
fn has_memory() -> bool {
    crate::fallible::has_memory(MOST_ASKED_FOR)
}

#[cfg(any(not(shardwheel_loom), feature = "loom-epoch"))]
mod imp {
    use crossbeam_epoch::{Collector, LocalHandle};

    use super::has_memory;
    use crate::sync::plain::Arc;
    use crate::sync::{AtomicU64, Ordering};

    pub(crate) const IS_STAND_IN: bool = false;

    /// The epochs of one shard.
    #[derive(Debug)]
    pub(crate) struct Epochs {
        collector: Collector,
        graces: Arc<Graces>,
    }

    /// The grace periods of a shard, numbered in the order in which they begin.
    #[derive(Debug)]
    struct Graces {
        begun: AtomicU64,
        /// The last that has passed, and with it all that had begun before.
        passed: AtomicU64,
    }

    impl Epochs {
        pub(crate) fn new() -> Self {
            let graces = Graces { begun: AtomicU64::new(0), passed: AtomicU64::new(0) };
            Self { collector: Collector::new(), graces: Arc::new(graces) }
        }

        /// Someone who may read what the advancer takes away; none if there is no memory.
        pub(crate) fn join(&self) -> Option<Participant> {
            let mut participant = Participant {
                handle: None,
                graces: Arc::clone(&self.graces),
                #[cfg(miri)]
                collector: self.collector.clone(),
            };
            self.join_again(&mut participant).then_some(participant)
        }

        /// Has one that has left take part again; false if there is no memory.
        pub(crate) fn join_again(&self, participant: &mut Participant) -> bool {
            if participant.handle.is_none() && has_memory() {
                participant.handle = Some(self.collector.register());
            }
            participant.handle.is_some()
        }
    }

    /// One who may be pinned, used by one thread at a time; or one who has left, and is not pinned until it has joined
    /// again.
    #[derive(Debug)]
    pub(crate) struct Participant {
        handle: Option<LocalHandle>,
        graces: Arc<Graces>,
        /// Dropped after the handle. Where a handle's end is the collector's as well, crossbeam-epoch frees what its own
        /// caller still has a reference to (`Local::finalize`), which Miri reports.
        #[cfg(miri)]
        collector: Collector,
    }

    // SAFETY: a handle is bound to no thread, only not to be shared: its cells are looked at through it and its guards
    // alone, and the deferred calls in its bag are Send. No guard outlives the call that it was made in (and none is
    // Send), and who passes the handle on passes all that was done with it.
    unsafe impl Send for Participant {}

    impl Drop for Participant {
        /// Leaves the epochs, for which crossbeam-epoch asks for memory. Where there is none, what it keeps of the
        /// participant is never freed.
        fn drop(&mut self) {
            if let Some(handle) = self.handle.take()
                && !has_memory()
            {
                std::mem::forget(handle);
            }
        }
    }

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
                graces: Arc::clone(&self.graces),
                #[cfg(miri)]
                collector: self.collector.clone(),
            }
        }

        pub(crate) fn has_joined(&self) -> bool {
            self.handle.is_some()
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
        graces: Arc<Graces>,
        number: u64,
    }

    impl Grace {
        /// None if there is no memory.
        pub(crate) fn begin(advancer: &Participant) -> Option<Self> {
            if !has_memory() {
                return None;
            }
            let [graces, passed] = [(); 2].map(|()| Arc::clone(&advancer.graces));
            // Ordering: Relaxed, the number alone matters.
            let number = graces.begun.fetch_add(1, Ordering::Relaxed) + 1;
            let guard = advancer.handle().pin();
            // Protects: every reader that was pinned before this and may have found a node, a segment or
            // a wheel before the caller made it unreachable.
            guard.defer(move || {
                // Ordering: Release, pairs with `has_passed`: the readers' accesses come before.
                passed.passed.fetch_max(number, Ordering::Release);
            });
            guard.flush();
            Some(Self { graces, number })
        }

        pub(crate) fn has_passed(&self) -> bool {
            // Ordering: Acquire, pairs with the deferred Release. One that began later outlasts the readers of this one too.
            self.graces.passed.load(Ordering::Acquire) >= self.number
        }

        /// Helps the epochs on, which otherwise move only when somebody pins often enough.
        pub(crate) fn help(advancer: &Participant) {
            // It asks for memory where it finds that participants have left.
            if has_memory() {
                advancer.handle().pin().flush();
            }
        }
    }
}

#[cfg(all(shardwheel_loom, not(feature = "loom-epoch")))]
mod imp {
    pub(crate) const IS_STAND_IN: bool = true;

    #[derive(Debug)]
    pub(crate) struct Epochs;

    impl Epochs {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) fn join(&self) -> Option<Participant> {
            Some(Participant)
        }

        pub(crate) fn join_again(&self, _: &mut Participant) -> bool {
            true
        }
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

        pub(crate) fn has_joined(&self) -> bool {
            true
        }
    }

    #[derive(Debug)]
    pub(crate) struct Guard {
        _private: (),
    }

    #[derive(Debug)]
    pub(crate) struct Grace;

    impl Grace {
        pub(crate) fn begin(_: &Participant) -> Option<Self> {
            Some(Self)
        }

        pub(crate) fn has_passed(&self) -> bool {
            true
        }

        pub(crate) fn help(_: &Participant) {}
    }
}

pub(crate) use imp::{Epochs, Grace, Guard, IS_STAND_IN, Participant};

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_grace_period_outlasts_who_was_pinned_before_it() {
        let epochs = Epochs::new();
        let join = || epochs.join().expect("there is memory");
        let (reader, advancer) = (join(), join());
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
            let grace = Grace::begin(&advancer).expect("there is memory");
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
        let join = |epochs: &Epochs| epochs.join().expect("there is memory");
        let (reader, advancer) = (join(&one), join(&other));
        let pinned = reader.pin();
        let grace = Grace::begin(&advancer).expect("there is memory");
        while !grace.has_passed() {
            Grace::help(&advancer);
        }
        drop(pinned);
    }
}

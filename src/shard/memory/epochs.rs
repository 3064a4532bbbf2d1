//! Epoch reclamation: decides when memory that producers may still be reading can be reused.
//!
//! This is the only file that names `crossbeam_epoch`. A producer that reads a node which it does
//! not own (through a key or a hint), or a wheel that may be given back, is *pinned* meanwhile. It
//! needs no pin if it has free nodes of its own in the node's segment, which keep the segment. Only
//! the advancer takes memory away. It makes the memory unreachable first, then starts a [`Grace`]
//! period, and reuses the memory only when that period has passed: every participant that was
//! pinned at its start has unpinned since.
//!
//! Each shard has its own epochs. Each lane is a participant, and so is the advancer. So a pinned
//! participant delays no other shard, a producer that advances the epoch looks only at the few
//! participants of its shard, and a lane reaches its participant in one step. Two producers on two
//! shards share nothing.
//!
//! A grace period is one deferred call that sets a flag, however many nodes, segments and wheels
//! wait for it. The deferred call touches nothing of the shard. So it may run on any thread, at any
//! later time, even after the shard has ended, and the payload type need not be `'static`.
//!
//! crossbeam-epoch ends the process if the system refuses it memory. It requests memory when a
//! participant joins or leaves, when a grace period begins, and when the advancer helps the epochs
//! on after participants have left. Each of these places first checks that as much memory is
//! available ([`has_memory`]), and does without if it is not. Two gaps remain: another thread may
//! take the memory between the check and the request; and a pin, which now and then reclaims what
//! ended participants have left, may request memory without a check.
//!
//! In most loom models a stand-in replaces the epochs: a grace period that has always passed. Nodes
//! are then reused at once, which is harder on the protocol than any real reclaimer. Only memory
//! that goes back to the system is kept until the end, because the model itself would read freed
//! memory.

/// The right to take memory away from producers. A shard has one: its advancer's.
#[derive(Debug)]
pub(crate) struct Reclaimer {
    participant: Participant,
    unlinks: bool,
}

impl Reclaimer {
    /// The advancer as a participant of the epochs.
    #[inline]
    pub(crate) fn participant(&self) -> &Participant {
        &self.participant
    }

    /// Whether it unlinks memory: not after [`split`](Self::split).
    pub(super) fn may_unlink(&self) -> bool {
        self.unlinks
    }

    /// Makes a second reclaimer, for a walk over the nodes that ends the shard. From now on neither
    /// of the two unlinks anything. The second cannot be pinned.
    pub(crate) fn split(&mut self) -> Self {
        self.unlinks = false;
        Self { participant: self.participant.without_membership(), unlinks: false }
    }
}

/// Bytes; more than crossbeam-epoch requests at once.
#[cfg(any(not(shardwheel_loom), shardwheel_loom_epoch))]
const MOST_ASKED_FOR: usize = 4096;

/// Whether the system has memory for crossbeam-epoch's next request.
#[cfg(any(not(shardwheel_loom), shardwheel_loom_epoch))]
fn has_memory() -> bool {
    crate::fallible::has_memory(MOST_ASKED_FOR)
}

#[cfg(any(not(shardwheel_loom), shardwheel_loom_epoch))]
mod imp {
    use std::marker::PhantomData;

    use crossbeam_epoch::{Collector, LocalHandle};

    use super::{Reclaimer, has_memory};
    use crate::sync::plain::{Arc, AtomicBool};
    use crate::sync::{AtomicU64, Ordering};

    /// The number of a grace period.
    pub(crate) type GraceNumber = u64;

    pub(crate) const IS_STAND_IN: bool = false;

    /// The epochs of one shard.
    #[derive(Debug)]
    pub(crate) struct Epochs {
        collector: Collector,
        graces: Arc<Graces>,
        has_reclaimer: AtomicBool,
    }

    /// The grace periods of a shard, numbered in the order in which they begin.
    #[derive(Debug)]
    struct Graces {
        begun: AtomicU64,
        /// The latest grace period that has passed. All that began before it have passed as well.
        passed: AtomicU64,
    }

    impl Epochs {
        pub(crate) fn new() -> Self {
            let graces = Graces { begun: AtomicU64::new(0), passed: AtomicU64::new(0) };
            let has_reclaimer = AtomicBool::new(false);
            Self { collector: Collector::new(), graces: Arc::new(graces), has_reclaimer }
        }

        /// The shard's reclaimer; `None` if there is one already, or there is no memory.
        pub(crate) fn reclaimer(&self) -> Option<Reclaimer> {
            let participant = self.join()?;
            // Ordering: Relaxed, only the number matters.
            let is_first = !self.has_reclaimer.swap(true, Ordering::Relaxed);
            is_first.then_some(Reclaimer { participant, unlinks: true })
        }

        /// Adds a participant, which may read memory that the advancer takes away; `None` if there
        /// is no memory.
        pub(crate) fn join(&self) -> Option<Participant> {
            let mut participant = Participant {
                handle: None,
                graces: Arc::clone(&self.graces),
                #[cfg(miri)]
                collector: self.collector.clone(),
            };
            self.join_again(&mut participant).then_some(participant)
        }

        /// Lets a participant that has left join again; false if there is no memory.
        pub(crate) fn join_again(&self, participant: &mut Participant) -> bool {
            if participant.handle.is_none() && has_memory() {
                participant.handle = Some(self.collector.register());
            }
            participant.handle.is_some()
        }
    }

    /// A participant can be pinned; one thread at a time uses it. A participant that has left is
    /// not pinned until it has joined again.
    #[derive(Debug)]
    pub(crate) struct Participant {
        handle: Option<LocalHandle>,
        graces: Arc<Graces>,
        /// Dropped after the handle. If dropping the handle also drops the collector,
        /// crossbeam-epoch frees memory that its own caller still references (`Local::finalize`),
        /// which Miri reports.
        #[cfg(miri)]
        collector: Collector,
    }

    // SAFETY: a handle is bound to no thread, but must not be shared. Its cells are reached only
    // through the handle and its guards, and the deferred calls in its bag are Send. No guard
    // outlives the call that made it (and no guard is Send). Handing the handle to another thread
    // makes all earlier uses visible to it.
    unsafe impl Send for Participant {}

    impl Drop for Participant {
        /// Leaves the epochs, for which crossbeam-epoch requests memory. If there is none, what
        /// crossbeam-epoch keeps of the participant is never freed.
        fn drop(&mut self) {
            if let Some(handle) = self.handle.take()
                && !has_memory()
            {
                std::mem::forget(handle);
            }
        }
    }

    impl Participant {
        /// Pins the participant. No user code runs while it is pinned.
        #[inline]
        pub(crate) fn pin(&self) -> Guard<'_> {
            Guard { _epoch: self.handle().pin(), participant: PhantomData }
        }

        /// Leaves the epochs: from now on the participant delays no grace period and costs no other
        /// thread anything. The returned participant holds the handle; dropping it ends the
        /// membership.
        pub(crate) fn leave(&mut self) -> Self {
            let mut left = self.without_membership();
            left.handle = self.handle.take();
            left
        }

        /// A participant of the same epochs that has not joined.
        pub(super) fn without_membership(&self) -> Self {
            Self {
                handle: None,
                graces: Arc::clone(&self.graces),
                #[cfg(miri)]
                collector: self.collector.clone(),
            }
        }

        /// The last grace period that has begun.
        pub(in crate::shard::memory) fn last_grace(&self) -> GraceNumber {
            // Ordering: AcqRel, pairs with itself in `Grace::begin`: a period with a later number
            // begins after what the caller has done. A load might return an older number.
            self.graces.begun.fetch_add(0, Ordering::AcqRel)
        }

        pub(crate) fn has_joined(&self) -> bool {
            self.handle.is_some()
        }

        fn handle(&self) -> &LocalHandle {
            self.handle.as_ref().expect("it has joined: the owner of a lane sees to that")
        }
    }

    /// While a guard exists, nothing that its participant can reach is given back.
    #[derive(Debug)]
    pub(crate) struct Guard<'p> {
        _epoch: crossbeam_epoch::Guard,
        /// Meanwhile the participant is not handed to another thread.
        participant: PhantomData<&'p Participant>,
    }

    /// A period after which no participant holds anything that was unreachable at its start.
    #[derive(Debug)]
    pub(crate) struct Grace {
        graces: Arc<Graces>,
        number: u64,
    }

    impl Grace {
        /// Begins a grace period; `None` if there is no memory.
        pub(crate) fn begin(advancer: &Participant) -> Option<Self> {
            if !has_memory() {
                return None;
            }
            let [graces, passed] = [(); 2].map(|()| Arc::clone(&advancer.graces));
            // Ordering: AcqRel, see `last_grace`.
            let number = graces.begun.fetch_add(1, Ordering::AcqRel) + 1;
            let guard = advancer.handle().pin();
            // Protects: every reader that was pinned before this and may have found a node, a
            // segment or a wheel before the caller made it unreachable.
            guard.defer(move || {
                // Ordering: Release, pairs with `has_passed`: the readers' accesses come before.
                passed.passed.fetch_max(number, Ordering::Release);
            });
            guard.flush();
            Some(Self { graces, number })
        }

        pub(crate) fn has_passed(&self) -> bool {
            // Ordering: Acquire, pairs with the deferred Release. A period that began later
            // outlasts the readers of this one too.
            self.graces.passed.load(Ordering::Acquire) >= self.number
        }

        /// Whether this period began after the one with that number.
        pub(crate) fn is_after(&self, number: GraceNumber) -> bool {
            self.number > number
        }

        /// Helps the epochs on. Otherwise they move only when participants pin often enough.
        pub(crate) fn help(advancer: &Participant) {
            // crossbeam-epoch requests memory where it finds that participants have left.
            if has_memory() {
                advancer.handle().pin().flush();
            }
        }
    }
}

#[cfg(all(shardwheel_loom, not(shardwheel_loom_epoch)))]
mod imp {
    use std::marker::PhantomData;

    use super::Reclaimer;

    pub(crate) const IS_STAND_IN: bool = true;

    pub(crate) type GraceNumber = ();

    #[derive(Debug)]
    pub(crate) struct Epochs;

    impl Epochs {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) fn reclaimer(&self) -> Option<Reclaimer> {
            Some(Reclaimer { participant: Participant, unlinks: true })
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
        pub(crate) fn pin(&self) -> Guard<'_> {
            Guard(PhantomData)
        }

        pub(crate) fn leave(&mut self) -> Self {
            Self
        }

        pub(super) fn without_membership(&self) -> Self {
            Self
        }

        pub(in crate::shard::memory) fn last_grace(&self) -> GraceNumber {}

        pub(crate) fn has_joined(&self) -> bool {
            true
        }
    }

    #[derive(Debug)]
    pub(crate) struct Guard<'p>(PhantomData<&'p Participant>);

    #[derive(Debug)]
    pub(crate) struct Grace;

    impl Grace {
        pub(crate) fn begin(_: &Participant) -> Option<Self> {
            Some(Self)
        }

        pub(crate) fn has_passed(&self) -> bool {
            true
        }

        pub(crate) fn is_after(&self, (): GraceNumber) -> bool {
            true
        }

        pub(crate) fn help(_: &Participant) {}
    }
}

pub(crate) use imp::{Epochs, Grace, GraceNumber, Guard, IS_STAND_IN, Participant};

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

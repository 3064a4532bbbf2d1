//! The waker of a shard's advancer, which any number of producers can call at once.
//!
//! With `AtomicWaker`, a producer takes the waker out in order to wake it; a producer that is
//! stopped in between would keep all others from waking the advancer. Here the waker stays in
//! place: each producer takes a handle of its own and wakes through that.
//!
//! # When a producer wakes the advancer
//!
//! Each answer of `next_expiration`, and each registration, begins a *sleep*, which has a number.
//! `woken` is the number of the last sleep that has had a *completed* wake: the waker's `wake` has
//! returned. A producer whose timer is due before the sleep ends (see
//! [`machine`](crate::shard::machine)), or that asks for a sweep, wakes the
//! advancer unless `woken` shows that this sleep has had a completed wake. So a producer that is
//! stopped before its wake, or within the user's waker, keeps no other producer from waking. One
//! completed wake is enough for all: the advancer looks at everything before it sleeps again.
//!
//! The two outcomes for a producer that has seen sleep `n`:
//!
//! - `woken` is below `n`: the producer takes a handle to the waker. It has acquired the number, so
//!   it finds the waker that was registered before the sleep began, or a later one. It wakes, and
//!   then raises `woken` to `n`. If the advancer has gone on meanwhile, this wake is one too many,
//!   and sleep `n` is past: raising `woken` to `n` says nothing about later sleeps.
//! - `woken` is `n` or more: a wake that came after the beginning of sleep `n` has returned. So
//!   before the advancer sleeps again it begins a later sleep, passes a fence and looks. The
//!   producer has not seen that later sleep. So its own fence came before that fence, and the look
//!   finds its timer.
//!
//! # Who runs the waker's code
//!
//! Cloning, waking and dropping a waker is user code. None of it runs while a lane is entered or an
//! epoch is pinned. A panic in a wake or a drop is caught here: the producer's own call is over by
//! then, and its result is not lost. A panic in a clone reaches the caller of
//! [`WakerOwner::register`], and the former waker stays.
//!
//! | step | by | what |
//! |---|---|---|
//! | [`AdvancerWaker::pending_wake`] | a producer | pinned: loads the pointer, adds a handle; then unpins |
//! | [`PendingWake::wake`] | that producer, out of its lane | wakes, raises `woken`, drops the handle |
//! | [`WakerOwner::register`] | the advancer | clones, swaps the pointer, drops the former when no producer can be reading it |

use std::cell::Cell;
use std::ptr::null;
use std::sync::Arc;
use std::task::Waker;

use crate::shard::memory::epochs::{Participant, Reclaimer};
use crate::shard::memory::table::{Keep, Retired, Table};
use crate::sync::{AtomicU64, Ordering, thread_local};
use crate::unwind::{DropQuietly, quietly};

/// How often the advancer helps the epochs on before it leaves a replaced waker for later: a
/// participant that is not pinned delays a deferred call by three of these at most.
const ATTEMPTS: usize = 4;

pub(crate) struct AdvancerWaker {
    /// One slot, written by the advancer.
    waker: Table<DropQuietly<Arc<Waker>>, 1>,
    /// The number of the last sleep. Written by the advancer.
    sleep: AtomicU64,
    /// The last sleep that has had a completed wake. Raised by producers, and by the advancer for
    /// its own wake.
    woken: AtomicU64,
}

/// A wake that the caller must do.
#[must_use = "the advancer sleeps on until it is woken"]
pub(crate) struct PendingWake<'b> {
    advancer_waker: &'b AdvancerWaker,
    sleep: u64,
    waker: DropQuietly<Arc<Waker>>,
}

/// The advancer's side of its shard's waker.
pub(crate) struct WakerOwner {
    current: Option<DropQuietly<Arc<Waker>>>,
    replaced: Retired<DropQuietly<Arc<Waker>>>,
}

impl AdvancerWaker {
    /// `None` if there is no memory.
    pub(crate) fn new() -> Option<Self> {
        Some(Self { waker: Table::new()?, sleep: AtomicU64::new(0), woken: AtomicU64::new(0) })
    }

    /// Begins a sleep; for the advancer, after it has registered its waker.
    pub(crate) fn begin_sleep(&self) {
        // Ordering: Relaxed, only the advancer writes it.
        let last = self.sleep.load(Ordering::Relaxed);
        // Ordering: Release, pairs with `pending_wake`: a producer that sees the number finds the
        // waker.
        self.sleep.store(last + 1, Ordering::Release);
    }

    /// The wake that a producer must do; `None` if this sleep has had a completed wake, or no waker
    /// is registered.
    #[cold]
    pub(crate) fn pending_wake(&self, who: &Participant) -> Option<PendingWake<'_>> {
        // Ordering: Acquire, pairs with `begin_sleep`.
        let sleep = self.sleep.load(Ordering::Acquire);
        // Ordering: Relaxed, the fences of the caller and of the advancer's next look order what
        // matters.
        if self.woken.load(Ordering::Relaxed) >= sleep {
            return None;
        }
        // Protects: the waker, which the advancer may replace.
        let pinned = who.pin();
        let waker = self.waker.get(0, Keep::pinned(&pinned)).cloned()?;
        drop(pinned);
        Some(PendingWake { advancer_waker: self, sleep, waker })
    }

    /// Notes that a wake for this sleep is complete.
    fn note_woken(&self, sleep: u64) {
        // Ordering: Relaxed, see `pending_wake`.
        self.woken.fetch_max(sleep, Ordering::Relaxed);
    }
}

impl PendingWake<'_> {
    /// Wakes the advancer. This runs user code: the caller has left its lane and is not pinned.
    ///
    /// If that code schedules on the same shard, the call in it does not wake the advancer again:
    /// it would call the waker within the waker, without end. It leaves that to this call. Returns
    /// true if it did: the advancer may have gone to sleep anew since then, so the caller checks
    /// again whether a wake is due.
    pub(crate) fn wake(self) -> bool {
        let within = WAKER_CALL.get();
        // SAFETY: null, or a call that the thread is in.
        if unsafe { WakerCall::note_wake_within(within, self.advancer_waker) } {
            return false;
        }
        let call = WakerCall { of: self.advancer_waker, is_due_again: Cell::new(false), within };
        // The threads of a model share what belongs to a thread; their wakers schedule nothing.
        WAKER_CALL.set(if cfg!(shardwheel_loom) { null() } else { &call });
        let has_returned = quietly(|| self.waker.wake_by_ref());
        WAKER_CALL.set(within);
        if has_returned {
            self.advancer_waker.note_woken(self.sleep);
        }
        has_returned && call.is_due_again.get()
    }
}

impl WakerOwner {
    pub(crate) fn new(advancer_waker: &AdvancerWaker) -> Self {
        Self { current: None, replaced: Retired::of(&advancer_waker.waker) }
    }

    /// Registers the waker to be woken from now on.
    pub(crate) fn register(
        &mut self,
        advancer_waker: &AdvancerWaker,
        waker: &Waker,
        reclaimer: &mut Reclaimer,
    ) {
        if !self.current.as_ref().is_some_and(|current| current.will_wake(waker)) {
            // First, because it may panic: the former waker then stays.
            let handle = DropQuietly::new(Arc::new(waker.clone()));
            self.current = Some(handle.clone());
            advancer_waker.waker.replace(0, Some(Box::new(handle)), &mut self.replaced, reclaimer);
        }
        advancer_waker.begin_sleep();
        self.drop_replaced(reclaimer);
    }

    /// Wakes the advancer's own waker.
    pub(crate) fn wake(&self, advancer_waker: &AdvancerWaker) {
        if let Some(waker) = &self.current
            && quietly(|| waker.wake_by_ref())
        {
            // Ordering: Relaxed, only the advancer writes it, and this is the advancer.
            advancer_waker.note_woken(advancer_waker.sleep.load(Ordering::Relaxed));
        }
    }

    /// Takes the waker out; for the advancer's end.
    pub(crate) fn end(&mut self, advancer_waker: &AdvancerWaker, reclaimer: &mut Reclaimer) {
        advancer_waker.waker.replace(0, None, &mut self.replaced, reclaimer);
        self.current = None;
        self.drop_replaced(reclaimer);
    }

    /// Drops the replaced wakers that no producer can be taking a handle to. The others go later,
    /// at the latest with the shard.
    fn drop_replaced(&mut self, reclaimer: &Reclaimer) {
        (0..ATTEMPTS).for_each(|_| drop(self.replaced.take(reclaimer)));
    }
}

/// A call of a waker that the thread is in. A waker may schedule on another shard, whose waker
/// schedules on a third, and so on.
struct WakerCall {
    of: *const AdvancerWaker,
    /// Whether a call within this one has left a wake to it.
    is_due_again: Cell<bool>,
    /// The call that this one is within, or null.
    within: *const Self,
}

thread_local! {
    /// The innermost call that the thread is in, or null. The call is on the thread's stack.
    static WAKER_CALL: Cell<*const WakerCall> = const { Cell::new(null()) };
}

impl WakerCall {
    /// Leaves a wake to the call of the same waker that `call` is, or is within; false if there is
    /// none.
    ///
    /// # Safety
    ///
    /// `call` is null, or a call that the thread is in.
    unsafe fn note_wake_within(mut call: *const Self, of: *const AdvancerWaker) -> bool {
        // SAFETY: by the caller's promise, and a call ends before the one that it is within.
        while let Some(outer) = unsafe { call.as_ref() } {
            if outer.of == of {
                outer.is_due_again.set(true);
                return true;
            }
            call = outer.within;
        }
        false
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;
    use crate::shard::memory::epochs::Epochs;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            // Ordering: Relaxed, there is one thread.
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counted() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (Arc::clone(&count), Waker::from(count))
    }

    /// A waker that has been registered, and who may read it.
    struct Scene {
        advancer_waker: AdvancerWaker,
        owner: WakerOwner,
        advancer: Reclaimer,
        producer: Participant,
        /// What the waker counts in; the scene has one reference.
        first: Arc<Count>,
    }

    fn registered() -> Scene {
        let (epochs, mut advancer) = Epochs::with_reclaimer();
        let advancer_waker = AdvancerWaker::new().expect("there is memory");
        let mut owner = WakerOwner::new(&advancer_waker);
        let producer = epochs.join();
        let (first, waker) = counted();
        owner.register(&advancer_waker, &waker, &mut advancer);
        Scene { advancer_waker, owner, advancer, producer, first }
    }

    #[test]
    fn a_waker_is_dropped_when_it_is_replaced_and_at_the_end() {
        let Scene { advancer_waker, mut owner, mut advancer, producer, first } = registered();
        assert_eq!(Arc::strong_count(&first), 2);
        let pending = advancer_waker.pending_wake(&producer).expect("a wake is owed");
        let (second, waker) = counted();
        owner.register(&advancer_waker, &waker, &mut advancer);
        drop(waker);
        pending.wake();
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2));
        owner.end(&advancer_waker, &mut advancer);
        assert_eq!(Arc::strong_count(&second), 1);
        advancer_waker.begin_sleep();
        assert!(advancer_waker.pending_wake(&producer).is_none());
    }

    #[test]
    fn a_waker_that_is_being_picked_up_is_kept() {
        let Scene { advancer_waker, mut owner, mut advancer, producer, first } = registered();
        let pinned = producer.pin();
        owner.register(&advancer_waker, &counted().1, &mut advancer);
        owner.end(&advancer_waker, &mut advancer);
        assert_eq!(Arc::strong_count(&first), 2, "a pinned producer may have its pointer");
        drop(pinned);
        drop((advancer_waker, owner, advancer, producer));
        assert_eq!(Arc::strong_count(&first), 1);
    }
}

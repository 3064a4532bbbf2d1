//! The bell: the waker of a shard's advancer, which any number of producers can ring at once.
//!
//! Had one producer to take the waker out in order to wake it, as with `AtomicWaker`, then a producer that is stopped in
//! between would keep all others from waking the advancer. So the waker stays where it is. Each ringer picks up a
//! handle of its own and calls it.
//!
//! # When a producer rings
//!
//! Each answer of `next_expiration`, and each registration, begins a *sleep*, which has a number. `woken` is the number of the last sleep that
//! has been rung for *to the end*: the waker's `wake` has returned. A producer whose timer is due before the sleep ends
//! (see [`protocol`](super::protocol)), or that asks for a sweep, rings unless `woken` shows that this sleep has been rung for.
//! So a producer that is stopped before its ring, or within the user's waker, keeps nobody else from ringing. One ring
//! that has been completed is enough for all: the advancer looks at everything before it sleeps again.
//!
//! The two outcomes for a producer and a sleep `n` that it has seen:
//!
//! - `woken` is below `n`: it picks the waker up. It has acquired the number, so it finds the waker that was registered
//!   before the sleep began, or a later one. It wakes, and then raises `woken` to `n`. Where the advancer has gone on
//!   meanwhile, the ring is one too many, and `n` is of the past: raising `woken` to it says nothing about later sleeps.
//! - `woken` is `n` or more: a wake after the beginning of sleep `n` has returned. The producer's fence came before that
//!   of the advancer's next look, or the producer had not seen sleep `n`; so that look finds its timer.
//!
//! # Whose the waker is
//!
//! Cloning, waking and dropping a waker is user code. None of it runs while a lane is entered or an epoch is pinned, and a
//! panic in it ends here: the producer's own call is over by then, and its result is not lost.
//!
//! | step | by | what |
//! |---|---|---|
//! | [`AdvancerWaker::pending_wake`] | a producer | pinned: loads the pointer, counts one more handle; then unpinned |
//! | [`PendingWake::wake`] | that producer, out of its lane | wakes, raises `woken`, drops the handle |
//! | [`WakerOwner::register`] | the advancer | clones the new waker first, swaps the pointer, drops the former a grace period later |

use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use crate::fallible::{Counted, Handle};
use crate::shard::memory::epochs::{Grace, IS_STAND_IN, Participant};
use crate::sync::{AtomicPtr, AtomicU64, Ordering};
use crate::unwind::quietly;

/// How often the advancer helps the epochs on, before it leaves a replaced waker for later.
const ATTEMPTS: usize = 4;

pub(crate) struct AdvancerWaker {
    /// Null, or a handle made by `Handle::into_raw`. Written by the advancer.
    waker: AtomicPtr<Counted<Waker>>,
    /// The number of the last sleep. Written by the advancer.
    sleep: AtomicU64,
    /// The last sleep for which a ring has been completed. Raised by producers.
    woken: AtomicU64,
    /// What the advancer could not drop when it ended, as a producer was pinned.
    remains: Mutex<Vec<Handle<Waker>>>,
}

/// A ring that is owed.
#[must_use = "the advancer sleeps on until it is rung"]
pub(crate) struct PendingWake<'b> {
    advancer_waker: &'b AdvancerWaker,
    sleep: u64,
    waker: Handle<Waker>,
}

/// The advancer's side of its shard's bell.
#[derive(Default)]
pub(in crate::shard) struct WakerOwner {
    current: Option<Handle<Waker>>,
    /// Out of reach, and a producer may be picking one of them up.
    replaced: Vec<Handle<Waker>>,
}

impl AdvancerWaker {
    pub(in crate::shard) fn new() -> Self {
        Self {
            waker: AtomicPtr::new(std::ptr::null_mut()),
            sleep: AtomicU64::new(0),
            woken: AtomicU64::new(0),
            remains: Mutex::new(Vec::new()),
        }
    }

    /// Begins a sleep; for the advancer, after it has registered its waker.
    pub(in crate::shard) fn begin_sleep(&self) {
        // Ordering: Relaxed, the advancer alone writes it.
        let last = self.sleep.load(Ordering::Relaxed);
        // Ordering: Release, pairs with `pending_wake`: a producer that sees the number finds the waker.
        self.sleep.store(last + 1, Ordering::Release);
    }

    /// The ring that a producer owes, if this sleep has not been rung for.
    #[cold]
    pub(crate) fn pending_wake(&self, who: &Participant) -> Option<PendingWake<'_>> {
        // Ordering: Acquire, pairs with `begin_sleep`.
        let sleep = self.sleep.load(Ordering::Acquire);
        // Ordering: Relaxed, the fences of the caller and of the advancer's next look order what counts.
        if self.woken.load(Ordering::Relaxed) >= sleep {
            return None;
        }
        self.pick_up(who).map(|waker| PendingWake { advancer_waker: self, sleep, waker })
    }

    fn pick_up(&self, who: &Participant) -> Option<Handle<Waker>> {
        // Protects: the waker, which the advancer may replace.
        let _pinned = who.pin();
        // Ordering: Acquire, pairs with `install`.
        let waker = NonNull::new(self.waker.load(Ordering::Acquire))?;
        // SAFETY: it came from `into_raw`, and that handle is kept until all that are pinned now have gone on.
        Some(unsafe { Handle::further(waker) })
    }

    /// Puts a waker in the place of the former, which is returned: it is kept until a grace period has passed.
    fn install(&self, waker: Option<Handle<Waker>>) -> Option<Handle<Waker>> {
        let raw = waker.map_or(std::ptr::null_mut(), Handle::into_raw);
        // Ordering: Release, pairs with `pick_up`. The former is the advancer's own.
        let former = NonNull::new(self.waker.swap(raw, Ordering::Release))?;
        // SAFETY: it came from `into_raw` above, and is taken out once.
        Some(unsafe { Handle::from_raw(former) })
    }

    /// Notes that sleep has been rung for.
    fn note_woken(&self, sleep: u64) {
        // Ordering: Relaxed, see `pending_wake`.
        self.woken.fetch_max(sleep, Ordering::Relaxed);
    }
}

impl Drop for AdvancerWaker {
    fn drop(&mut self) {
        let last = self.install(None);
        let remains = self.remains.get_mut().unwrap_or_else(PoisonError::into_inner);
        remains.drain(..).chain(last).for_each(drop_waker);
    }
}

impl PendingWake<'_> {
    /// Wakes the advancer. User code: the caller has left its lane and is not pinned.
    pub(crate) fn wake(self) {
        if quietly(|| self.waker.wake_by_ref()) {
            self.advancer_waker.note_woken(self.sleep);
        }
        drop_waker(self.waker);
    }
}

impl WakerOwner {
    /// Has `waker` be woken from now on. Where there is no memory to keep it in, it is woken at once: who wakes for nothing
    /// registers again, and who slept on would be deaf.
    pub(in crate::shard) fn register(
        &mut self,
        advancer_waker: &AdvancerWaker,
        waker: &Waker,
        who: &Participant,
    ) {
        if !self.current.as_ref().is_some_and(|current| current.will_wake(waker)) {
            // First of all, as it may panic: the former stays then.
            let new = waker.clone();
            match self.replaced.try_reserve(1).ok().and_then(|()| Handle::new(new)) {
                Some(handle) => self.replace(advancer_waker, Some(handle)),
                None => {
                    quietly(|| waker.wake_by_ref());
                }
            }
        }
        advancer_waker.begin_sleep();
        self.let_go(who);
    }

    /// Wakes the advancer's own waker.
    pub(in crate::shard) fn wake(&self, advancer_waker: &AdvancerWaker) {
        if let Some(waker) = &self.current
            && quietly(|| waker.wake_by_ref())
        {
            // Ordering: Relaxed, the advancer alone writes it, and is here.
            advancer_waker.note_woken(advancer_waker.sleep.load(Ordering::Relaxed));
        }
    }

    /// Takes the waker out of reach; for the advancer's end.
    pub(in crate::shard) fn end(&mut self, advancer_waker: &AdvancerWaker, who: &Participant) {
        if self.replaced.try_reserve(1).is_ok() {
            self.replace(advancer_waker, None);
        }
        self.let_go(who);
        // Else the last one stays with the bell, and goes with it.
        self.current = None;
        let mut remains = advancer_waker.remains.lock().unwrap_or_else(PoisonError::into_inner);
        *remains = std::mem::take(&mut self.replaced);
    }

    /// Puts a waker in the place of the former, for which there is room among those that have been replaced.
    fn replace(&mut self, advancer_waker: &AdvancerWaker, waker: Option<Handle<Waker>>) {
        let former = std::mem::replace(&mut self.current, waker.clone());
        drop(former);
        self.replaced.extend(advancer_waker.install(waker));
    }

    /// Drops what has been replaced, unless a producer may be picking it up at the moment.
    fn let_go(&mut self, who: &Participant) {
        if self.replaced.is_empty() {
            return;
        }
        let Some(grace) = Grace::begin(who) else { return };
        (0..ATTEMPTS).take_while(|_| !grace.has_passed()).for_each(|_| Grace::help(who));
        // In a model without epochs nobody says when a producer has gone on.
        if grace.has_passed() && !IS_STAND_IN {
            std::mem::take(&mut self.replaced).into_iter().for_each(drop_waker);
        }
    }
}

fn drop_waker(waker: Handle<Waker>) {
    quietly(|| drop(waker));
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

    #[test]
    fn a_sleep_is_rung_for_until_a_ring_is_complete() {
        let (epochs, advancer_waker, mut owner) =
            (Epochs::new(), AdvancerWaker::new(), WakerOwner::default());
        let [advancer, one, other] = [(); 3].map(|()| epochs.join().expect("there is memory"));
        let (count, waker) = counted();
        assert!(advancer_waker.pending_wake(&one).is_none(), "nobody sleeps");
        owner.register(&advancer_waker, &waker, &advancer);
        // The first is stopped with its call in hand: the second rings all the same.
        let stopped = advancer_waker.pending_wake(&one).expect("it is to be rung for");
        advancer_waker.pending_wake(&other).expect("it has not been rung for").wake();
        assert!(advancer_waker.pending_wake(&other).is_none());
        advancer_waker.begin_sleep();
        stopped.wake();
        assert!(advancer_waker.pending_wake(&other).is_some(), "that ring was for the sleep before");
        // Ordering: Relaxed, there is one thread.
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_waker_is_dropped_when_it_is_replaced_and_at_the_end() {
        let (epochs, advancer_waker, mut owner) =
            (Epochs::new(), AdvancerWaker::new(), WakerOwner::default());
        let [advancer, producer] = [(); 2].map(|()| epochs.join().expect("there is memory"));
        let (first, waker) = counted();
        owner.register(&advancer_waker, &waker, &advancer);
        drop(waker);
        assert_eq!(Arc::strong_count(&first), 2);
        let pending = advancer_waker.pending_wake(&producer).expect("it is to be rung for");
        let (second, waker) = counted();
        owner.register(&advancer_waker, &waker, &advancer);
        drop(waker);
        pending.wake();
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2));
        owner.end(&advancer_waker, &advancer);
        assert_eq!(Arc::strong_count(&second), 1);
        advancer_waker.begin_sleep();
        assert!(advancer_waker.pending_wake(&producer).is_none());
    }

    #[test]
    fn a_waker_that_is_being_picked_up_is_kept() {
        let (epochs, advancer_waker, mut owner) =
            (Epochs::new(), AdvancerWaker::new(), WakerOwner::default());
        let [advancer, producer] = [(); 2].map(|()| epochs.join().expect("there is memory"));
        let (first, waker) = counted();
        owner.register(&advancer_waker, &waker, &advancer);
        drop(waker);
        let pinned = producer.pin();
        owner.register(&advancer_waker, &counted().1, &advancer);
        owner.end(&advancer_waker, &advancer);
        assert_eq!(Arc::strong_count(&first), 2, "a pinned producer may have its pointer");
        drop((pinned, advancer_waker));
        assert_eq!(Arc::strong_count(&first), 1);
    }
}

//! Whether a lane has an owner, and whether the owner is in a call.
//!
//! | from | to | by |
//! |---|---|---|
//! | [`FREE`] | [`OWNED`] | a thread that needs a lane, or the advancer that tidies it |
//! | [`OWNED`] | [`FREE`] | a borrower after its call, a thread that cannot join the epochs, the advancer |
//! | [`OWNED`] | [`LEAVING`] | the owner, which ends; it then empties `local` |
//! | [`LEAVING`] | [`FREE`] | that owner |
//! | [`OWNED`] | [`ENDED`] | the shard's end, which then empties `local`: no call is under way |
//!
//! # A call against a revocation
//!
//! The owner sets `busy`, then reads `revoked`. The advancer sets `revoked`, has every thread pass
//! a barrier (`membarrier`), then reads `busy`. So the owner needs no barrier of its own: either it
//! sees that the lane is revoked, or the advancer sees that it is busy.

use std::sync::atomic::compiler_fence;

use crate::sync::plain::{AtomicBool, AtomicU32};
use crate::sync::{Ordering, Token, thread_token};

const FREE: u32 = 0;
const OWNED: u32 = 1;
const LEAVING: u32 = 2;
const ENDED: u32 = 3;

pub(super) struct LaneState {
    state: AtomicU32,
    maker: Token,
    /// Whether the owner is in a call that uses `local`. Written by the owner. Used in lanes that
    /// threads own.
    busy: AtomicBool,
    /// Whether the advancer is about to take the nodes that the lane keeps. The owner's call then
    /// uses another lane. Written by the advancer.
    revoked: AtomicBool,
}

impl LaneState {
    /// The state of a new lane, which its maker owns.
    pub(super) fn owned() -> Self {
        Self {
            state: AtomicU32::new(OWNED),
            maker: thread_token(),
            busy: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
        }
    }

    /// Takes ownership; false if the lane has an owner.
    pub(super) fn try_own(&self) -> bool {
        // Ordering: Relaxed for the load, which keeps the search from writing to lanes that are
        // owned.
        self.maker == thread_token() && self.state.load(Ordering::Relaxed) == FREE && self.pass(FREE, OWNED)
    }

    /// Begins to leave; for an owner that ends. False if it is in a call that never ends, or the
    /// shard has ended.
    pub(super) fn begin_leaving(&self) -> bool {
        // Ordering: Relaxed, only the owner writes it.
        !self.busy.load(Ordering::Relaxed) && self.pass(OWNED, LEAVING)
    }

    /// Leaves the lane without an owner, after `begin_leaving`.
    pub(super) fn finish_leaving(&self) {
        self.vacate(LEAVING);
    }

    /// Takes the lane from its owner for good; for the shard's end. False if it has no owner, or
    /// the owner is leaving it.
    pub(super) fn end(&self) -> bool {
        self.pass(OWNED, ENDED)
    }

    /// Leaves the lane without an owner, unless the shard has ended; for the owner.
    pub(super) fn release(&self) {
        self.vacate(OWNED);
    }

    /// Changes the state from `from` to `to`; false if the lane is in another state.
    fn pass(&self, from: u32, to: u32) -> bool {
        // Ordering: Acquire, pairs with `vacate`: what the former owner left in `local` is visible.
        self.state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn vacate(&self, from: u32) {
        // Ordering: Release, pairs with `pass`. If it fails, the shard has ended, and nothing is
        // read.
        let _ = self.state.compare_exchange(from, FREE, Ordering::Release, Ordering::Relaxed);
    }

    /// Begins a call of the owner; false if the owner is already in a call, or the advancer is
    /// revoking the lane.
    #[inline]
    pub(super) fn begin_call(&self) -> bool {
        // Ordering: Relaxed, only the owner writes it.
        if self.busy.load(Ordering::Relaxed) {
            return false;
        }
        // Ordering: Relaxed. The compiler fence orders it for the compiler, the advancer's
        // `membarrier` for the processor.
        self.busy.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // Ordering: Acquire, pairs with the Release in `restore`: the advancer has finished with
        // `local`.
        if self.revoked.load(Ordering::Acquire) {
            // Ordering: Release, although this call has not used `local`. An advancer that loads this
            // value has to see what the call before it has left there, as in `end_call`.
            self.busy.store(false, Ordering::Release);
            return false;
        }
        true
    }

    #[inline]
    pub(super) fn end_call(&self) {
        // Ordering: Release, pairs with `is_revoked`: what the call has left in `local` is visible.
        self.busy.store(false, Ordering::Release);
    }

    /// Keeps calls from beginning, once each thread has passed a barrier; for the advancer.
    pub(super) fn revoke(&self) {
        // Ordering: Relaxed, the barrier orders it.
        self.revoked.store(true, Ordering::Relaxed);
    }

    /// Whether no call is under way and none begins until `restore`; for the advancer, after the
    /// barrier. False for a lane that was added after `revoke`.
    pub(super) fn is_revoked(&self) -> bool {
        // Ordering: Relaxed, only the advancer writes it.
        let is_revoked = self.revoked.load(Ordering::Relaxed);
        // Ordering: Acquire, pairs with the end of a call, and with a `begin_call` in vain: what the
        // last call has left in `local` is visible.
        is_revoked && !self.busy.load(Ordering::Acquire)
    }

    /// Lets calls begin again.
    pub(super) fn restore(&self) {
        // Ordering: Release, pairs with `begin_call`: the advancer has finished with `local`.
        self.revoked.store(false, Ordering::Release);
    }
}

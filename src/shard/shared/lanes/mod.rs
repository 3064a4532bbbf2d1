//! A lane: what one producer has to itself. These are its counters, its participant in the epochs,
//! its free nodes, the node that it holds, and its hints.
//!
//! A producer must not share with another what it writes at each call. A shard keeps lists of lanes
//! (see [`lane`]), and a lane has one owner at a time.
//!
//! - Up to [`KEEPERS`] threads own a lane each until they end, and find it through a thread local
//!   (see [`cache`]). A lane outlives its owner, and another thread takes it over.
//! - In all other cases a call is lent a *common* lane: for a thread beyond that number; for a
//!   thread that is already in a call (a destructor that the call runs) or is ending; for a thread
//!   whose lane the advancer is revoking; and for a thread that has no memory for a lane of its
//!   own. There are as many of these lanes as such calls were ever under way at once, not as many
//!   as threads.
//!
//! So what lanes keep does not grow with the number of threads. With thousands of threads, each
//! call pays for that with one more compare-and-swap.
//!
//! Invariant: only the owner of a lane uses `local` and writes `tally`. It uses the nodes kept in
//! `local` only within a call, because the advancer may take those from an owner that is in no call
//! (see [`Lanes::revoke`]). [`lane`] keeps the part of this that memory safety depends on, and has
//! all unsafe code of the lanes.
//!
//! # A lane without an owner
//!
//! A thread that ends leaves the epochs and frees its hints. Its free nodes and the node that it
//! holds stay in the lane for the advancer, because only the advancer frees a dead node. The thread
//! wakes the advancer. At its next advance the advancer takes such a lane for a moment, gives the
//! nodes back, and adds the lane's counters to its own sum (see
//! [`lane_totals`](crate::shard::advancer::lane_totals)). From then on the lane costs an advance
//! nothing, and keeps some hundred bytes.
//!
//! A common lane keeps no nodes. The first [`STAYING`] of them stay in the epochs and in the
//! advancer's list, lent or not. The others (*extra* lanes) are tidied like lanes that a thread
//! owned.
//!
//! # Where there is no memory for a lane
//!
//! One common lane is made with the shard. A thread for whose lane the system has no memory is lent
//! that one, so a timer can be cancelled all the same. Two such threads wait for each other's
//! calls; no other thread waits.

mod cache;
mod hints;
mod lane;
mod list;
mod local;
mod state;
mod turnover;

pub(crate) use self::lane::{Entered, Lane, LaneHandle};
pub(crate) use self::list::Lanes;
pub(crate) use self::local::{Local, Nodes};

/// How many of a shard's lanes threads may own. An owner may keep free nodes and a held node from
/// one call to the next.
const KEEPERS: u32 = 64;

/// How many common lanes stay in the epochs and in the advancer's list.
const STAYING: u32 = 8;

/// How many dead nodes a lane's owner leaves before it reports them: by the lane's kind, and for a
/// thread's own lane by its number. Most shards have few producers, and these report seldom.
const fn dead_per_report(kind: Kind, number: u32) -> u32 {
    if cfg!(shardwheel_loom) || crate::config::SMALL {
        return 1;
    }
    match kind {
        Kind::Own if number < 4 => 64,
        Kind::Own if number < 20 => 8,
        Kind::Own => 2,
        Kind::Common => 8,
        Kind::Extra => 1,
    }
}

/// The greatest number of unreported dead nodes in all lanes of a shard together.
pub(crate) const UNREPORTED: u32 = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 512 };

const _: () = {
    let (mut sum, mut number) = (STAYING * (dead_per_report(Kind::Common, 0) - 1), 0);
    // One lane more than `KEEPERS`: a thread may take a lane while the advancer tidies another.
    while number <= KEEPERS {
        sum += dead_per_report(Kind::Own, number) - 1;
        number += 1;
    }
    assert!(sum <= UNREPORTED);
};

/// Who uses a lane, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Owned by a thread, which keeps nodes and hints in it.
    Own,
    /// Lent for a call. It always takes part in the epochs.
    Common,
    /// Lent for a call while all common lanes are taken. It takes part in the epochs until it is
    /// tidied.
    Extra,
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests;

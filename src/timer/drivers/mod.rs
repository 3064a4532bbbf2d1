//! The threads that drive a timer's shards.
//!
//! A timer has as many drivers as shards. By default one driver *holds* all shards: it sleeps until
//! the first of them is due, visits those that are, and sleeps again. The other drivers sleep. So a
//! timer whose work is small wakes one thread a tick, however many shards it has.
//!
//! - *More work.* A driver that is at work for more than half of the time hands half of its shards
//!   to a driver that holds none.
//! - *Less work.* A driver hands its shards back to another one if both together work for at most a
//!   quarter of the time.
//! - *A callback that blocks.* The first driver that holds no shard is the *stand-by*. It looks at
//!   the others when one of them could hold a shard up. It takes all shards of a driver that has
//!   not come back in time, except the one that the driver is at work with. Those that are due
//!   already go to different drivers: so several callbacks that block hold up other shards no
//!   longer than one does.
//!
//! A driver that holds two shards leaves another one without any, so there always is a stand-by
//! where one is needed. See [`Drivers`] for the bound on delays that follows.
//!
//! | file | contents |
//! |---|---|
//! | `board.rs` | What drivers read of each other. How wake-ups are not lost. |
//! | `crew.rs` | The slots of the workers. Hand-overs. |
//! | `rounds.rs` | What a driver does in turn. [`driver_thread`](super::driver_thread) does it. |
//! | `stand_by.rs`, `balance.rs` | When shards change hands. |
//! | `bell.rs`, `parker.rs` | How a driver is woken. |

mod balance;
mod bell;
mod board;
mod crew;
mod parker;
mod rounds;
mod stand_by;

pub(crate) use balance::{APART, Window, balance};
pub(crate) use bell::Bell;
pub(crate) use board::{Board, IDLE, Limits, MAX_DRIVERS};
pub(crate) use crew::Crew;
pub(crate) use parker::Parker;
pub(crate) use rounds::Step;
pub(crate) use stand_by::Watch;

use super::time::Nanos;

/// Which threads drive the shards of a [`Timer`](crate::Timer), for
/// [`TimerBuilder::drivers`](crate::TimerBuilder::drivers).
///
/// A timer has as many threads as shards, but they need not all be awake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Drivers {
    /// One thread drives all shards while that is little work. It hands shards to other threads
    /// when it is busy for more than half of the time, and takes them back when both together are
    /// busy for at most a quarter of it. So the thread that runs a shard's callbacks changes.
    ///
    /// A callback that blocks holds up the other timers of its own shard. It holds up those of
    /// other shards for at most 10 ms, or two ticks if these are longer: another thread then takes
    /// these shards, within the time that the system needs to wake that thread. To notice this
    /// costs one wake-up per 10 ms while timers of several shards fire. The shard whose callback
    /// blocked then has a thread of its own for ten seconds.
    #[default]
    AsNeeded,
    /// Each shard has a thread of its own. A callback never holds up another shard, and each thread
    /// wakes for its own shard's timers only.
    OnePerShard,
}

/// A callback holds up other shards for at most this, or two ticks.
const BOUND: Nanos = 10_000_000;

impl Limits {
    /// The limits for a tick of that length. The stand-by looks at most `slack` late, so that
    /// patience and slack together are no more than the bound.
    pub(crate) fn for_tick(tick: Nanos) -> Self {
        Self { patience: BOUND.saturating_sub(tick).max(tick), slack: tick.min(BOUND / 2) }
    }
}

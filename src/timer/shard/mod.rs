//! A shard with time and callbacks, as all sides share it; and which of them a thread uses.

mod advancer_slot;
mod affinity;
mod counts;
mod executor;
mod handle;
mod placement;
mod run;
mod stats;
mod tag;
mod window;

pub(in crate::timer) use affinity::{cores, pin};
pub use executor::{Executor, Job};
pub(in crate::timer) use handle::Ended;
pub(crate) use handle::{ShardHandle, WatchesEnd};
pub use placement::Placement;
pub(in crate::timer) use placement::{Shards, with_own_shard};
pub use stats::{Figures, Lateness, LatenessBucket, Stats};
pub use tag::set_at;
#[cfg(feature = "introspect")]
pub(in crate::timer) use tag::{NUMBERS, PLACES};
pub use window::WindowEnd;

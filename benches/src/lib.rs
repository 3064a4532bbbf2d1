//! Benchmarks of `shardwheel` beside a binary heap behind a mutex, and beside its peers.
//!
//! The library holds what the criterion benchmarks and the programs `report`, `live`, `peers` and `scale` share: one pair
//! of traits ([`Engine`], [`Producer`]), an adapter for each engine, seeded workloads, and loops that time a whole
//! pass over a workload. The loops check what fires against what the workload put in, so that an engine
//! which loses, doubles, alters or misorders a timer stops the run instead of winning it.
//!
//! Beside these stands what all programs need around their figures: machine, requirements, and [charts](draw_charts).
//!
//! | engine | what it is |
//! |---|---|
//! | [`Wheel`] | one shard of `shardwheel`, with its default configuration |
//! | [`Heap`] | `Mutex<BinaryHeap>` beside a slab, so that a timer can be cancelled in O(1) |
//! | [`LazyHeap`] | the same heap, to be had without the mutex |
//! | [`BareHeap`] | `Mutex<BinaryHeap>` alone: it cannot cancel, and is the faster of the two |
//! | [`Tree`] | `BTreeMap` by deadline and number |
//! | [`DelayQueue`] | that of `tokio-util`, on a paused clock |
//! | [`QuadWheel`], [`WeakQuadWheel`] | those of `hierarchical_hash_wheel_timer`, without cancel and with |
//! | [`RingWheel`], [`HashedWheel`] | those of `wheel_timer` and `timewheel` |
//! | [`FlatWheel`] | a list for each tick, written by hand: the lower bound |
//!
//! The last five rows and [`LazyHeap`] are for one thread; [`Unlocked`] and [`Locked`] make engines of them.

mod affinity;
mod arg_error;
mod backed;
mod bare_heap;
mod charts;
mod checksum;
mod command_line;
mod conditions;
mod engine;
mod heap;
mod machine;
pub mod names;
mod peers;
mod producers;
mod requirement;
mod resident;
mod samples;
mod size;
mod structure;
mod timed;
mod times;
mod wheel;
mod workload;

#[cfg(test)]
mod tests;

pub use affinity::{cores, pin};
pub use arg_error::{ArgError, CHILD};
pub use backed::back_memory;
pub use bare_heap::BareHeap;
pub use charts::draw_charts;
pub use checksum::Checksum;
pub use command_line::{Only, ask_child, keep, parse_rounds, parse_sizes, read_options, set_path};
pub use conditions::Usage;
pub use engine::{Cancel, Engine, Producer};
pub use heap::{Heap, HeapHandle, LazyHeap};
pub use machine::describe as describe_machine;
pub use peers::{DelayQueue, FlatWheel, HashedWheel, QuadWheel, RingWheel, Tree, WeakQuadWheel};
pub use producers::{Layout, race, race_then};
pub use requirement::{Limit, Requirement};
pub use resident::{peak_kib, resident_kib};
pub use samples::Samples;
pub use size::{label, parse_size};
pub use structure::{Locked, Removal, Structure, Unlocked};
pub use timed::{
    PAIRS_PER_ADVANCE, advance_by_ticks, cancel_all, drain, extend_all, pairs, pairs_advanced, schedule_all,
    schedule_keeping,
};
pub use timed::{churn::Churn, steady};
pub use times::Times;
pub use wheel::Wheel;
pub use workload::{Spread, THIRTY_MINUTES, Workload, later};

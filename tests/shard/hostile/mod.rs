//! User code that stalls or panics where a shard calls it.

mod batches;
mod payloads;
mod wakers;

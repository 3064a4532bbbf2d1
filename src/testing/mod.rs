//! Access for models and fuzzers. Nothing here is part of the API: it changes without notice.

#[cfg(any(shardwheel_loom, shardwheel_model))]
pub mod model;
#[cfg(fuzzing)]
pub mod slots;

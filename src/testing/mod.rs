//! Access for models and fuzzers. Nothing here is part of the API: it changes without notice.

#[cfg(feature = "model")]
pub mod model;
#[cfg(fuzzing)]
pub mod slots;

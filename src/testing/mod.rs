//! Doors for models and fuzzers. None of this is part of the API: it changes without notice.

#[cfg(feature = "model")]
pub mod model;
#[cfg(fuzzing)]
pub mod slots;

//! Numbers that differ under fuzzers, Miri and loom. Each stands where it is used.
//!
//! Fuzzers reach every case in a few operations, and Miri, which takes minutes over full sizes,
//! finishes in time. In models each further step multiplies the interleavings.

/// Chooses between the usual size, that of fuzzers, Miri and Shuttle, and that of loom's models.
pub(crate) const fn size<S: Copy>(usual: S, fuzzed: S, modelled: S) -> S {
    if cfg!(shardwheel_loom) {
        modelled
    } else if cfg!(any(fuzzing, miri, shardwheel_shuttle)) {
        fuzzed
    } else {
        usual
    }
}

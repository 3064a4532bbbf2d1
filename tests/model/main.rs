//! Random operations compared with a slow model; the shard's invariants are checked after each.

mod bytes;
mod interpreter;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_shard_does_what_a_map_does(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        interpreter::play(&bytes, 1);
    }

    /// The same with far more timers than operations that end them.
    #[test]
    fn a_full_shard_does_what_a_map_does(bytes in prop::collection::vec(4..=255_u8, 0..800)) {
        interpreter::play(&bytes, 1);
    }
}

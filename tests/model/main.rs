//! Random operations compared with a slow model; the shard's invariants are checked after each.
//!
//! ```text
//! cargo test --test model                                      256 cases of each
//! PROPTEST_CASES=10000 cargo test --test model
//! SHARDWHEEL_MODEL_LOG=yes cargo test --test model -- --nocapture        prints each operation
//! ```

mod bytes;
#[path = "../support/ledger.rs"]
#[allow(dead_code, reason = "each target uses a part of it")]
mod ledger;
mod shard;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_shard_does_what_a_map_does(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        shard::play(&bytes, 1);
    }

    /// The same with far more timers than operations that end them.
    #[test]
    fn a_full_shard_does_what_a_map_does(bytes in prop::collection::vec(4..=255_u8, 0..800)) {
        shard::play(&bytes, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Thousands of operations, and checks of the invariants now and then.
    #[test]
    fn a_shard_does_what_a_map_does_for_long(bytes in prop::collection::vec(any::<u8>(), 10_000..20_000)) {
        shard::play(&bytes, 500);
    }
}

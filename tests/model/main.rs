//! Random operations compared with a slow model; the shard's invariants are checked after each. The
//! operations and the model are those of the simulation of shards, and bytes choose.

#![allow(dead_code, reason = "seeds are for `tests/simulation`")]

mod bytes;
#[path = "../simulation/draw.rs"]
mod draw;
#[path = "../support/ledger.rs"]
mod ledger;
#[path = "../simulation/log.rs"]
mod log;
#[path = "../simulation/shards.rs"]
mod shards;

mod support {
    pub(crate) use crate::ledger;
}

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_shard_does_what_a_map_does(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        shards::play_bytes(&bytes, 1);
    }

    /// The same with far more timers than operations that end them.
    #[test]
    fn a_full_shard_does_what_a_map_does(bytes in prop::collection::vec(4..=255_u8, 0..800)) {
        shards::play_bytes(&bytes, 1);
    }
}

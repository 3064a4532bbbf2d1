//! Operations on a shard against a slow model: the simulation of shards, driven by coverage instead
//! of chance. After each operation the shard is compared with the model. To check the invariants
//! takes a walk over everything: a short input checks them after each operation, a longer input
//! less often.

#![no_main]
#![allow(dead_code, reason = "seeds are for `tests/simulation`")]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/model/bytes.rs"]
mod bytes;
#[path = "../../tests/simulation/draw.rs"]
mod draw;
#[path = "../../tests/support/ledger.rs"]
mod ledger;
#[path = "../../tests/simulation/log.rs"]
mod log;
#[path = "../../tests/simulation/shards.rs"]
mod shards;

mod support {
    pub(crate) use crate::ledger;
}

/// Inputs of at most this many bytes check the invariants after each operation, inputs of twice the
/// length after every second operation, and so on.
const SHORT: usize = 32;

fuzz_target!(|data: &[u8]| shards::play_bytes(data, data.len().div_ceil(SHORT).max(1)));

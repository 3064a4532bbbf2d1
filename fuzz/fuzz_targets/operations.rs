//! Operations on a shard against a slow model: the test `model`, driven by coverage instead of
//! chance. After each operation the shard is compared with the model. To check the invariants
//! takes a walk over everything: a short input checks them after each operation, a longer input
//! less often.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/model/bytes.rs"]
mod bytes;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/support/ledger.rs"]
mod ledger;
#[path = "../../tests/model/shard.rs"]
mod shard;

/// Inputs of at most this many bytes check the invariants after each operation, inputs of twice the
/// length after every second operation, and so on.
const SHORT: usize = 32;

fuzz_target!(|data: &[u8]| shard::play(data, data.len().div_ceil(SHORT).max(1)));

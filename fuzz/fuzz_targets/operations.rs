//! Operations on a shard against a slow model, the same play as in `tests/model`, fed by coverage instead of
//! chance. What can be compared is compared after each operation; the invariants, which take a walk over
//! everything, are checked after each operation of a short input and now and then in a longer one.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/model/bytes.rs"]
mod bytes;
#[path = "../../tests/model/interpreter.rs"]
mod interpreter;

/// Inputs of up to so many bytes have the invariants checked after each operation; one twice as long, after
/// each second operation, and so on.
const SHORT: usize = 32;

fuzz_target!(|data: &[u8]| interpreter::play(data, data.len().div_ceil(SHORT).max(1)));

//! Operations on a shard against a slow model, with the invariants checked after each: the same play as in
//! `tests/model`, fed by coverage instead of chance.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/model/interpreter.rs"]
mod interpreter;

fuzz_target!(|data: &[u8]| interpreter::play(data));

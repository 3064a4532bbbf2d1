//! Two producers and the advancer as three threads, each with the operations of its third of the
//! input. At the end the accounts must balance: each payload fired, was cancelled or came back
//! once, and was dropped once.
//!
//! The interleaving of the threads is not deterministic, so an input that fails may pass in the
//! next run. The models in `loom-tests` explore a few operations exhaustively; this target tries
//! many operations.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use shardwheel::{Config, shard};

#[path = "../threads/advancer.rs"]
mod advancer;
#[path = "../../tests/model/bytes.rs"]
mod bytes;
#[path = "../threads/keys.rs"]
mod keys;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/support/ledger.rs"]
mod ledger;
#[path = "../threads/pool.rs"]
mod pool;
#[path = "../threads/producer.rs"]
mod producer;

use advancer::Ending;
use bytes::Bytes;
use keys::{Keys, MOST};
use ledger::Ledger;
use pool::{Pool, Start};

/// The number of producers; each has its own thread. The caller of the target is the advancer.
const PRODUCERS: usize = 2;

static POOL: LazyLock<Pool> = LazyLock::new(Pool::new);

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let wheel_size = 2 << (bytes.byte() % 4);
    let start = if bytes.byte() % 4 == 0 { bytes.ticks() } else { 0 };
    let max_pending = if bytes.byte() % 8 == 0 { 1 + usize::from(bytes.byte() % 16) } else { usize::MAX };
    let ending = Ending::new(bytes.byte());
    let config = Config::builder().wheel_size(wheel_size).start(start).max_pending(max_pending);
    let (scheduler, advancer) = shard(&config.build().expect("in range"));

    let thirds = bytes.0.chunks(bytes.0.len().div_ceil(1 + PRODUCERS).max(1)).collect::<Vec<_>>();
    let third = |at: usize| thirds.get(at).copied().unwrap_or_default();
    let (ledger, keys) = (Ledger::with_capacity(PRODUCERS * MOST), Arc::new(Keys::new()));
    let gate = Arc::new(Start::new(1 + PRODUCERS));
    for me in 0..PRODUCERS {
        let (script, scheduler) = (third(1 + me).to_vec(), scheduler.clone());
        let (ledger, keys, gate) = (ledger.clone(), Arc::clone(&keys), Arc::clone(&gate));
        POOL.run(me, move || {
            gate.wait();
            producer::run(me, &script, &scheduler, &ledger, &keys);
        });
    }
    gate.wait();
    advancer::run(third(0), advancer, ending, || POOL.wait());
    let is_empty = scheduler.is_empty();
    drop(scheduler);
    // A shard that ends while producers run may drop what they set last.
    if ending.waits() {
        assert!(is_empty);
        ledger.check_all_ended();
    } else {
        ledger.check();
    }
});

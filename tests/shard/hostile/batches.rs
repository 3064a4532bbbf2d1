//! Callers' iterators of keys that panic while a batch is dropped. `tests/misbehaviour` has those that
//! panic otherwise, and loops over a batch that do.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

use shardwheel::{Config, shard};

use crate::support::{Bomb, survives};

/// A payload whose drop panics with a bomb.
struct Explosive;

impl Drop for Explosive {
    fn drop(&mut self) {
        panic_any(Bomb);
    }
}

/// The iterator panics while a dropped batch goes on over it, after the drops of payloads have: its
/// panic is the caller's. Promise 7.
#[test]
fn the_keys_may_panic_while_a_batch_is_dropped() {
    survives(|| {
        let (scheduler, _advancer) = shard(&Config::default());
        let keys = [(); 5].map(|()| scheduler.schedule(100, Explosive).map_err(drop).expect("it is open"));
        let many = (0..30).map(|i| if i < 20 { keys[i % 5] } else { keys[i] });
        assert!(catch_unwind(AssertUnwindSafe(|| drop(scheduler.cancel_batch(many)))).is_err());
        assert!(scheduler.is_empty());
    });
}

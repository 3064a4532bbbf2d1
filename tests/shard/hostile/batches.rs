//! A batch in the hands of user code that panics: a caller's keys while the batch is dropped. Keys that
//! panic otherwise are in `tests/misbehaviour`, for a `Timer`.

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

/// A panic in the loop over a batch leaves the rest pending: the drop calls no user code while it
/// unwinds.
#[test]
fn a_loop_over_a_batch_may_panic() {
    survives(|| {
        let (scheduler, _advancer) = shard(&Config::default());
        let keys = [0, 1, 2, 3, 4].map(|number| scheduler.schedule(100, number).expect("it is open"));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for payload in scheduler.cancel_batch(keys) {
                assert_ne!(payload, Some(1), "on purpose");
            }
        }));
        assert!(outcome.is_err());
        assert_eq!(scheduler.len(), 3);
    });
}

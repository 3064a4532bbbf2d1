//! Callers' iterators of keys that panic, and loops over a batch that do.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

use crate::support::{Bomb, Count, Dropped, survives};

/// A shard with five timers.
fn five<T: Send>(payload: impl Fn() -> T) -> (Scheduler<T>, Advancer<T>, Vec<Key>) {
    let (scheduler, advancer) = shard(&Config::default());
    let keys = (0..5).map(|i| scheduler.schedule(100 + i, payload()).expect("the shard is open")).collect();
    (scheduler, advancer, keys)
}

fn panics(work: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
}

/// The caller's iterator panics, and would panic again: it is not called during the unwinding, nor
/// is a payload's drop. The rest stays pending. Promise 7.
#[test]
fn a_batch_whose_keys_panic_twice_leaves_the_rest() {
    survives(|| {
        let (calls, dropped) = (Count::default(), Count::default());
        let (scheduler, _advancer, keys) = five(|| Dropped(dropped.clone()));
        let key = |i: usize| {
            calls.one();
            keys[if i < 2 { i } else { 5 }]
        };
        panics(|| scheduler.cancel_batch((0..5).map(key)).for_each(drop));
        assert_eq!((calls.get(), dropped.get(), scheduler.len()), (3, 0, 5));
    });
}

/// The caller's loop panics, and the iterator would, too. Promise 7.
#[test]
fn the_loop_over_a_batch_may_panic_and_so_may_its_keys() {
    survives(|| {
        let (scheduler, _advancer, keys) = five(|| ());
        let many = (0..20).map(|i| if i < 9 { keys[4] } else { keys[i] });
        panics(|| {
            let mut batch = scheduler.cancel_batch(many);
            assert_eq!(batch.next(), None, "the loop panics");
        });
        assert_eq!(scheduler.len(), 4);
    });
}

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
        let (scheduler, _advancer, keys) = five(|| Explosive);
        let many = (0..30).map(|i| if i < 20 { keys[i % 5] } else { keys[i] });
        panics(|| drop(scheduler.cancel_batch(many)));
        assert!(scheduler.is_empty());
    });
}

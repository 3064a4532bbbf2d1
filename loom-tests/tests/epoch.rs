//! Models with the real crossbeam-epoch as reclaimer, explored together with this crate's code. The
//! models are small, because epochs multiply the interleavings. `.ci/run loom` runs them, with
//! `--cfg shardwheel_loom --cfg shardwheel_loom_epoch --cfg crossbeam_loom`.

#![cfg(shardwheel_loom_epoch)]
#![allow(missing_docs)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, Ordering};
use shardwheel::testing::LoneEpochs;
use shardwheel_loom_tests::{Ledger, model_within, small_shard, thread};

/// A flush frees a node, which is handed out again, while a canceller with the old key is pinned and
/// reads it.
#[test]
fn hazard_7_a_node_is_used_again_against_a_stale_key() {
    model_within(2, || {
        let ledger = Ledger::new(4);
        let (scheduler, mut advancer) = small_shard();
        let key = scheduler.schedule(1, ledger.payload(0)).unwrap();
        let stale = {
            let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
            thread::spawn(move || ledger.cancelled(scheduler.cancel(key)))
        };
        ledger.advance(&mut advancer, 1);
        for number in 1..4 {
            scheduler.schedule(2, ledger.payload(number)).unwrap();
        }
        let won = stale.join().unwrap();
        assert_eq!(ledger.has_fired(0), !won);
        ledger.advance(&mut advancer, 2);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// Memory that a pinned reader may find.
struct Memory {
    reachable: AtomicBool,
    contents: UnsafeCell<()>,
}

// SAFETY: the cell holds no data; loom checks how it is used.
unsafe impl Sync for Memory {}

/// A pinned reader reads memory, unpins, and helps the epochs advance. The memory is reclaimed only
/// after the read.
#[test]
fn hazard_7_a_grace_period_waits_for_a_reader() {
    model_within(2, || {
        let epochs = LoneEpochs::new();
        let (advancer, reader) = (epochs.join(), epochs.join());
        let memory = Memory { reachable: AtomicBool::new(true), contents: UnsafeCell::new(()) };
        let memory = Arc::new(memory);
        let unlinked = Arc::clone(&memory);
        let advancer = thread::spawn(move || {
            unlinked.reachable.store(false, Ordering::Relaxed);
            advancer.defer(move || unlinked.contents.with_mut(|_| ()));
            advancer.help();
        });
        reader.pinned(|| {
            if memory.reachable.load(Ordering::Relaxed) {
                memory.contents.with(|_| ());
            }
        });
        (0..3).for_each(|_| reader.help());
        advancer.join().unwrap();
    });
}

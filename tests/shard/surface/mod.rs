//! The public surface of a shard: which types cross threads, what may be a payload, what errors say
//! and give back, and what a panic costs.

mod ending;
mod errors;
mod panics;
mod payloads;
mod types;

use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::{Advancer, Config, Scheduler, shard};

fn halves<T: Send>() -> (Scheduler<T>, Advancer<T>) {
    shard(&Config::default())
}

/// Counts its drops; its drop panics if `panics` is set.
struct Counted<'a> {
    drops: &'a AtomicUsize,
    panics: bool,
}

impl<'a> Counted<'a> {
    fn new(drops: &'a AtomicUsize) -> Self {
        Self { drops, panics: false }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
        if self.panics && !std::thread::panicking() {
            panic!("a payload's drop panics on purpose");
        }
    }
}

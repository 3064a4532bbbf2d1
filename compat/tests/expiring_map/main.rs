//! The map of entries that end on time: on a manual clock beside a model, and under threads.

mod all;
mod calls;
mod ends;
mod idle;
mod model;
mod races;
mod threads;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use shardwheel::{ManualClock, Timer};
use shardwheel_compat::ExpiringMap;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// What a map has reported: when by its clock, the key, and the value.
type Reports = Arc<Mutex<Vec<(Duration, u32, u32)>>>;

/// A map on a clock of its own.
struct Scene {
    clock: ManualClock,
    timer: Timer,
    map: ExpiringMap<u32, u32>,
    reports: Reports,
}

impl Scene {
    fn new(limit: usize) -> Self {
        let (clock, reports) = (ManualClock::new(), Reports::default());
        let timer = Timer::builder().shards(1).clock(clock.clone()).build().unwrap();
        let (log, time) = (Arc::clone(&reports), clock.clone());
        let map = ExpiringMap::new(&timer, limit, move |map, key, value: Arc<u32>| {
            assert!(map.get(&key).is_none_or(|newer| newer != value));
            log.lock().unwrap().push((time.elapsed(), key, *value));
        });
        Self { clock, timer, map, reports }
    }

    fn reports(&self) -> Vec<(Duration, u32, u32)> {
        self.reports.lock().unwrap().clone()
    }

    fn pending(&self) -> usize {
        self.timer.stats().pending
    }
}

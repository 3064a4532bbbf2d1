//! The maps, each with a listener that notes in the ledger which entry has expired.

use std::any::Any;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::notification::RemovalCause;
use moka::sync::Cache;
use shardwheel::Timer;
use shardwheel_compat::ExpiringMap;

use crate::ledger::Ledger;

/// A map under its name.
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    /// Makes and fills a map. It lives until what this returns is dropped.
    pub(crate) fill: fn(&'static Ledger) -> Box<dyn Any>,
}

pub(crate) const ENGINES: [Engine; 3] = [
    Engine { name: "shardwheel `ExpiringMap`", fill: shardwheel },
    Engine { name: "moka", fill: |ledger| Box::new(moka(ledger)) },
    Engine { name: "moka, `run_pending_tasks` every 100 ms", fill: moka_with_thread },
];

/// The pause that moka's maintainer names in the issue 349.
const UPKEEP: Duration = Duration::from_millis(100);

fn shardwheel(ledger: &'static Ledger) -> Box<dyn Any> {
    let timer = Timer::new().expect("the system has memory and threads");
    let map = ExpiringMap::new(&timer, ledger.len(), |_, entry, _: Arc<()>| ledger.report(entry));
    for entry in ledger.entries() {
        map.insert(entry, (), ledger.ttl(entry)).expect("there is room");
    }
    Box::new(map)
}

/// Gives each entry of moka a time to live of its own: the value.
struct ByValue;

impl Expiry<u32, Duration> for ByValue {
    fn expire_after_create(&self, _key: &u32, value: &Duration, _created_at: Instant) -> Option<Duration> {
        Some(*value)
    }
}

fn moka(ledger: &'static Ledger) -> Cache<u32, Duration> {
    let map = Cache::builder()
        .max_capacity(2 * ledger.len() as u64)
        .expire_after(ByValue)
        .eviction_listener(|entry: Arc<u32>, _, cause| {
            if cause == RemovalCause::Expired {
                ledger.report(*entry);
            }
        })
        .build();
    ledger.entries().for_each(|entry| map.insert(entry, ledger.ttl(entry)));
    map
}

fn moka_with_thread(ledger: &'static Ledger) -> Box<dyn Any> {
    let map = Arc::new(moka(ledger));
    let upkeep = Arc::downgrade(&map);
    thread::spawn(move || {
        while let Some(map) = upkeep.upgrade() {
            map.run_pending_tasks();
            drop(map);
            thread::sleep(UPKEEP);
        }
    });
    Box::new(map)
}

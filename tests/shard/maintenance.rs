//! An event loop of one's own that sleeps until the next expiration, of which there is none, gives
//! memory back all the same.

use shardwheel::{Config, shard};

use crate::support::watched;

/// Timers of the burst, and the nodes that may be left of it: two segments' worth.
const BURST: u64 = 500_000;
const LEFT: usize = 2 * 65_536;

/// Nothing is pending, and the clock stands still. Promise 5.
#[test]
fn read_memory_goes_back_where_nothing_is_pending() {
    watched(|| {
        let (scheduler, mut advancer) = shard(&Config::default());
        assert!(!advancer.needs_maintenance(), "it is new");
        let keys: Vec<_> =
            (0..BURST).map(|i| scheduler.schedule(1_000 + i, i).expect("it is open")).collect();
        assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_some()));
        let mut calls = 0;
        loop {
            assert_eq!(advancer.advance(0).count(), 0);
            if advancer.next_expiration().is_none() && !advancer.needs_maintenance() {
                break;
            }
            advancer.maintain();
            calls += 1;
        }
        let stats = scheduler.stats();
        assert!(stats.node_capacity <= LEFT, "after {calls} calls: {stats:?}");
    });
}

/// What has fired leaves nothing to be done for ever; one timer that is far off is enough to try it
/// on. Promises 5 and 9.
#[test]
fn read_maintenance_comes_to_an_end() {
    watched(|| {
        let (scheduler, mut advancer) = shard(&Config::default());
        scheduler.schedule(1 << 40, 0).expect("it is open");
        (0..BURST).for_each(|i| assert!(scheduler.schedule(1 + i % 1_000, i).is_ok()));
        assert_eq!(advancer.advance(1_000).count() as u64, BURST);
        while advancer.needs_maintenance() {
            advancer.maintain();
        }
        assert!(scheduler.stats().node_capacity <= LEFT);
        assert_eq!(scheduler.len(), 1);
    });
}

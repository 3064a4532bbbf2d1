//! How late a map reports that its entries have expired, with a million entries and no traffic.
//!
//! Each map is filled with entries whose deadlines are spread evenly over some seconds. Then no
//! thread uses the map. The listener of each map notes when it is called. After the last deadline
//! the program waits for some more seconds, and prints how many entries were reported, and how late.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::notification::RemovalCause;
use moka::sync::Cache;
use shardwheel::Timer;
use shardwheel_compat::ExpiringMap;

const SECOND: Duration = Duration::from_secs(1);

/// How many entries there are and when they are due.
#[derive(Clone, Copy)]
struct Plan {
    entries: usize,
    /// From the first insert to the first deadline: enough to fill the slowest map.
    lead: Duration,
    /// From the first deadline to the last.
    span: Duration,
    /// After the last deadline, the time in which reports count.
    window: Duration,
}

const PLAN: Plan = Plan {
    entries: 1_000_000,
    lead: SECOND.saturating_mul(5),
    span: SECOND.saturating_mul(10),
    window: SECOND.saturating_mul(5),
};
const RUNS: usize = 3;

/// A map under its name. The function makes and fills it; it lives until what that returns is dropped.
type Engine = (&'static str, fn(&'static Ledger) -> Box<dyn Any>);

const ENGINES: [Engine; 3] = [
    ("shardwheel `ExpiringMap`", shardwheel),
    ("moka", |ledger| Box::new(moka(ledger))),
    ("moka, `run_pending_tasks` every 100 ms", moka_with_thread),
];

fn main() {
    println!("| map | run | insert, ns | reported | early | late, 50 %, ms | 99 %, ms | max, ms |");
    println!("|---|---|---|---|---|---|---|---|");
    for run in 1..=RUNS {
        for (name, fill) in ENGINES {
            let (insert, ledger) = measure(fill, PLAN);
            let [reported, early] = [ledger.late().len(), ledger.early()];
            let [half, most, last] = [0.5, 0.99, 1.0].map(|share| ledger.late_at(share));
            println!(
                "| {name} | {run} | {insert:.0} | {reported} | {early} | {half:.2} | {most:.2} | {last:.2} |"
            );
        }
    }
}

/// Fills a map and waits; returns the nanoseconds of an insert.
fn measure(fill: fn(&'static Ledger) -> Box<dyn Any>, plan: Plan) -> (f64, &'static Ledger) {
    // Leaked: a listener may be called after the measurement.
    let ledger: &'static Ledger = Box::leak(Box::new(Ledger::new(plan)));
    let map = fill(ledger);
    let filled = ledger.begin.elapsed();
    if filled > plan.lead {
        eprintln!("it took {filled:?} to fill the map, longer than the lead");
    }
    thread::sleep(ledger.end().saturating_duration_since(Instant::now()));
    drop(map);
    (filled.as_nanos() as f64 / plan.entries as f64, ledger)
}

/// When each entry was due, and when it was reported.
struct Ledger {
    begin: Instant,
    plan: Plan,
    /// Nanoseconds from the beginning to the report; 0 before. Written by the listeners' threads.
    reported: Box<[AtomicU64]>,
}

impl Ledger {
    fn new(plan: Plan) -> Self {
        let reported = (0..plan.entries).map(|_| AtomicU64::new(0)).collect();
        Self { begin: Instant::now(), plan, reported }
    }

    /// The numbers of the entries, scattered: neighbours are not due one after the other.
    fn entries(&self) -> impl Iterator<Item = u32> {
        /// Odd, and prime to any number of entries that is not a multiple of it.
        const STEP: usize = 7_919;
        let count = self.plan.entries;
        (0..count).map(move |nth| (nth * STEP % count) as u32)
    }

    fn deadline(&self, entry: usize) -> Duration {
        self.plan.lead + self.plan.span.mul_f64(entry as f64 / self.plan.entries as f64)
    }

    /// Until when reports count.
    fn end(&self) -> Instant {
        self.begin + self.plan.lead + self.plan.span + self.plan.window
    }

    /// The time to live that an entry has now.
    fn ttl(&self, entry: u32) -> Duration {
        self.deadline(entry as usize).saturating_sub(self.begin.elapsed())
    }

    /// Notes that an entry is reported now.
    fn report(&self, entry: u32) {
        let now = Instant::now();
        if now < self.end() {
            // Ordering: Relaxed, figures.
            self.reported[entry as usize].store((now - self.begin).as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// The nanoseconds from deadline to report of what was reported, in order.
    fn late(&self) -> Vec<i64> {
        // Ordering: Relaxed, see `report`.
        let reported = self.reported.iter().map(|reported| reported.load(Ordering::Relaxed)).enumerate();
        let late = |(entry, nanos): (usize, u64)| nanos as i64 - self.deadline(entry).as_nanos() as i64;
        let mut late = reported.filter(|(_, nanos)| *nanos > 0).map(late).collect::<Vec<_>>();
        late.sort_unstable();
        late
    }

    fn early(&self) -> usize {
        self.late().partition_point(|late| *late < 0)
    }

    /// The milliseconds after which this share was reported, of what was reported.
    fn late_at(&self, share: f64) -> f64 {
        let late = self.late();
        let Some(last) = late.len().checked_sub(1) else { return f64::NAN };
        late[(last as f64 * share).ceil() as usize] as f64 / 1e6
    }
}

fn shardwheel(ledger: &'static Ledger) -> Box<dyn Any> {
    let timer = Timer::new().expect("the system has memory and threads");
    let map = ExpiringMap::new(&timer, ledger.plan.entries, |_, entry, _: Arc<()>| ledger.report(entry));
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
        .max_capacity(2 * ledger.plan.entries as u64)
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

/// The pause is the one that moka's maintainer names in the issue 349.
fn moka_with_thread(ledger: &'static Ledger) -> Box<dyn Any> {
    let map = Arc::new(moka(ledger));
    let upkeep = Arc::downgrade(&map);
    thread::spawn(move || {
        while let Some(map) = upkeep.upgrade() {
            map.run_pending_tasks();
            drop(map);
            thread::sleep(Duration::from_millis(100));
        }
    });
    Box::new(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A busy machine may be late, so no lateness is asserted.
    #[test]
    fn shardwheel_reports_all_and_none_early() {
        let plan = Plan { entries: 1_000, lead: SECOND / 10, span: SECOND / 5, window: 2 * SECOND };
        for (name, fill) in ENGINES {
            let (_, ledger) = measure(fill, plan);
            assert_eq!(ledger.early(), 0, "{name}");
            assert!(ledger.late().len() == 1_000 || !name.starts_with("shardwheel"));
        }
    }
}

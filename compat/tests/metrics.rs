//! A timer's figures, as the recorder of a program gets them.

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::eventually;
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};
use shardwheel::{ManualClock, Timer};
use shardwheel_compat::TimerMetrics;

type Figures<T> = Mutex<BTreeMap<String, T>>;

static COUNTERS: Figures<Arc<AtomicU64>> = Mutex::new(BTreeMap::new());
static GAUGES: Figures<Arc<AtomicU64>> = Mutex::new(BTreeMap::new());
static VALUES: Figures<Arc<Values>> = Mutex::new(BTreeMap::new());
static DESCRIBED: Figures<SharedString> = Mutex::new(BTreeMap::new());

#[derive(Default)]
struct Values(Mutex<Vec<f64>>);

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

struct Recorder;

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        DESCRIBED.lock().unwrap().insert(name.as_str().to_owned(), text);
    }

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(of(&COUNTERS, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(of(&GAUGES, key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(of(&VALUES, key))
    }
}

/// A metric is there from its first use on.
fn of<T: Clone + Default>(figures: &Figures<T>, key: &Key) -> T {
    let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
    let name = format!("{}{{{}}}", key.name(), labels.join(","));
    figures.lock().unwrap().entry(name).or_default().clone()
}

fn counter(name: &str) -> Option<u64> {
    COUNTERS.lock().unwrap().get(name).map(|count| count.load(Ordering::Relaxed))
}

fn gauge(name: &str) -> Option<f64> {
    GAUGES.lock().unwrap().get(name).map(|value| f64::from_bits(value.load(Ordering::Relaxed)))
}

/// A timer of two shards that has fired three timers, 2 ms, 1 ms and 0 ms late, cancelled one, and
/// holds one.
fn used_timer() -> Timer {
    let clock = ManualClock::new();
    let timer = Timer::builder().shards(2).clock(clock.clone()).build().unwrap();
    for millis in [1, 2, 3] {
        timer.schedule_after(Duration::from_millis(millis), || ()).unwrap();
    }
    timer.schedule_after(Duration::from_secs(60), || ()).unwrap();
    timer.cancel(timer.schedule_after(Duration::from_secs(60), || ()).unwrap());
    clock.jump(Duration::from_millis(3));
    timer
}

fn check_totals() {
    for (name, expected) in [("scheduled", 5), ("fired", 3), ("recurred", 0), ("cancelled", 1), ("panics", 0)]
    {
        let metric = format!("shardwheel_{name}_total{{timer=used}}");
        assert_eq!(counter(&metric), Some(expected), "{metric}");
    }
    assert_eq!(gauge("shardwheel_pending{timer=used}"), Some(1.0));
    assert_eq!(gauge("shardwheel_backlog_seconds{timer=used}"), Some(0.0));
    let values = VALUES.lock().unwrap();
    let late = values["shardwheel_lateness_seconds{timer=used}"].0.lock().unwrap();
    let up_to = |limit: f64| late.iter().filter(|&&value| value <= limit).count();
    assert_eq!([0.001, 0.0025, 1.0].map(up_to), [1, 3, 3], "{late:?}");
    assert_eq!(DESCRIBED.lock().unwrap()["shardwheel_fired_total"], "Timers fired.".into());
}

fn check_shards() {
    let of = |shard| counter(&format!("shardwheel_fired_total{{timer=each,shard={shard}}}"));
    assert_eq!(of(0).unwrap() + of(1).unwrap(), 3);
    assert_eq!(counter("shardwheel_fired_total{timer=each}"), None);
}

#[cfg(feature = "introspect")]
fn check_places() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    let line = line!() + 1;
    let set = || timer.schedule_after(Duration::from_secs(60), || ()).unwrap();
    let keys = [set(), set()];
    clock.advance(Duration::from_secs(20));
    let mut metrics = TimerMetrics::new().label("timer", "placed");
    metrics.record_pending(&timer.pending());
    let all: Vec<_> = GAUGES.lock().unwrap().keys().cloned().collect();
    let row = all.iter().find(|name| name.starts_with("shardwheel_place_pending{")).unwrap();
    assert!(row.contains(&format!("{}:{line}:", file!())), "{row}");
    let values = || {
        ["pending", "overdue", "late_seconds", "first_due_seconds", "oldest_seconds"]
            .map(|name| gauge(&row.replace("_pending{", &format!("_{name}{{"))))
    };
    assert_eq!(values(), [2.0, 0.0, 0.0, 40.0, 20.0].map(Some));

    // A place whose timers have ended goes to zero.
    assert_eq!(timer.cancel_batch(keys), 2);
    metrics.record_pending(&timer.pending());
    assert_eq!(values(), [0.0; 5].map(Some));
}

#[test]
fn a_recorder_has_all_figures() {
    metrics::set_global_recorder(Recorder).map_err(|_| "there is another").unwrap();
    let timer = used_timer();
    let mut totals = TimerMetrics::new().label("timer", "used");
    totals.record(&timer.stats());
    totals.record(&timer.stats()); // nothing has changed, so nothing is added
    TimerMetrics::new().label("timer", "each").each_shard().record(&timer.stats());
    check_totals();
    check_shards();

    #[cfg(feature = "introspect")]
    check_places();

    let real = Timer::new().unwrap();
    let reports = TimerMetrics::new().label("timer", "real");
    // Through a group that ends: the report is the timer's.
    reports.every(Duration::from_millis(10), &real.group()).unwrap();
    let recurred = || counter("shardwheel_recurred_total{timer=real}");
    eventually("three reports", || recurred().is_some_and(|count| count >= 3));
    let weak = real.downgrade();
    drop(real);
    eventually("the timer has ended", || weak.upgrade().is_none());
}

//! A timer's figures, scraped from `metrics-exporter-prometheus`.

mod common;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use common::{get, run};
use metrics_exporter_prometheus::PrometheusBuilder;
use shardwheel::{ManualClock, Timer};
use shardwheel_compat::TimerMetrics;
use tokio::time::sleep;

/// Installs the exporter, on a port that was free a moment ago.
async fn exporter() -> SocketAddr {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let exporter = PrometheusBuilder::new().with_http_listener(address).set_buckets(&[0.001, 0.0025, 1.0]);
    let (recorder, server) = exporter.unwrap().build().unwrap();
    metrics::set_global_recorder(recorder).unwrap();
    tokio::spawn(server);
    while tokio::net::TcpStream::connect(address).await.is_err() {
        sleep(Duration::from_millis(5)).await;
    }
    address
}

/// The value of a metric, by its name and labels.
fn value(page: &str, metric: &str) -> Option<f64> {
    let rest = page.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '))?;
    rest.parse().ok()
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

fn check_totals(page: &str) {
    let expected = [
        ("scheduled_total", 5.0),
        ("fired_total", 3.0),
        ("recurred_total", 0.0),
        ("cancelled_total", 1.0),
        ("panics_total", 0.0),
        ("pending", 1.0),
        ("backlog_seconds", 0.0),
        ("lateness_seconds_count", 3.0),
    ];
    for (name, expected) in expected {
        let metric = format!("shardwheel_{name}{{timer=\"used\"}}");
        assert_eq!(value(page, &metric), Some(expected), "{metric} in {page}");
    }
    let up_to =
        |le| value(page, &format!("shardwheel_lateness_seconds_bucket{{timer=\"used\",le=\"{le}\"}}"));
    assert_eq!([up_to("0.001"), up_to("0.0025"), up_to("1")].map(Option::unwrap), [1.0, 3.0, 3.0], "{page}");
    assert!(page.contains("# HELP shardwheel_fired_total Timers fired."), "{page}");
    assert!(page.contains("# TYPE shardwheel_lateness_seconds histogram"), "{page}");
}

fn check_shards(page: &str) {
    let of = |shard| value(page, &format!("shardwheel_fired_total{{timer=\"each\",shard=\"{shard}\"}}"));
    assert_eq!(of(0).unwrap() + of(1).unwrap(), 3.0, "{page}");
    assert_eq!(value(page, "shardwheel_fired_total{timer=\"each\"}"), None);
}

#[cfg(feature = "introspect")]
async fn check_places(address: SocketAddr) {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    let line = line!() + 1;
    let set = || timer.schedule_after(Duration::from_secs(60), || ()).unwrap();
    let keys = [set(), set()];
    clock.advance(Duration::from_secs(20));
    let mut metrics = TimerMetrics::new().label("timer", "placed");
    metrics.record_pending(&timer.pending());
    let page = get(address, "/metrics").await;
    let row = page.lines().find(|line| line.starts_with("shardwheel_place_pending")).unwrap().to_owned();
    assert!(row.contains(&format!("{}:{line}:", file!())) && row.ends_with(" 2"), "{page}");
    let of = |page: &str, name: &str| {
        value(page, &row.replace("_pending{", &format!("_{name}{{")).replace(" 2", ""))
    };
    let values = |page: &str| {
        ["pending", "overdue", "late_seconds", "first_due_seconds", "oldest_seconds"]
            .map(|name| of(page, name))
    };
    assert_eq!(values(&page), [2.0, 0.0, 0.0, 40.0, 20.0].map(Some), "{page}");

    // A place whose timers have ended goes to zero.
    assert_eq!(timer.cancel_batch(keys), 2);
    metrics.record_pending(&timer.pending());
    let page = get(address, "/metrics").await;
    assert_eq!(values(&page), [0.0; 5].map(Some), "{page}");
}

#[test]
fn a_scrape_has_all_figures() {
    run(async {
        let address = exporter().await;
        let timer = used_timer();
        let mut totals = TimerMetrics::new().label("timer", "used");
        totals.record(&timer.stats());
        totals.record(&timer.stats()); // nothing has changed, so nothing is added
        TimerMetrics::new().label("timer", "each").each_shard().record(&timer.stats());
        let page = get(address, "/metrics").await;
        check_totals(&page);
        check_shards(&page);

        #[cfg(feature = "introspect")]
        check_places(address).await;

        let real = Timer::new().unwrap();
        let reports = TimerMetrics::new().label("timer", "real");
        // Through a group that ends: the report is the timer's.
        reports.every(Duration::from_millis(10), &real.group()).unwrap();
        let metric = "shardwheel_recurred_total{timer=\"real\"}";
        while value(&get(address, "/metrics").await, metric).is_none_or(|recurred| recurred < 3.0) {
            sleep(Duration::from_millis(10)).await;
        }
        let weak = real.downgrade();
        drop(real);
        while weak.upgrade().is_some() {
            sleep(Duration::from_millis(10)).await;
        }
    });
}

//! Whether a worker knows how it is: `/healthz` and the metrics beside faults of the broker.

mod support;

use std::time::Duration;
use std::{fs, thread};

use support::lossy::{self, Kind};
use support::nats::Worker;
use support::shop::{Shop, get, metric, run};
use support::until;

/// Both ways of asking say the same.
fn is_well(worker: &Worker) -> bool {
    let well = get(worker, "/healthz").status == 200;
    well && metric(worker, "orders_ready") == 1.0
}

fn is_unwell(worker: &Worker, said: &str) -> bool {
    let health = get(worker, "/healthz");
    health.status == 503 && health.text().contains(said) && metric(worker, "orders_ready") == 0.0
}

/// Publishes until the broker has no room for a small message.
fn fill(shop: &Shop) {
    let filler = async {
        let jetstream = shop.jetstream_async().await;
        let config = async_nats::jetstream::stream::Config {
            name: "filler".to_owned(),
            subjects: vec!["filler".to_owned()],
            ..Default::default()
        };
        jetstream.create_stream(config).await.expect("a stream");
        for size in [64 << 10, 1 << 10, 16] {
            loop {
                let sent = jetstream.publish("filler", vec![0; size].into()).await.expect("it is sent");
                if sent.await.is_err() {
                    break;
                }
            }
        }
    };
    shop.runtime.block_on(filler);
}

/// The broker has no room for results: nothing is decided until there is, and the worker says so.
#[test]
fn a_worker_is_not_well_while_the_broker_is_full() {
    let mut shop = Shop::new("health-full", "jetstream { max_file_store: 8388608 }\n");
    let worker = shop.started("one", &[]);
    shop.order(0, 1..=3);
    shop.answered(0, 3, "placed");
    until("it is well", || is_well(&worker));
    worker.signal("-STOP");
    (0..20).for_each(|batch| shop.order(0, batch * 100 + 11..batch * 100 + 111));
    fill(&shop);
    worker.signal("-CONT");
    until("it is not well", || is_unwell(&worker, "partition 0"));
    until("it counts what is pending", || metric(&worker, "orders_pending") >= 2_000.0);
    until("the age of the oldest message grows", || metric(&worker, "orders_unanswered_seconds") > 10.0);
    until("it names the message", || is_unwell(&worker, "has not answered message"));
    let said = get(&worker, "/healthz").text();
    assert!(said.contains("no room"), "{said}");
    shop.nats.kill(0);
    fs::write(shop.directory.path().join("nats.conf"), "").expect("a configuration");
    shop.nats.begin_again(0);
    shop.answered(0, 2_010, "placed");
    until("it is well again", || is_well(&worker));
    assert_eq!(metric(&worker, "orders_pending"), 2_003.0);
    assert_eq!(metric(&worker, "orders_unanswered_seconds"), 0.0);
}

/// The log of a partition never reaches its owner, which gives it up and takes it again and again.
#[test]
fn an_owner_without_progress_is_seen_whether_its_lease_lasts_or_not() {
    let shop = Shop::new("health-deaf", "");
    let urls = lossy::start(shop.nats.address(), |delivery| {
        delivery.stream == "shop-0" && delivery.kind == Kind::Delivered
    });
    let args = ["--partitions", "2", "--check-after", "1h", "--lease", "1s", "--listen", "127.0.0.1:0"];
    let worker = Worker::start_at("deaf", &urls, &args);
    until("it is not well", || is_unwell(&worker, "partition 0 makes no progress"));
    assert!(metric(&worker, "orders_progress_age_seconds") >= 10.0);
    until("it gives the partition up", || worker.count("deaf: partition 0 is given up") == 1);
    while worker.count("deaf: partition 0 is given up") < 2 {
        assert!(is_unwell(&worker, "partition 0"), "{}", get(&worker, "/healthz").text());
        thread::sleep(Duration::from_millis(50));
    }
}

/// A worker refuses to begin with such a stream; one that works goes on, and says so.
#[test]
fn a_limit_that_a_stream_gets_under_a_worker_is_named() {
    let shop = Shop::new("health-limits", "");
    let worker = shop.started("one", &[]);
    until("it is well", || is_well(&worker));
    let mut config = shop.stream("results-1").cached_info().config.clone();
    config.max_age = Duration::from_secs(7_200);
    shop.runtime.block_on(shop.jetstream().update_stream(&config)).expect("it is changed");
    until("it is not well", || is_unwell(&worker, "the stream results-1 has max_age 2h, not 0ms"));
    shop.order(1, [1]);
    shop.answered(1, 1, "placed");
    config.max_age = Duration::ZERO;
    shop.runtime.block_on(shop.jetstream().update_stream(&config)).expect("it is changed");
    until("it is well again", || is_well(&worker));
}

#[test]
fn a_second_worker_of_one_name_ends_and_one_that_follows_a_dead_one_does_not() {
    let shop = Shop::new("health-names", "");
    let first = shop.started("one", &[]);
    let urls = shop.nats.urls();
    let args = ["--partitions", "2", "--check-after", "1h", "--lease", "1s", "--worker", "one"];
    let (code, said) = run(&[&["serve", "--nats", &urls], &args[..]].concat());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("another worker is named one already"), "{said}");
    until("the first one is well", || is_well(&first));
    shop.order(0, [1]);
    shop.answered(0, 1, "placed");
    // `kill -9`.
    drop(first);
    let next = shop.started("one", &[]);
    until("the next one is well", || is_well(&next));
    assert_eq!(next.count("one: another worker"), 0);
}

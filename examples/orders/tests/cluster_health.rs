//! Whether a worker knows how it is: `/healthz` and the metrics beside faults of the broker.

mod support;

use std::fs;

use support::lossy::{self, Kind};
use support::nats::Worker;
use support::shop::{Shop, get, metric};
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
    let jetstream = shop.jetstream();
    let filler = async {
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
    assert!(said.contains("resource"), "{said}");
    shop.nats.kill(0);
    fs::write(shop.directory.path().join("nats.conf"), "").expect("a configuration");
    shop.nats.begin_again(0);
    shop.answered(0, 2_010, "placed");
    until("it is well again", || is_well(&worker));
    assert_eq!(metric(&worker, "orders_pending"), 2_003.0);
    assert_eq!(metric(&worker, "orders_unanswered_seconds"), 0.0);
}

/// The log of a partition never reaches its owner.
#[test]
fn an_owner_without_progress_is_seen() {
    let shop = Shop::new("health-deaf", "");
    let urls = lossy::start(shop.nats.address(), |delivery| {
        delivery.stream == "shop-0" && delivery.kind == Kind::Delivered
    });
    let args = ["--partitions", "2", "--check-after", "1h", "--lease", "1s", "--listen", "127.0.0.1:0"];
    let worker = Worker::start_at("deaf", &urls, &args);
    until("it is not well", || is_unwell(&worker, "partition 0 makes no progress"));
    assert!(metric(&worker, "orders_progress_age_seconds") >= 10.0);
    assert!(worker.line("partition 1 owned").is_some() && worker.line("partition 0 owned").is_none());
    // The other one is served.
    assert!(!get(&worker, "/healthz").text().contains("partition 1"));
}

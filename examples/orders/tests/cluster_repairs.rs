//! A broker that is away, is configured otherwise, or has lost something: what a worker says, and
//! which partitions go on.

mod support;

use std::time::{Duration, Instant};

use async_nats::jetstream::stream;
use futures_util::{FutureExt, StreamExt};
use support::nats::Worker;
use support::shop::{Shop, get, metric, run};
use support::until;

/// Without NATS a worker says what it waits for, at its start and later, and `/healthz` is no success.
#[test]
fn a_worker_without_nats_says_so() {
    let mut shop = Shop::new("repair-away", "");
    shop.nats.kill(0);
    let worker = shop.worker("one", &[]);
    assert_eq!(get(&worker, "/healthz").status, 503);
    let waits = |worker: &Worker| worker.count("waiting for NATS: nats://");
    until("it says so again and again", || waits(&worker) >= 3);
    assert!(get(&worker, "/healthz").text().contains("waiting for NATS: nats://"));
    shop.nats.begin_again(0);
    until("it is well", || worker.count("partition ") == 2 && get(&worker, "/healthz").status == 200);
    shop.nats.kill(0);
    let away = Instant::now();
    until("it is not well", || get(&worker, "/healthz").status == 503);
    assert!(away.elapsed() < Duration::from_secs(2), "{:?}", away.elapsed());
    until("it says so every few seconds", || worker.count("one: waiting for NATS: no change") >= 2);
    shop.nats.begin_again(0);
    until("it is well again", || get(&worker, "/healthz").status == 200);
    shop.order(0, [1]);
    shop.answered(0, 1, "placed");
}

/// A broker that takes 128 KiB in a message: orders, their checks and snapshots pass. One that takes 64 KiB
/// gets the answers to one message as several results.
#[test]
fn batches_follow_the_largest_message_that_the_broker_takes() {
    let shop = Shop::new("repair-payload", "max_payload: 131072\n");
    support::sample(shop.directory.path(), &["--count", "30000", "--items", "2"]);
    let args = ["--partitions", "2", "--check-after", "4s", "--snapshot-every", "2000"];
    let worker = Worker::start("one", &shop.nats, &args);
    worker.wait_until_ready();
    let files =
        ["orders.csv", "payments.csv"].map(|name| shop.directory.path().join(name).display().to_string());
    let (urls, files) = (shop.nats.urls(), ["--orders", &files[0], "--payments", &files[1]]);
    let feed = ["feed", "--to", &urls, "--skip-late", "--batch", "2000", "--connections", "2"];
    let (code, fed) = run(&[&feed, &files[..]].concat());
    assert!(code == Some(0) && fed.contains("| orders | placed | 30000 |"), "{fed}");
    let audit = ["audit", "--from", &urls, "--wait", "--as-answered"];
    let (code, found) = run(&[&audit, &files[..]].concat());
    assert!(
        code == Some(0) && found.contains("30000 outcomes") && found.contains("no difference"),
        "{found}"
    );
    assert_eq!(worker.count("partition 0 begins again") + worker.count("partition 1 begins again"), 0);
    // More orders in one message than one result can answer.
    let small = Shop::new("repair-small-payload", "max_payload: 65536\n");
    let worker = small.started("one", &[]);
    let order = |id| {
        let item = &small.items[0];
        format!("{{\"order_id\":{id},\"item\":\"{item}\",\"quantity\":1,\"amount_cents\":1}}\n")
    };
    let orders = (10_000_000_000_000_000_000_u64..10_000_000_000_000_000_600).map(order);
    // What is said of them is longer than they are.
    let wrong = std::iter::repeat_n("{\"order_id\":1}\n".to_owned(), 400);
    small.publish("shop.0.orders", orders.chain(wrong).collect());
    small.answered(0, 10_000_000_000_000_000_599, "placed");
    let wrong = || small.results(0).iter().filter(|line| line.contains("is missing")).count();
    until("all are answered", || wrong() == 400);
    assert!(small.stream("results-0").cached_info().state.messages >= 2, "several results");
    drop(worker);
    let next = small.started("two", &[]);
    small.expect_all_is_well(&next);
}

#[test]
fn streams_that_would_lose_messages_other_replicas_and_other_settings_are_refused_at_once() {
    let shop = Shop::new("repair-streams", "");
    let urls = shop.nats.urls();
    let serve = |more: &[&str]| {
        let begin = Instant::now();
        let said = run(&[&["serve", "--nats", &urls, "--partitions", "2"], more].concat());
        assert!(begin.elapsed() < Duration::from_secs(10), "{said:?}");
        assert_eq!(said.0, Some(2), "{said:?}");
        said.1
    };
    assert!(serve(&["--replicas", "3"]).contains("--replicas 3 needs a cluster of at least 3 servers"));
    assert!(serve(&["--replicas", "0"]).contains("--replicas"), "1, 3 or 5");
    drop(shop.started("one", &[]));
    assert!(serve(&[]).contains("other settings: --check-after 1h, not --check-after 30m"));
    let said = serve(&["--replicas", "3", "--check-after", "1h"]);
    assert!(said.contains("has --replicas 1, not 3"), "{said}");
    let limited = stream::Config { max_age: Duration::from_secs(7_200), ..log_config(&shop, 1) };
    shop.runtime.block_on(shop.jetstream().update_stream(&limited)).expect("it is changed");
    let said = serve(&["--check-after", "1h"]);
    assert!(said.contains("shop-1 has max_age 2h, not 0ms"), "{said}");
}

/// A bucket that `nats kv add` makes allows reads from any replica, also from one that lags. The heads of
/// snapshots are read from the leader all the same. A worker that was paused leaves a part to the other one.
#[test]
fn a_head_is_never_read_from_a_replica() {
    let shop = Shop::new("repair-direct", "");
    drop(shop.started("zero", &[]));
    let direct = stream::Config { allow_direct: true, ..shop.stream("KV_shop").cached_info().config.clone() };
    shop.runtime.block_on(shop.jetstream().update_stream(&direct)).expect("it is changed");
    let client = shop.runtime.block_on(async_nats::connect(shop.nats.urls())).expect("a connection");
    let subscribed = async {
        let reads = client.subscribe("$JS.API.DIRECT.GET.>").await.expect("a subscription");
        client.flush().await.expect("the server has it");
        reads
    };
    let mut reads = shop.runtime.block_on(subscribed);
    let first = shop.started("one", &["--snapshot-every", "20"]);
    shop.order(0, 1..=30);
    shop.answered(0, 30, "placed");
    first.signal("-STOP");
    let second = shop.started("two", &[]);
    first.signal("-CONT");
    until("it leaves a part", || first.said(|line| line.ends_with(" lost")).is_some());
    shop.expect_all_is_well(&second);
    let settings = |subject: &str| subject.ends_with(".settings");
    while let Some(Some(read)) = reads.next().now_or_never() {
        assert!(settings(&read.subject), "{} is asked of any replica", read.subject);
    }
}

fn log_config(shop: &Shop, partition: usize) -> stream::Config {
    shop.stream(&format!("shop-{partition}")).cached_info().config.clone()
}

/// The log is purged: its partition stops until a backup is restored. What came after that is lost.
#[test]
fn a_log_that_was_purged_stops_its_partition_until_a_backup_is_restored() {
    let mut shop = Shop::new("repair-purge", "");
    let worker = shop.started("one", &["--snapshot-every", "20"]);
    shop.order(0, 1..=30);
    shop.answered(0, 30, "placed");
    until("there is a snapshot", || shop.has_snapshot(0));
    drop(worker);
    shop.nats.kill(0);
    shop.nats.back_up(&shop.directory);
    shop.nats.begin_again(0);
    let worker = shop.started("two", &["--snapshot-every", "20"]);
    shop.order(0, 31..=33);
    shop.answered(0, 33, "placed");
    drop(worker);
    shop.purge("shop-0");
    let worker = shop.worker("three", &["--snapshot-every", "20"]);
    shop.expect_a_stop(&worker, "the log has lost messages");
    shop.nats.restore(&shop.directory);
    shop.expect_all_is_well(&worker);
    shop.order(0, [30, 31]);
    shop.answered(0, 30, "duplicate");
    shop.answered(0, 31, "placed");
}

#[test]
fn a_lost_part_of_a_snapshot_stops_its_partition() {
    let shop = Shop::new("repair-snapshot", "");
    let worker = shop.started("one", &["--snapshot-every", "20"]);
    shop.order(0, 1..=30);
    shop.answered(0, 30, "placed");
    until("there is a snapshot", || shop.has_snapshot(0));
    drop(worker);
    shop.delete("books", shop.last("books"));
    let worker = shop.worker("two", &[]);
    shop.expect_a_stop(&worker, "is damaged or lacks a part");
}

/// A message that is deleted before it is decided costs itself; one that was decided stops its
/// partition, since its orders are not known any more.
#[test]
fn a_message_that_was_deleted_is_passed_over() {
    let shop = Shop::new("repair-deleted", "");
    let worker = shop.started("one", &[]);
    shop.order(0, [1]);
    shop.answered(0, 1, "placed");
    drop(worker);
    shop.order(0, [2]);
    let number = shop.stream("shop-0").cached_info().state.last_sequence;
    shop.order(0, [3]);
    shop.delete("shop-0", number);
    let worker = shop.started("two", &[]);
    shop.answered(0, 3, "placed");
    let metrics = get(&worker, "/metrics").text();
    assert!(metrics.contains("\norders_passed_over_total 1\n"), "{metrics}");
    assert!(!shop.results(0).iter().any(|line| line.contains("\"order_id\":2,")));
    drop(worker);
    shop.delete("shop-0", number + 1);
    let worker = shop.worker("three", &[]);
    shop.expect_a_stop(&worker, "differ from those that stand");
}

/// A stream is deleted: nothing else shows it before the next result.
#[test]
fn a_stream_that_is_missing_stops_its_partition_alone() {
    for stream in ["shop-0", "results-0"] {
        let shop = Shop::new(&format!("repair-{stream}"), "");
        let worker = shop.started("one", &[]);
        shop.order(0, 1..=5);
        shop.answered(0, 5, "placed");
        shop.runtime.block_on(shop.jetstream().delete_stream(stream)).expect("it is deleted");
        if stream == "results-0" {
            shop.order(0, [6]);
        }
        shop.expect_a_stop(&worker, &format!("the stream {stream} is missing"));
        let figures = ["ready", "partitions_stopped", "partitions_owned"];
        assert_eq!(figures.map(|name| metric(&worker, &format!("orders_{name}"))), [0.0, 1.0, 2.0]);
    }
}

//! A broker that is away, is configured otherwise, or has lost something: what a worker says, and
//! which partitions go on.

mod support;

use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use async_nats::jetstream::{self, stream};
use futures_util::{FutureExt, StreamExt};
use support::nats::{Nats, Worker};
use support::shop::{Shop, get, metric, run};
use support::{Directory, until};

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
    assert!(said.contains("shop-1 has max_age 2h, not 0s"), "{said}");
    let small = Shop::new("repair-payload", "max_payload: 524288\n");
    let (code, said) = run(&["serve", "--nats", &small.nats.urls()]);
    assert!(code == Some(2) && said.contains("it must be at least 1048576"), "{said}");
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

/// What the broker has lost: how, and what the worker says.
type Loss = (&'static str, fn(&Shop), &'static str);

const LOSSES: [Loss; 6] = [
    ("snapshot", |shop| shop.delete("books", shop.last("books")), "is damaged or lacks a part"),
    ("message", |shop| shop.delete("shop-0", shop.last("shop-0") - 1), "is no longer in the log"),
    ("last", |shop| shop.delete("results-0", shop.last("results-0")), "the last result, message"),
    ("results", |shop| shop.purge("results-0"), "the last result, message"),
    ("stream", |shop| shop.delete_stream("results-0"), "the results of messages 1 to"),
    ("foreign", |shop| shop.publish("results.0", "junk".to_owned()), "no worker has written it"),
];

/// A part of what was decided is lost, or something else stands there.
#[test]
fn what_the_broker_has_lost_stops_its_partition_alone() {
    for (name, lose, said) in LOSSES {
        let shop = Shop::new(&format!("repair-{name}"), "");
        let worker = shop.started("one", &["--snapshot-every", "20"]);
        shop.order(0, 1..=30);
        shop.answered(0, 30, "placed");
        until("there is a snapshot", || shop.has_snapshot(0));
        shop.order(0, [31]);
        shop.answered(0, 31, "placed");
        shop.order(0, [32]);
        shop.answered(0, 32, "placed");
        drop(worker);
        lose(&shop);
        let worker = shop.worker("two", &[]);
        shop.expect_a_stop(&worker, said);
    }
}

/// A stream is deleted: nothing else shows it before the next result.
#[test]
fn a_stream_that_is_missing_stops_its_partition_alone() {
    for stream in ["shop-0", "results-0"] {
        let shop = Shop::new(&format!("repair-{stream}"), "");
        let worker = shop.started("one", &[]);
        shop.order(0, 1..=5);
        shop.answered(0, 5, "placed");
        shop.delete_stream(stream);
        if stream == "results-0" {
            shop.order(0, [6]);
        }
        shop.expect_a_stop(&worker, &format!("the stream {stream} is missing"));
        let figures = ["ready", "partitions_stopped", "partitions_owned"];
        assert_eq!(figures.map(|name| metric(&worker, &format!("orders_{name}"))), [0.0, 1.0, 2.0]);
    }
}

/// With the users of the README, front ends can do what they have to, and nothing else.
#[test]
fn front_ends_cannot_write_what_workers_write() {
    let readme = include_str!("../README.md");
    let users = readme.split("```text\n").find(|part| part.starts_with("authorization {")).expect("users");
    let users = users.split("```").next().expect("their end");
    let directory = Directory::new("repair-users");
    let nats = Nats::start_with(&directory, 1, users);
    let url = |user: &str| nats.urls().replace("nats://", &format!("nats://{user}@"));
    let (worker_url, front_url) = (url("worker:change-me"), url("front:change-me-too"));
    let worker = Worker::start_at("one", &worker_url, &["--partitions", "2", "--check-after", "2s"]);
    worker.wait_until_ready();
    support::sample(directory.path(), &["--count", "300", "--items", "4"]);
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (orders, payments) = (file("orders.csv"), file("payments.csv"));
    let files = ["--orders", &orders, "--payments", &payments];
    let feed = ["feed", "--to", &front_url, "--check-after", "2s"];
    let (code, said) = run(&[&feed[..], &files].concat());
    assert!(code == Some(0) && said.contains("| orders | placed | 300 |"), "{said}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let connect = async |user: &str, password: &str| {
            let options = ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned());
            options.connect(nats.urls()).await.expect("a connection")
        };
        let client = connect("worker", "change-me").await;
        let (mine, name) = (jetstream::new(client), "results-0");
        let last = async || mine.get_stream(name).await.expect("a stream").cached_info().state.last_sequence;
        let before = last().await;
        let client = connect("front", "change-me-too").await;
        for subject in ["results.0", "books.0", "$KV.shop.worker.one", "$KV.shop.head.0", "shop.0.ticks"] {
            let front = jetstream::context::ContextBuilder::new().timeout(Duration::from_millis(500));
            let sent = front.build(client.clone()).publish(subject, "junk".into()).await;
            assert!(sent.expect("it is sent").await.is_err(), "{subject}");
        }
        let front = jetstream::new(client);
        assert!(front.delete_stream(name).await.is_err(), "nor may it delete");
        assert_eq!(last().await, before);
    });
}

//! A cluster of one NATS server, which lives; `cluster_faults.rs` kills servers and workers.

mod support;

use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::jetstream::{self, context::ContextBuilder};
use support::nats::{Nats, Worker};
use support::{Directory, audit, until};

/// Units of each item, by default.
const STOCK: u64 = 1_000_000;

/// Feeds the files in the directory; returns the exit code and all that the feed says.
fn feed(directory: &Directory, urls: &str, args: &[&str]) -> (i32, String) {
    let output = support::feed(directory.path(), urls, args).output().expect("the program starts");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8(said).expect("the program writes text"))
}

fn sample(directory: &Directory) {
    support::sample(directory.path(), &["--count", "4000", "--items", "60"]);
}

/// The feed goes by the dates of the files: payments that are in time there are in time here, too.
#[test]
fn two_workers_decide_as_replay_does_and_a_repetition_changes_nothing() {
    let directory = Directory::new("cluster");
    sample(&directory);
    let nats = Nats::start(&directory, 1);
    let args = ["--partitions", "5", "--check-after", "15s", "--snapshot-every", "300"];
    let [first, second] = ["one", "two"].map(|name| Worker::start(name, &nats, &args));
    until("each has a share", || first.owned() >= 2 && second.owned() >= 2);
    let (code, fed) = feed(&directory, &nats.urls(), &["--batch", "30"]);
    assert_eq!((code, fed.contains("| orders | placed | 4000 |")), (0, true), "{fed}");
    // When one worker ends, the other one takes its partitions at once.
    assert_eq!(first.terminate(), Some(0));
    let found = audit::cluster(&nats.urls(), directory.path(), STOCK, 15_000);
    assert!(found.starts_with("4000 outcomes"), "{found}");
    let (code, fed) = feed(&directory, &nats.urls(), &[]);
    assert!(code == 0 && fed.contains("| orders | duplicate | 4000 |"), "{fed}");
    assert!(!fed.contains("| payments | counted |"), "{fed}");
    assert_eq!(audit::cluster(&nats.urls(), directory.path(), STOCK, 15_000), found);
}

/// Runs requests with a connection of a user.
fn speak<T>(nats: &Nats, options: ConnectOptions, with: impl AsyncFnOnce(async_nats::Client) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { with(options.connect(nats.urls()).await.expect("a connection")).await })
}

/// A worker waits for its broker, and has the settings of the shop. What cannot be decided, or has
/// an answer that would be too long, costs itself: the partitions go on.
#[test]
fn a_worker_waits_for_nats_and_a_message_that_cannot_be_decided_costs_itself() {
    let directory = Directory::new("cluster-odd");
    sample(&directory);
    let mut nats = Nats::start(&directory, 1);
    nats.kill(0);
    let args = ["--partitions", "3", "--check-after", "1h"];
    let worker = Worker::start("one", &nats, &args);
    until("it says what it waits for", || worker.count("waiting for NATS: ") > 0);
    nats.begin_again(0);
    until("it owns all", || worker.owned() >= 3);
    let other = Worker::start("two", &nats, &["--partitions", "4", "--check-after", "1h"]);
    until("it is refused", || other.count("the shop has other settings") > 0);
    speak(&nats, ConnectOptions::new(), async |client| {
        let great = format!("{{\"quantity\":\"{}\"}}", "\\u0001".repeat(170_000));
        let (odd, no_order) = ("\u{1}[\n\n".to_owned(), "{\"order_id\":\"one\"}".to_owned());
        let all = [("shop.0.orders", great), ("shop.1.payments", odd), ("shop.1.orders", no_order)];
        for (subject, payload) in all.into_iter().chain([("shop.2.refunds", "{}".to_owned())]) {
            let sent = jetstream::new(client.clone()).publish(subject, payload.into()).await;
            sent.expect("it is sent").await.expect("the broker has it");
        }
    });
    let (code, fed) = feed(&directory, &nats.urls(), &[]);
    assert!(code == 0 && fed.contains("| orders | placed | 4000 |"), "{fed}");
}

/// Two workers of one name take each other for themselves, and both decide all that there is.
#[test]
fn two_that_believe_to_have_the_same_partitions_decide_once() {
    let directory = Directory::new("cluster-twins");
    sample(&directory);
    let nats = Nats::start(&directory, 1);
    let args = ["--partitions", "2", "--check-after", "3s", "--lease", "500ms", "--stock", "90"];
    let twins = ["one"; 2].map(|name| Worker::start(name, &nats, &args));
    until("each owns both", || twins.iter().all(|worker| worker.owned() >= 2));
    let (code, fed) = feed(&directory, &nats.urls(), &["--batch", "10"]);
    assert!(code == 0 && fed.contains("| orders | sold_out | "), "{fed}");
    audit::cluster(&nats.urls(), directory.path(), 90, 3_000);
    assert!(twins.iter().any(|worker| worker.count("wrong last sequence") > 0), "one of them was refused");
}

/// The broker has lost a part of what was decided, or something else stands there: that partition
/// stands still, and says why.
#[test]
fn what_the_broker_has_lost_stops_its_partition_alone() {
    let directory = Directory::new("cluster-lost");
    sample(&directory);
    let nats = Nats::start(&directory, 1);
    let args = ["--partitions", "6", "--check-after", "1h", "--snapshot-every", "200"];
    let worker = Worker::start("one", &nats, &args);
    let (code, fed) = feed(&directory, &nats.urls(), &["--batch", "30"]);
    assert!(code == 0, "{fed}");
    drop(worker);
    speak(&nats, ConnectOptions::new(), async |client| {
        let jetstream = jetstream::new(client);
        // They come after the newest snapshot.
        for log in ["shop.0.ticks", "shop.1.ticks"] {
            jetstream.publish(log, "".into()).await.expect("it is sent").await.expect("it is there");
        }
        let stream = async |name| jetstream.get_stream(name).await.expect("a stream");
        stream("shop-0").await.purge().await.expect("it is purged");
        let log = stream("shop-1").await;
        log.delete_message(log.cached_info().state.last_sequence).await.expect("it is deleted");
        stream("results-2").await.purge().await.expect("it is purged");
        jetstream.publish("results.3", "junk".into()).await.expect("it is sent").await.expect("it is there");
        stream("books").await.purge().filter("books.4.part").await.expect("they are purged");
    });
    let worker = Worker::start("two", &nats, &args);
    let said = [
        "partition 0 begins again: the log has lost messages",
        "partition 1 begins again: shop-1: message",
        "partition 2 begins again: the decisions up to message",
        "partition 3 begins again: the last message of results.3 lacks its headers",
        "partition 4 begins again: a part of the snapshot is not found",
        "partition 5 owned",
    ];
    said.iter().for_each(|said| until(said, || worker.count(said) > 0));
}

/// With the users of the README, front ends can do what they have to, and nothing else.
#[test]
fn front_ends_cannot_write_what_workers_write() {
    let readme = include_str!("../README.md");
    let users = readme.split("```text\n").find(|part| part.starts_with("authorization {")).expect("users");
    let users = users.split("```").next().expect("their end");
    let directory = Directory::new("cluster-users");
    let nats = Nats::start_with(&directory, 1, users);
    let url = |user: &str| nats.urls().replace("nats://", &format!("nats://{user}@"));
    let args = ["--partitions", "2", "--check-after", "2s"];
    let worker = Worker::start_at("one", &url("worker:change-me"), &args);
    worker.wait_until_ready();
    support::sample(directory.path(), &["--count", "300", "--items", "4"]);
    let front = url("front:change-me-too");
    let (code, said) = feed(&directory, &front, &["--check-after", "2s"]);
    assert!(code == 0 && said.contains("| orders | placed | 300 |"), "{said}");
    let options = ConnectOptions::with_user_and_password("front".to_owned(), "change-me-too".to_owned());
    speak(&nats, options, async |client| {
        let front = ContextBuilder::new().timeout(Duration::from_millis(500)).build(client);
        for subject in ["results.0", "books.0.head", "workers.one", "shop.0.ticks"] {
            let sent = front.publish(subject, "junk".into()).await;
            assert!(sent.expect("it is sent").await.is_err(), "{subject}");
        }
        assert!(front.delete_stream("results-0").await.is_err(), "nor may it delete");
    });
}

//! The end of a stream of results is gone, or a foreign message stands there: the partition goes on, or says
//! that it does not.

mod support;

use std::time::Duration;

use async_nats::{ConnectOptions, jetstream};
use support::nats::{Nats, Worker};
use support::shop::{Shop, get, run};
use support::{Directory, until};

/// Five orders, each answered by a result of its own.
fn five_results(shop: &Shop) {
    for id in 1..=5 {
        shop.order(0, [id]);
        shop.answered(0, id, "placed");
    }
}

/// The broker compares what a result expects with the last number that its stream ever had. What is gone
/// is decided again, the same.
#[test]
fn a_partition_goes_on_after_its_last_results_were_deleted() {
    let shop = Shop::new("results-deleted", "");
    let worker = shop.started("one", &[]);
    five_results(&shop);
    let last = shop.last("results-0");
    let before = shop.placed(0);
    shop.delete("results-0", last);
    shop.delete("results-0", last - 1);
    shop.order(0, [6]);
    shop.answered(0, 6, "placed");
    drop(worker);
    let after = shop.placed(0);
    assert_eq!(after[..5], before, "what was deleted is there again, as it was");
    shop.delete("results-0", shop.last("results-0"));
    let worker = shop.started("two", &[]);
    shop.order(0, [7]);
    shop.answered(0, 7, "placed");
    shop.expect_all_is_well(&worker);
}

#[test]
fn a_partition_goes_on_after_its_results_were_purged() {
    let shop = Shop::new("results-purged", "");
    let worker = shop.started("one", &[]);
    five_results(&shop);
    let before = shop.placed(0);
    shop.purge("results-0");
    shop.order(0, [6]);
    shop.answered(0, 6, "placed");
    assert_eq!(shop.placed(0)[..5], before, "the log answers all of them again");
    drop(worker);
    shop.purge("results-0");
    let worker = shop.started("two", &[]);
    shop.order(0, [7]);
    shop.answered(0, 7, "placed");
    shop.expect_all_is_well(&worker);
}

/// The worker says what to delete; then the partition goes on.
#[test]
fn a_partition_goes_on_after_a_foreign_message_was_deleted_as_the_worker_advises() {
    let shop = Shop::new("results-foreign", "");
    let worker = shop.started("one", &[]);
    five_results(&shop);
    shop.publish("results.0", "junk".to_owned());
    let junk = shop.last("results-0");
    shop.order(0, [6]);
    until("/healthz says so", || {
        let said = get(&worker, "/healthz");
        said.status == 503 && said.text().contains(&format!("nats stream rmm results-0 {junk}"))
    });
    shop.delete("results-0", junk);
    shop.answered(0, 6, "placed");
    shop.expect_all_is_well(&worker);
}

/// The snapshot is newer than the last result. It includes three orders or more.
#[test]
fn results_that_the_snapshot_includes_stop_their_partition() {
    for (name, first, said) in [("beyond", 2, "the results of messages"), ("all", 1, "the results are lost")]
    {
        let shop = Shop::new(&format!("results-{name}"), "");
        let worker = shop.started("one", &["--snapshot-every", "8"]);
        let mut id = 0;
        until("there is a snapshot", || {
            id += 1;
            shop.order(0, [id]);
            shop.answered(0, id, "placed");
            shop.has_snapshot(0)
        });
        (first..=shop.last("results-0")).for_each(|number| shop.delete("results-0", number));
        shop.order(0, [id + 1]);
        shop.expect_a_stop(&worker, said);
    }
}

/// With the users of the README, front ends can do what they have to, and nothing else.
#[test]
fn front_ends_cannot_write_what_workers_write() {
    let readme = include_str!("../README.md");
    let users = readme.split("```text\n").find(|part| part.starts_with("authorization {")).expect("users");
    let users = users.split("```").next().expect("their end");
    let directory = Directory::new("results-users");
    let nats = Nats::start_with(&directory, 1, users);
    let url = |user: &str| nats.urls().replace("nats://", &format!("nats://{user}@"));
    let (worker_url, front_url) = (url("worker:change-me"), url("front:change-me-too"));
    let worker = Worker::start_at("one", &worker_url, &["--partitions", "2", "--check-after", "2s"]);
    worker.wait_until_ready();
    support::sample(directory.path(), &["--count", "300", "--items", "4"]);
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (orders, payments) = (file("orders.csv"), file("payments.csv"));
    let files = ["--orders", &orders, "--payments", &payments];
    let feed = ["feed", "--to", &front_url, "--skip-late", "--check-after", "2s"];
    let (code, said) = run(&[&feed[..], &files].concat());
    assert!(code == Some(0) && said.contains("| orders | placed | 300 |"), "{said}");
    let audit = ["audit", "--from", &front_url, "--wait", "--as-answered", "--check-after", "2s"];
    let (code, said) = run(&[&audit[..], &files].concat());
    assert!(code == Some(0) && said.contains("no difference"), "{said}");
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

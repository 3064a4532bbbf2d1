//! A cluster of one NATS server, which lives; `cluster_faults.rs` kills servers and workers.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use support::lossy::{self, Kind};
use support::nats::{Nats, Worker};
use support::shop::{self, get};
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
    let (first, listens) =
        (Worker::start("one", &nats, &args), [&args[..], &["--listen", "127.0.0.1:0"]].concat());
    let second = Worker::start("two", &nats, &listens);
    let owned = |worker: &Worker| worker.count("partition ");
    until("each has a share", || owned(&first) >= 2 && owned(&second) >= 2);
    let (code, fed) = feed(&directory, &nats.urls(), &["--batch", "30"]);
    assert_eq!((code, fed.contains("| orders | placed | 4000 |")), (0, true), "{fed}");
    // When one worker ends, the other one takes its partitions at once.
    assert_eq!(first.terminate(), Some(0));
    let found = audit::cluster(&nats.urls(), directory.path(), STOCK, 15_000);
    assert!(found.starts_with("4000 outcomes"), "{found}");
    let metrics = get(&second, "/metrics").text();
    assert!(metrics.contains("\norders_pending 0\n") && metrics.contains("\norders_ready 1\n"), "{metrics}");
    assert_eq!(get(&second, "/healthz").status, 200);
    let (code, fed) = feed(&directory, &nats.urls(), &[]);
    assert!(code == 0 && fed.contains("| orders | duplicate | 4000 |"), "{fed}");
    assert!(!fed.contains("| payments | counted |"), "{fed}");
    assert_eq!(audit::cluster(&nats.urls(), directory.path(), STOCK, 15_000), found);
}

/// Publishes a message, as a client that does not speak to the shop may.
fn publish(nats: &Nats, subject: &str, payload: &str) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(nats.address()).expect("a connection");
    let length = payload.len();
    let text = format!("CONNECT {{\"verbose\":false}}\r\nPUB {subject} {length}\r\n{payload}\r\nPING\r\n");
    stream.write_all(text.as_bytes()).expect("it is sent");
    let mut heard = String::new();
    while !heard.contains("PONG") {
        let mut bytes = [0; 1_024];
        let count = stream.read(&mut bytes).expect("an answer");
        heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}

/// What cannot be decided, or has an answer that would be too long, costs itself: the partitions go on.
#[test]
fn a_message_that_cannot_be_decided_costs_itself() {
    let directory = Directory::new("cluster-odd");
    sample(&directory);
    let nats = Nats::start(&directory, 1);
    let args = ["--partitions", "3", "--check-after", "1h", "--listen", "127.0.0.1:0"];
    let worker = Worker::start("one", &nats, &args);
    until("it owns all", || worker.count("partition ") == 3);
    // No stream has this subject.
    publish(&nats, "shop.2.refunds", "{}");
    publish(&nats, "shop.0.orders", &format!("{{\"quantity\":\"{}\"}}", "\\u0001".repeat(100_000)));
    publish(&nats, "shop.1.payments", "\u{1}[\n\n");
    publish(&nats, "shop.1.orders", "{\"order_id\":\"one\"}");
    let (code, fed) = feed(&directory, &nats.urls(), &[]);
    assert!(code == 0 && fed.contains("| orders | placed | 4000 |"), "{fed}");
    let metrics = get(&worker, "/metrics");
    assert!(metrics.head.contains("content-type: text/plain; version=0.0.4"), "{}", metrics.head);
    assert_eq!(shop::metric(&worker, "orders_answered_total{status=\"invalid\"}"), 3.0);
}

/// The worker and the feed read streams of which one message in seven does not arrive, now
/// between two others and now at the end.
#[test]
fn deliveries_that_are_lost_are_read_again() {
    let directory = Directory::new("cluster-lossy");
    sample(&directory);
    let nats = Nats::start(&directory, 1);
    let delivered = AtomicU64::new(0);
    let urls = lossy::start(nats.address(), move |delivery| {
        let number = delivered.fetch_add(1, Ordering::Relaxed);
        delivery.kind == Kind::Delivered
            && (delivery.stream.starts_with("results-") && delivery.sequence == 1
                || delivery.stream != "KV_shop" && number % 7 == 3)
    });
    let worker = Worker::start_at("one", &urls, &["--partitions", "3", "--check-after", "2s"]);
    worker.wait_until_ready();
    let args = ["--batch", "30", "--give-up-after", "60s"];
    let (code, fed) = feed(&directory, &urls, &args);
    assert!(code == 0 && fed.contains("did not come"), "{fed}");
    audit::cluster(&nats.urls(), directory.path(), STOCK, 2_000);
}

/// A worker sees nothing of the bucket any more, as if all that it can reach of it lagged for ever. Another
/// worker takes its part, both decide that, and each order is decided once.
#[test]
fn two_that_believe_to_have_the_same_partitions_decide_once() {
    let directory = Directory::new("cluster-stale");
    sample(&directory);
    let nats = Nats::start(&directory, 1);
    let stale = Arc::<AtomicBool>::default();
    let lags = Arc::clone(&stale);
    let urls = lossy::start(nats.address(), move |delivery| {
        let is_bucket = delivery.stream == "KV_shop" || delivery.stream.starts_with("$KV.shop.");
        is_bucket && lags.load(Ordering::SeqCst)
    });
    let args = ["--partitions", "2", "--check-after", "3s", "--lease", "500ms", "--stock", "90"];
    let first = Worker::start_at("one", &urls, &args);
    until("it owns both", || first.count("partition ") == 2);
    stale.store(true, Ordering::SeqCst);
    let second = Worker::start("two", &nats, &args);
    until("another one owns a part", || second.count("partition ") == 1);
    let (code, fed) = feed(&directory, &nats.urls(), &["--batch", "10"]);
    assert!(code == 0 && fed.contains("| orders | sold_out | "), "{fed}");
    audit::cluster(&nats.urls(), directory.path(), 90, 3_000);
    let is_lost = |line: &str| line.ends_with(" lost");
    assert!(first.said(is_lost).is_none(), "it has not learnt that it lost them");
    let is_refused = |line: &str| line.contains("wrong last sequence");
    assert!(first.said(is_refused).or(second.said(is_refused)).is_some(), "one of them was refused");
}

/// The server has taken messages in, and dies before it says so: the client sends them again, and nothing
/// is decided twice.
#[test]
fn what_was_not_acknowledged_is_sent_again_and_decided_once() {
    let directory = Directory::new("cluster-ack");
    sample(&directory);
    let mut nats = Nats::start(&directory, 1);
    let args = ["--partitions", "3", "--check-after", "2s"];
    let first = Worker::start("one", &nats, &args);
    until("it owns all", || first.count("partition ") == 3);
    assert_eq!(first.terminate(), Some(0));
    let lost = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&lost);
    let urls = lossy::start(nats.address(), move |delivery| {
        let log = delivery.kind == Kind::Ack && delivery.stream.starts_with("shop-");
        log && counted.fetch_add(1, Ordering::Relaxed) < 24
    });
    let (directory, urls) = (&directory, &urls);
    let (code, fed) = thread::scope(|scope| {
        let sent = ["--batch", "30", "--give-up-after", "60s"];
        let fed = scope.spawn(move || feed(directory, urls, &sent));
        until("acknowledgements are lost", || lost.load(Ordering::Relaxed) >= 8);
        nats.restart(0, Duration::ZERO);
        let second = Worker::start("two", &nats, &args);
        let fed = fed.join().expect("no panic");
        assert_eq!(second.terminate(), Some(0));
        fed
    });
    assert!(code == 0 && fed.contains("| orders | placed | 4000 |"), "{fed}");
    let third = Worker::start("three", &nats, &args);
    audit::cluster(&nats.urls(), directory.path(), STOCK, 2_000);
    assert_eq!(third.terminate(), Some(0));
}

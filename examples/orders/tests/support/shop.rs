//! A cluster shop of two partitions over a real server, and a front end.

use std::collections::BTreeSet;
use std::process::Command;

use async_nats::jetstream;
use async_nats::jetstream::stream::Stream;
use tokio::runtime::Runtime;

use super::nats::{Nats, Worker};
use super::{Answer, Client, Directory, PROGRAM, until};

const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];

pub(crate) fn get(worker: &Worker, path: &str) -> Answer {
    let mut address = None;
    until("it says where it listens", || {
        address = worker.line("listening on ").and_then(|address| address.parse().ok());
        address.is_some()
    });
    let mut client = Client::connect(address.expect("an address")).expect("a connection");
    client.send("GET", path, &[], b"").expect("an answer")
}

pub(crate) fn run(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(PROGRAM).args(args).output().expect("the program starts");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// The partition of an item, of 2: FNV-1a, as front ends compute it.
fn partition_of(item: &str) -> u64 {
    item.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        % 2
}

/// A shop of two partitions, and a front end.
pub(crate) struct Shop {
    pub(crate) directory: Directory,
    pub(crate) nats: Nats,
    pub(crate) runtime: Runtime,
    /// An item of each partition.
    pub(crate) items: [String; 2],
}

impl Shop {
    pub(crate) fn new(name: &str, config: &str) -> Self {
        let directory = Directory::new(name);
        let nats = Nats::start_with(&directory, 1, config);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let item = |partition| {
            let mut names = (0..).map(|number| format!("item-{number}"));
            names.find(|name| partition_of(name) == partition).expect("a name")
        };
        Self { directory, nats, runtime, items: [item(0), item(1)] }
    }

    pub(crate) fn worker(&self, name: &str, more: &[&str]) -> Worker {
        let args = ["--partitions", "2", "--check-after", "1h", "--lease", "1s"];
        Worker::start(name, &self.nats, &[&args[..], &LISTEN, more].concat())
    }

    pub(crate) fn started(&self, name: &str, more: &[&str]) -> Worker {
        let worker = self.worker(name, more);
        until("it owns both", || worker.count("partition ") >= 2);
        worker
    }

    pub(crate) fn jetstream(&self) -> jetstream::Context {
        // The client begins tasks of its own.
        let _guard = self.runtime.enter();
        let client = self.runtime.block_on(async_nats::connect(self.nats.urls())).expect("a connection");
        jetstream::new(client)
    }

    pub(crate) fn stream(&self, name: &str) -> Stream {
        self.runtime.block_on(self.jetstream().get_stream(name)).expect("a stream")
    }

    /// Publishes a message of orders for a partition, and waits until the broker has it.
    pub(crate) fn order(&self, partition: usize, ids: impl IntoIterator<Item = u64>) {
        let item = &self.items[partition];
        let line = |id| {
            format!(
                "{{\"order_id\":{id},\"item\":\"{item}\",\"quantity\":1,\"amount_cents\":{}}}\n",
                id + 100
            )
        };
        self.publish(&format!("shop.{partition}.orders"), ids.into_iter().map(line).collect());
    }

    pub(crate) fn publish(&self, subject: &str, payload: String) {
        let (jetstream, subject) = (self.jetstream(), subject.to_owned());
        let sent = async { jetstream.publish(subject, payload.into()).await?.await };
        self.runtime.block_on(sent).expect("the broker has it");
    }

    /// All lines of results of a partition.
    pub(crate) fn results(&self, partition: usize) -> Vec<String> {
        let stream = self.stream(&format!("results-{partition}"));
        let last = stream.cached_info().state.last_sequence;
        let read = async {
            let mut lines = Vec::new();
            for number in 1..=last {
                let Ok(message) = stream.get_raw_message(number).await else { continue };
                let text = String::from_utf8_lossy(&message.payload).into_owned();
                lines.extend(text.lines().map(str::to_owned));
            }
            lines
        };
        self.runtime.block_on(read)
    }

    /// Waits until an order has an answer.
    pub(crate) fn answered(&self, partition: usize, id: u64, status: &str) {
        let line = format!("\"order_id\":{id},\"status\":\"{status}\"");
        until(&line, || self.results(partition).iter().any(|found| found.contains(&line)));
    }

    /// Partition 0 has stopped, and says what to do; the other one goes on.
    pub(crate) fn expect_a_stop(&self, worker: &Worker, said: &str) {
        until("/healthz says so", || get(worker, "/healthz").status == 503);
        let health = get(worker, "/healthz").text();
        until("/healthz names it", || get(worker, "/healthz").text().contains("partition 0 has stopped"));
        let found = get(worker, "/healthz").text();
        assert!(found.contains(said) && found.contains("nats stream restore"), "{health}{found}");
        assert!(!found.contains("partition 1"), "{found}");
        self.order(1, [900_001]);
        self.answered(1, 900_001, "placed");
    }

    /// All is well: orders are placed, and each one once.
    pub(crate) fn expect_all_is_well(&self, worker: &Worker) {
        until("all is well", || get(worker, "/healthz").status == 200);
        self.order(0, [800_001]);
        self.answered(0, 800_001, "placed");
        let placed = self.placed(0);
        assert_eq!(placed.iter().collect::<BTreeSet<_>>().len(), placed.len(), "each order is placed once");
    }

    /// Whether a snapshot of a partition is whole: its head names it.
    pub(crate) fn has_snapshot(&self, partition: usize) -> bool {
        let (bucket, head) = (self.stream("KV_shop"), format!("$KV.shop.head.{partition}"));
        self.runtime.block_on(bucket.get_last_raw_message_by_subject(&head)).is_ok()
    }

    /// Deletes a message of a stream.
    pub(crate) fn delete(&self, stream: &str, number: u64) {
        let stream = self.stream(stream);
        self.runtime.block_on(stream.delete_message(number)).expect("it is deleted");
    }

    pub(crate) fn delete_stream(&self, stream: &str) {
        self.runtime.block_on(self.jetstream().delete_stream(stream)).expect("it is deleted");
    }

    pub(crate) fn purge(&self, stream: &str) {
        let stream = self.stream(stream);
        self.runtime.block_on(async { stream.purge().await }).expect("it is purged");
    }

    /// The number of the last message that a stream ever had.
    pub(crate) fn last(&self, stream: &str) -> u64 {
        self.stream(stream).cached_info().state.last_sequence
    }

    /// The lines that say that an order of a partition was placed.
    pub(crate) fn placed(&self, partition: usize) -> Vec<String> {
        let lines = self.results(partition).into_iter();
        lines.filter(|line| line.contains("\"placed\"")).collect()
    }
}

/// The value of a metric of a worker, by its whole name.
pub(crate) fn metric(worker: &Worker, name: &str) -> f64 {
    let text = get(worker, "/metrics").text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in\n{text}"))
}

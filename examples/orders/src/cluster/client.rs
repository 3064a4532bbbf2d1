//! A client of a shop over NATS: sends lines, and receives the answers.
//!
//! A line goes to the partition of its item; a payment goes to that of its order's item, which the
//! client knows. The answer comes as a line of the partition's results. So *sent* is not
//! *answered*: a message that the broker has, but that no worker has answered in time, is sent
//! again, with the same id. For two minutes the broker drops a repeated id; the books know the
//! message's orders and payments for much longer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use futures_util::future::{join_all, try_join_all};
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::broker::{Broker, Failure, PAUSE, insist};
use super::names::{self, Kind};
use super::partition::MAX_LINES;
use super::reader::Reader;

/// The time after which a line without an answer is sent again.
const REPEAT: Duration = Duration::from_secs(5);

/// What identifies a line in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Order(u64),
    Payment(String),
}

/// A line, and where it goes.
pub(crate) struct Addressed<'a> {
    /// Whose partition it goes to.
    pub(crate) item: &'a str,
    pub(crate) name: Name,
    /// In JSON, with its end.
    pub(crate) line: String,
}

/// A line of a result: an answer, or an outcome.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Line {
    pub(crate) order_id: Option<u64>,
    pub(crate) payment_id: Option<String>,
    /// An answer has it.
    pub(crate) status: Option<String>,
    /// Why an answer finds a line invalid.
    pub(crate) error: Option<String>,
    /// An outcome has it.
    #[cfg(test)]
    pub(crate) state: Option<String>,
}

impl Line {
    pub(crate) fn name(&self) -> Option<Name> {
        let order = || self.order_id.map(Name::Order);
        self.payment_id.clone().map(Name::Payment).or_else(order)
    }
}

/// The lines of a result, without what is no line of a result.
pub(crate) fn lines(payload: &[u8]) -> Vec<Line> {
    let lines = payload.split(|&byte| byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Lines that wait for their answers.
type Waiting = Arc<Mutex<HashMap<Name, oneshot::Sender<Line>>>>;

/// A connection to the shop, shared by all that send.
pub(crate) struct ShopClient {
    broker: Broker,
    waiting: Waiting,
    give_up_after: Duration,
    /// Makes the ids of this client's messages its own.
    session: u64,
    /// Ends with the client.
    _readers: JoinSet<()>,
}

impl ShopClient {
    /// Connects, and listens to the results from now on. The caller's runtime must have timers.
    pub(crate) async fn connect(urls: &str, give_up_after: Duration) -> Result<Self, Failure> {
        let broker = Broker::find(urls, give_up_after).await?;
        let (waiting, mut readers) = (Waiting::default(), JoinSet::new());
        for partition in 0..broker.settings.partitions {
            let reader = insist(give_up_after, || async {
                let last = broker.last_result(partition).await?.sequence;
                results(&broker, partition, last + 1).await
            });
            readers.spawn(hear(reader.await?, Arc::clone(&waiting)));
        }
        let session = fastrand::u64(..);
        Ok(Self { broker, waiting, give_up_after, session, _readers: readers })
    }

    /// Sends lines until all are answered; returns the answers in order, and how many messages were
    /// sent again. Lines of one item are decided in order.
    pub(crate) async fn ask(&self, kind: Kind, lines: &[Addressed<'_>]) -> Result<(Vec<Line>, u64), Failure> {
        let answers = lines.iter().map(|line| self.wait_for(line.name.clone())).collect::<Vec<_>>();
        let mut answers = std::pin::pin!(try_join_all(answers));
        let (begin, messages) = (Instant::now(), self.messages(lines));
        let mut repeated = 0;
        loop {
            self.publish(kind, &messages).await;
            match shardwheel::timeout(REPEAT, &mut answers).await {
                Ok(answers) => return Ok((answers?, repeated)),
                Err(_) if begin.elapsed() < self.give_up_after => repeated += messages.len() as u64,
                Err(_) => return Err("no worker answers".into()),
            }
        }
    }

    fn wait_for(&self, name: Name) -> oneshot::Receiver<Line> {
        let (answer, answered) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(name, answer);
        answered
    }

    /// One message, or more, for each partition.
    fn messages(&self, lines: &[Addressed<'_>]) -> Vec<(u32, String)> {
        let mut by_partition = HashMap::<u32, Vec<&str>>::new();
        for line in lines {
            let partition = names::partition_of(line.item, self.broker.settings.partitions);
            by_partition.entry(partition).or_default().push(&line.line);
        }
        let messages = by_partition.iter().flat_map(|(partition, lines)| {
            // The longest lines of so many fit into a message.
            lines.chunks(MAX_LINES).map(|lines| (*partition, lines.concat()))
        });
        messages.collect()
    }

    /// Publishes messages. If one fails, its lines have no answer and it is sent again.
    async fn publish(&self, kind: Kind, messages: &[(u32, String)]) {
        let sent = messages.iter().map(|(partition, payload)| async move {
            let mut headers = HeaderMap::new();
            headers
                .insert(NATS_MESSAGE_ID, format!("{:016x}", names::digest(self.session, payload.as_bytes())));
            let subject = names::log_subject(*partition, kind);
            let jetstream = &self.broker.jetstream;
            jetstream.publish_with_headers(subject, headers, payload.clone().into()).await?.await
        });
        drop(join_all(sent).await);
    }
}

/// A reader of the results of a partition.
async fn results(broker: &Broker, partition: u32, next: u64) -> Result<Reader, Failure> {
    Reader::new(broker, names::results(partition), next).await
}

/// Passes answers on to those that wait for them.
async fn hear(mut reader: Reader, waiting: Waiting) {
    loop {
        match reader.read().await {
            Ok(inputs) if inputs.is_empty() => reader.more().await,
            Ok(inputs) => inputs.iter().for_each(|input| answer(&input.payload, &waiting)),
            // It is asked again. Lines that stay without an answer are sent again.
            Err(_) => shardwheel::sleep(PAUSE).await,
        }
    }
}

fn answer(result: &[u8], waiting: &Waiting) {
    let lines = lines(result);
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    for line in lines.into_iter().filter(|line| line.status.is_some()) {
        if let Some(answer) = line.name().and_then(|name| waiting.remove(&name)) {
            // The sender may have given up.
            let _ = answer.send(line);
        }
    }
}

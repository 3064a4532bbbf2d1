//! The committer: makes the writer's groups durable, one after the other, and then answers.

use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};
use tokio::sync::oneshot;

use crate::store::{Changes, Disk, Open, Store, StoreError};

use super::books::{Checked, Stock};
use super::lines::Answer;
use super::metrics::Metrics;

/// A group that the writer has decided.
pub(crate) struct Decided {
    pub(crate) changes: Changes,
    /// There is something to commit.
    pub(crate) commit: bool,
    pub(crate) replies: Vec<Reply>,
    pub(crate) checked: Vec<Checked>,
    /// Orders that are pending after it.
    pub(crate) pending: usize,
}

/// An answer that waits for its commit.
pub(crate) enum Reply {
    Lines(oneshot::Sender<Vec<Answer>>, Vec<Answer>),
    Order(oneshot::Sender<Option<Open>>, Option<Open>),
    Stock(oneshot::Sender<Stock>, Stock),
}

/// Commits groups until the writer has no more, or one fails. A group that fails gets no answers.
pub(crate) fn run(
    store: &Disk,
    groups: &Receiver<Decided>,
    results: &Sender<Result<(), StoreError>>,
    metrics: &Metrics,
) {
    for group in groups {
        let committed = if group.commit { commit(store, &group.changes, metrics) } else { Ok(()) };
        let failed = committed.is_err();
        if !failed {
            publish(&group, metrics);
        }
        // The writer may have ended. It goes on with the next group while this one is answered.
        let _ = results.send(committed);
        if failed {
            return;
        }
        group.replies.into_iter().for_each(|reply| answer(reply, metrics));
    }
}

fn commit(store: &Disk, changes: &Changes, metrics: &Metrics) -> Result<(), StoreError> {
    let begin = Instant::now();
    store.commit(changes)?;
    metrics.committed(begin.elapsed());
    Ok(())
}

/// Counts what is durable now.
fn publish(group: &Decided, metrics: &Metrics) {
    metrics.set("orders_pending", group.pending as f64);
    group.checked.iter().for_each(|&checked| metrics.checked(checked));
    metrics.ended(group.changes.ended.iter().map(|ended| ended.state));
}

/// A client that has gone away gets no answer.
fn answer(reply: Reply, metrics: &Metrics) {
    match reply {
        Reply::Lines(reply, answers) => {
            metrics.answered(&answers);
            let _ = reply.send(answers);
        }
        Reply::Order(reply, order) => drop(reply.send(order)),
        Reply::Stock(reply, stock) => drop(reply.send(stock)),
    }
}

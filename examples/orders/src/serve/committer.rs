//! The committer: makes the writer's groups durable, one after the other, and then answers.

use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};
use tokio::sync::oneshot;

use crate::store::{Changes, Disk, Open, Store, StoreError};

use super::books::{Checked, Full, Stock};
use super::lines::Answer;
use super::metrics::Figure;
use super::shared::Shared;

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
    Lines(oneshot::Sender<Result<Vec<Answer>, Full>>, Result<Vec<Answer>, Full>),
    Order(oneshot::Sender<Option<Open>>, Option<Open>),
    Stock(oneshot::Sender<Stock>, Stock),
}

/// Commits groups until the writer has no more, or one fails. A group that fails gets no answers.
pub(crate) fn run(
    store: &Disk,
    groups: &Receiver<Decided>,
    results: &Sender<Result<(), StoreError>>,
    shared: &Shared,
) {
    for group in groups {
        let committed = if group.commit { commit(store, &group.changes, shared) } else { Ok(()) };
        let failed = committed.is_err();
        if !failed {
            publish(&group, shared);
        }
        // The writer may have ended. It goes on with the next group while this one is answered.
        let _ = results.send(committed);
        if failed {
            return;
        }
        group.replies.into_iter().for_each(|reply| answer(reply, shared));
    }
}

fn commit(store: &Disk, changes: &Changes, shared: &Shared) -> Result<(), StoreError> {
    let (begin, _waiting) = (Instant::now(), shared.wait());
    store.commit(changes)?;
    shared.metrics.committed(begin.elapsed());
    Ok(())
}

/// Counts what is durable now.
fn publish(group: &Decided, shared: &Shared) {
    let metrics = &shared.metrics;
    metrics.of(Figure::Pending).set(group.pending as u64);
    group.checked.iter().for_each(|&checked| metrics.checked(checked));
    metrics.ended(group.changes.ended.iter().map(|ended| ended.state));
}

/// A client that has gone away gets no answer.
fn answer(reply: Reply, shared: &Shared) {
    match reply {
        Reply::Lines(reply, answers) => {
            shared.metrics.answered(answers.as_deref().unwrap_or_default());
            let _ = reply.send(answers);
        }
        Reply::Order(reply, order) => drop(reply.send(order)),
        Reply::Stock(reply, stock) => drop(reply.send(stock)),
    }
}

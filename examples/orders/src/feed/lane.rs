//! One connection of a feed: sends its lane's lines in batches, and notes the answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use order_reconciliation::files::Files;
use order_reconciliation::outcomes::{MadePayment, PlacedOrder};

use crate::client::Failure;
use crate::cluster::{Addressed, Kind, Name};
use crate::serve::lines::quoted;

use super::plan::{Lane, Paid};
use super::target::Link;

/// What the lanes share.
pub(crate) struct Shared {
    pub(crate) files: Files,
    pub(crate) batch: usize,
    pub(crate) pace: Pace,
    pub(crate) done: Mutex<Done>,
}

/// What is answered.
#[derive(Clone, Default)]
pub(crate) struct Done {
    /// Lines by kind and answer.
    pub(crate) answers: BTreeMap<(&'static str, String), u64>,
    /// The reason of the first line that the server found invalid.
    pub(crate) invalid: Option<String>,
    pub(crate) repeated: u64,
}

impl Shared {
    pub(crate) fn with_done<R>(&self, with: impl FnOnce(&mut Done) -> R) -> R {
        with(&mut self.done.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// When a line is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) start: Instant,
    /// The date at `start`, in ms.
    pub(crate) first: u64,
    /// `None`: as fast as possible.
    pub(crate) speed: Option<f64>,
}

impl Pace {
    fn due(&self, at: u64) -> Instant {
        let wait = self.speed.map_or(0.0, |speed| at.saturating_sub(self.first) as f64 / speed);
        self.start + Duration::from_secs_f64(wait / 1e3)
    }
}

/// What a lane does next.
enum Step {
    Orders(usize),
    Payments(usize),
    Wait(Instant),
}

/// A lane that is being sent.
pub(crate) struct Sender {
    pub(crate) shared: Arc<Shared>,
    pub(crate) lane: Lane,
    pub(crate) link: Link,
    /// How many orders and payments have been answered.
    pub(crate) orders: usize,
    pub(crate) payments: usize,
}

impl Sender {
    /// Sends all orders and payments.
    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        while let Some(step) = self.next() {
            match step {
                Step::Orders(count) => self.orders(count).await?,
                Step::Payments(count) => self.payments(count).await?,
                Step::Wait(until) => shardwheel::sleep_until(until).await,
            }
        }
        Ok(())
    }

    /// Payments go first, because their orders have been answered. `None`: all is sent.
    fn next(&self) -> Option<Step> {
        let (files, now) = (&self.shared.files, Instant::now());
        let orders = &self.lane.orders[self.orders..];
        let payments = &self.lane.payments[self.payments..];
        let placed_at = |&slot: &u32| self.shared.pace.due(files.orders[slot as usize].placed_at);
        let paid_at = |paid: &Paid| self.shared.pace.due(files.payments[paid.payment as usize].paid_at);
        let answered = |paid: &&Paid| (paid.order as usize) < self.orders && paid_at(paid) <= now;
        let payable = payments.iter().take(self.shared.batch).take_while(answered).count();
        if payable > 0 {
            return Some(Step::Payments(payable));
        }
        let batch = orders.iter().take(self.shared.batch);
        let placeable = batch.take_while(|slot| placed_at(slot) <= now).count();
        if placeable > 0 {
            return Some(Step::Orders(placeable));
        }
        let next = orders.first().map(placed_at).into_iter().chain(payments.first().map(paid_at)).min();
        next.map(Step::Wait)
    }

    async fn orders(&mut self, count: usize) -> Result<(), Failure> {
        let (shared, end) = (Arc::clone(&self.shared), self.orders + count);
        let line = |&slot: &u32| {
            let PlacedOrder { order_id, item, quantity, amount, .. } = &shared.files.orders[slot as usize];
            let (name, names) =
                (Name::Order(*order_id), format!("\"order_id\":{order_id},\"item\":{}", quoted(item)));
            let line = format!("{{{names},\"quantity\":{quantity},\"amount_cents\":{amount}}}\n");
            Addressed { item, name, line }
        };
        let lines = self.lane.orders[self.orders..end].iter().map(line).collect::<Vec<_>>();
        self.send(Kind::Orders, &lines).await?;
        self.orders = end;
        Ok(())
    }

    async fn payments(&mut self, count: usize) -> Result<(), Failure> {
        let (shared, end) = (Arc::clone(&self.shared), self.payments + count);
        let line = |paid: &Paid| {
            let MadePayment { order_id, amount, .. } = shared.files.payments[paid.payment as usize];
            let slot = self.lane.orders[paid.order as usize];
            // It says which partition of a cluster the payment goes to.
            let item = &*shared.files.orders[slot as usize].item;
            let id = format!("{order_id}-{}", paid.number);
            let names = format!("\"payment_id\":\"{id}\",\"order_id\":{order_id},\"item\":{}", quoted(item));
            let line = format!("{{{names},\"amount_cents\":{amount}}}\n");
            Addressed { item, name: Name::Payment(id), line }
        };
        let lines = self.lane.payments[self.payments..end].iter().map(line).collect::<Vec<_>>();
        self.send(Kind::Payments, &lines).await?;
        self.payments = end;
        Ok(())
    }

    /// Sends a batch, and notes the answers.
    async fn send(&mut self, kind: Kind, lines: &[Addressed<'_>]) -> Result<(), Failure> {
        let before = self.link.repeated();
        let answers = self.link.send(kind, lines).await?;
        self.shared.with_done(|done| {
            done.repeated += self.link.repeated() - before;
            for answer in answers {
                done.invalid = done.invalid.take().or(answer.error);
                *done.answers.entry((kind.name(), answer.status.unwrap_or_default())).or_default() += 1;
            }
        });
        Ok(())
    }
}

//! One connection of a feed: sends its lane's lines in batches, and notes the answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use order_reconciliation::files::Files;
use order_reconciliation::outcomes::{MadePayment, PlacedOrder};
use order_reconciliation::progress::Progress;

use crate::client::Failure;
use crate::cluster::{Addressed, Kind, Name};
use crate::serve::lines::quoted;

use super::plan::{Lane, Paid};
use super::target::Link;

/// How long after the last check late payments are sent. The server's clock may be a little behind
/// this machine's.
const MARGIN: u64 = 1_000;

/// How far a lane has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    pub(crate) orders: usize,
    pub(crate) in_time: usize,
    pub(crate) late: usize,
    /// The latest check of an order that was answered, in ms.
    pub(crate) last_check_at: u64,
}

/// What the lanes share.
pub(crate) struct Shared {
    pub(crate) files: Files,
    pub(crate) batch: usize,
    pub(crate) pace: Pace,
    pub(crate) progress: Progress,
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
    pub(crate) cursor: Cursor,
}

impl Sender {
    /// Sends all orders, and the payments that are not late.
    pub(crate) async fn run(mut self) -> Result<Self, Failure> {
        while let Some(step) = self.next() {
            match step {
                Step::Orders(count) => self.orders(count).await?,
                Step::Payments(count) => self.in_time(count).await?,
                Step::Wait(until) => shardwheel::sleep_until(until).await,
            }
        }
        Ok(self)
    }

    /// Sends the late payments, after the last check.
    pub(crate) async fn run_late(mut self) -> Result<Self, Failure> {
        if self.cursor.late < self.lane.late.len() {
            shardwheel::sleep(until_checked(self.cursor.last_check_at)).await;
        }
        while self.cursor.late < self.lane.late.len() {
            let end = self.lane.late.len().min(self.cursor.late + self.shared.batch);
            let late = self.lane.late[self.cursor.late..end].to_vec();
            self.payments(&late, |cursor| cursor.late = end).await?;
        }
        Ok(self)
    }

    /// Payments go first, because their orders have been answered. `None`: all is sent.
    fn next(&self) -> Option<Step> {
        let (files, now) = (&self.shared.files, Instant::now());
        let orders = &self.lane.orders[self.cursor.orders..];
        let payments = &self.lane.in_time[self.cursor.in_time..];
        let placed_at = |&slot: &u32| self.shared.pace.due(files.orders[slot as usize].placed_at);
        let paid_at = |paid: &Paid| self.shared.pace.due(files.payments[paid.payment as usize].paid_at);
        let answered = |paid: &&Paid| (paid.order as usize) < self.cursor.orders && paid_at(paid) <= now;
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
        let (shared, end) = (Arc::clone(&self.shared), self.cursor.orders + count);
        let line = |&slot: &u32| {
            let PlacedOrder { order_id, item, quantity, amount, .. } = &shared.files.orders[slot as usize];
            let (name, names) =
                (Name::Order(*order_id), format!("\"order_id\":{order_id},\"item\":{}", quoted(item)));
            let line = format!("{{{names},\"quantity\":{quantity},\"amount_cents\":{amount}}}\n");
            Addressed { item, name, line }
        };
        let lines = self.lane.orders[self.cursor.orders..end].iter().map(line).collect::<Vec<_>>();
        self.send(Kind::Orders, &lines, |cursor| cursor.orders = end).await
    }

    async fn in_time(&mut self, count: usize) -> Result<(), Failure> {
        let end = self.cursor.in_time + count;
        let paid = self.lane.in_time[self.cursor.in_time..end].to_vec();
        self.payments(&paid, |cursor| cursor.in_time = end).await
    }

    async fn payments(&mut self, paid: &[Paid], advance: impl FnOnce(&mut Cursor)) -> Result<(), Failure> {
        let shared = Arc::clone(&self.shared);
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
        let lines = paid.iter().map(line).collect::<Vec<_>>();
        self.send(Kind::Payments, &lines, advance).await
    }

    /// Sends a batch, and notes the answers and how far the lane has come.
    async fn send(
        &mut self,
        kind: Kind,
        lines: &[Addressed<'_>],
        advance: impl FnOnce(&mut Cursor),
    ) -> Result<(), Failure> {
        let before = self.link.repeated();
        let answers = self.link.send(kind, lines).await?;
        let last = answers.iter().filter_map(|answer| answer.check_at_ms).max();
        self.cursor.last_check_at = self.cursor.last_check_at.max(last.unwrap_or(0));
        advance(&mut self.cursor);
        self.shared.progress.add(lines.len() as u64);
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

/// How long it is until late payments may be sent.
pub(crate) fn until_checked(last_check_at: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let at = if last_check_at == 0 { 0 } else { last_check_at.saturating_add(MARGIN) };
    Duration::from_millis(at.saturating_sub(now))
}

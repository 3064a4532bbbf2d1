//! A producer: places the orders of its page, schedules their checks, and cancels the checks of the
//! orders that are paid. It keeps the handles of its checks.
//!
//! It works in batches. Each batch has two parts: the books, then the engine. Only the engine part
//! is timed, so that neither reading a clock nor the bookkeeping counts as the engine's cost.

use crate::engine::{self, Costs, Desk};
use crate::ledger::{Ledger, Micros, OrderRef};
use crate::plan::{Payment, Planned, Timeline};

/// Orders or payments in a batch.
const BATCH: usize = 1_024;

/// `expect_cancel` is called this many cancels before the cancel.
const AHEAD: usize = 8;

/// One thread's part of the job.
pub(crate) struct Producer<'a, D: Desk> {
    ledger: &'a Ledger,
    desk: D,
    page: u32,
    /// What is still to be done.
    orders: &'a [Planned<u32>],
    payments: &'a [Planned<Payment>],
    /// Indexed by the order's slot; `None` if the order was not placed.
    handles: Vec<Option<D::Handle>>,
    pub(crate) costs: Costs,
}

impl<'a, D: Desk> Producer<'a, D> {
    pub(crate) fn new(ledger: &'a Ledger, desk: D, page: u32, timeline: &'a Timeline) -> Self {
        let Timeline { orders, payments } = timeline;
        let (handles, costs) = (vec![None; orders.len()], Costs::default());
        Self { ledger, desk, page, orders, payments, handles, costs }
    }

    /// When the next order or payment is planned.
    pub(crate) fn next_event(&self) -> Option<Micros> {
        let (order, payment) = (self.orders.first(), self.payments.first());
        order.map(|order| order.at).into_iter().chain(payment.map(|payment| payment.at)).min()
    }

    /// Handles everything planned up to and including `until`: orders first, so that payments find
    /// their orders.
    pub(crate) fn work(&mut self, until: Micros) {
        while let Some(batch) = take(&mut self.orders, until) {
            self.place(batch);
        }
        while let Some(batch) = take(&mut self.payments, until) {
            self.pay(batch);
        }
    }

    /// Enters orders in the books, and schedules the checks of those that are accepted.
    fn place(&mut self, batch: &[Planned<u32>]) {
        let Self { ledger, desk, page: number, handles, costs, .. } = self;
        let mut page = ledger.page(*number);
        let accepted = batch.iter().filter_map(|&Planned { at, event: slot }| {
            let due = page.place(slot, at)?;
            Some((engine::tick_from(due), OrderRef { page: *number, slot }))
        });
        let accepted = accepted.collect::<Vec<_>>();
        drop(page);
        let mut scheduled = Vec::with_capacity(accepted.len());
        costs.schedule.time(|| {
            scheduled.extend(accepted.iter().map(|&(deadline, order)| desk.schedule(deadline, order)));
        });
        costs.schedule.count(accepted.len());
        for ((_, order), handle) in accepted.iter().zip(scheduled) {
            handles[order.slot as usize] = Some(handle);
        }
    }

    /// Enters payments in the books, and cancels the checks that a payment in full makes unnecessary.
    fn pay(&mut self, batch: &[Planned<Payment>]) {
        let Self { ledger, desk, page, handles, costs, .. } = self;
        let mut page = ledger.page(*page);
        let paid = batch.iter().filter_map(|Planned { event: Payment { slot, amount, paid_at }, .. }| {
            if page.pay(*slot, *amount, *paid_at) { handles[*slot as usize] } else { None }
        });
        let paid = paid.collect::<Vec<_>>();
        drop(page);
        costs.cancelled += costs.cancel.time(|| {
            let mut cancelled = 0;
            for (index, &handle) in paid.iter().enumerate() {
                if let Some(&soon) = paid.get(index + AHEAD) {
                    desk.expect_cancel(soon);
                }
                cancelled += u64::from(desk.cancel(handle));
            }
            cancelled
        });
        costs.cancel.count(paid.len());
    }
}

/// Splits off the next events up to and including `until`, one batch at most.
fn take<'a, T>(events: &mut &'a [Planned<T>], until: Micros) -> Option<&'a [Planned<T>]> {
    let ahead = &events[..events.len().min(BATCH)];
    let (batch, rest) = events.split_at(ahead.partition_point(|event| event.at <= until));
    *events = rest;
    (!batch.is_empty()).then_some(batch)
}

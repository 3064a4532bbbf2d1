//! A producer: places the orders of its page, schedules their checks, and cancels the checks of the
//! orders that are paid. It keeps the handles of its checks.
//!
//! It works in batches. Each batch has three parts: the books, the engine, the books. Only the
//! engine part is timed, so that neither reading a clock nor the bookkeeping counts as the engine's
//! cost.

use std::iter;
use std::mem;
use std::ops::Range;

use crate::clock::Clock;
use crate::engine::{Costs, Desk};
use crate::ledger::{Ledger, Micros, OrderRef, Received};
use crate::load::{PlannedOrder, PlannedPayment, Timeline};
use crate::progress::Progress;

/// Orders or payments in a batch.
const BATCH: usize = 1_024;

/// `expect_cancel` is called this many cancels before the cancel.
const AHEAD: usize = 8;

/// What all producers share.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) clock: Clock,
    pub(crate) progress: &'a Progress,
}

/// One thread's part of the job.
pub(crate) struct Producer<'a, D: Desk> {
    setting: Setting<'a>,
    desk: D,
    page: u32,
    orders: Queue<PlannedOrder>,
    payments: Queue<PlannedPayment>,
    /// Indexed by the order's slot.
    handles: Vec<Option<D::Handle>>,
    costs: Costs,
    // Scratch space of one batch, kept to reuse its memory.
    accepted: Vec<(D::Deadline, OrderRef)>,
    scheduled: Vec<Option<D::Handle>>,
    paid: Vec<(u32, D::Handle)>,
    cancelled: Vec<bool>,
}

impl<'a, D: Desk> Producer<'a, D> {
    pub(crate) fn new(setting: Setting<'a>, desk: D, page: u32, timeline: Timeline) -> Self {
        Self {
            setting,
            desk,
            page,
            handles: vec![None; timeline.orders.len()],
            orders: Queue { events: timeline.orders, next: 0 },
            payments: Queue { events: timeline.payments, next: 0 },
            costs: Costs::default(),
            accepted: Vec::new(),
            scheduled: Vec::new(),
            paid: Vec::new(),
            cancelled: Vec::new(),
        }
    }

    /// When the next order or payment is planned.
    pub(crate) fn next_event(&self) -> Option<Micros> {
        self.orders.first().into_iter().chain(self.payments.first()).min()
    }

    /// Handles everything planned up to and including `until`: orders first, so that payments find
    /// their orders.
    pub(crate) fn work(&mut self, until: Micros) {
        while let Some(batch) = self.orders.take(until) {
            self.place(batch);
        }
        while let Some(batch) = self.payments.take(until) {
            self.pay(batch);
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.setting.clock
    }

    pub(crate) fn costs(&self) -> Costs {
        self.costs
    }

    fn place(&mut self, batch: Range<usize>) {
        self.reserve(batch);
        let Self { desk, accepted, scheduled, costs, .. } = self;
        scheduled.reserve(accepted.len());
        costs.schedule.time(|| {
            scheduled.extend(accepted.iter().map(|&(deadline, order)| desk.schedule(deadline, order)));
        });
        self.keep_handles();
    }

    /// Enters orders in the books; the accepted orders need a check.
    fn reserve(&mut self, batch: Range<usize>) {
        let Setting { ledger, clock, progress } = self.setting;
        let mut page = ledger.page(self.page);
        let all = batch.len();
        for &PlannedOrder { at, slot } in &self.orders.events[batch] {
            let order = OrderRef { page: self.page, slot };
            let due = page.place(slot, clock.begins(at));
            self.accepted.extend(due.map(|due| (self.desk.deadline(due), order)));
        }
        progress.add((all - self.accepted.len()) as u64);
    }

    fn keep_handles(&mut self) {
        for ((_, order), handle) in self.accepted.drain(..).zip(self.scheduled.drain(..)) {
            self.handles[order.slot as usize] = handle;
            self.costs.schedule.count(usize::from(handle.is_some()));
            if handle.is_none() {
                self.setting.ledger.page(self.page).refuse(order.slot);
                self.setting.progress.add(1);
            }
        }
    }

    fn pay(&mut self, batch: Range<usize>) {
        self.receive(batch);
        if self.paid.is_empty() {
            return;
        }
        let Self { desk, paid, cancelled, costs, .. } = self;
        cancelled.reserve(paid.len());
        costs.cancel.time(|| {
            let soon = paid.iter().skip(AHEAD).map(Some).chain(iter::repeat(None));
            for (&(_, handle), soon) in paid.iter().zip(soon) {
                if let Some(&(_, soon)) = soon {
                    desk.expect_cancel(soon);
                }
                cancelled.push(desk.cancel(handle));
            }
        });
        costs.cancel.count(paid.len());
        self.end_early();
    }

    /// Enters payments in the books; a payment in full makes the check unnecessary.
    fn receive(&mut self, batch: Range<usize>) {
        let Setting { ledger, clock, .. } = self.setting;
        let mut page = ledger.page(self.page);
        for &PlannedPayment { paid_at, slot, amount, .. } in &self.payments.events[batch] {
            if page.pay(slot, amount, clock.begins(paid_at)) == Received::InFull {
                self.paid.extend(self.handles[slot as usize].map(|handle| (slot, handle)));
            }
        }
    }

    /// Ends the orders whose check was cancelled. The checks of the other orders fired before the
    /// cancel and have ended them.
    fn end_early(&mut self) {
        let mut page = self.setting.ledger.page(self.page);
        let before = self.costs.cancelled;
        for ((slot, _), _) in
            self.paid.drain(..).zip(self.cancelled.drain(..)).filter(|&(_, cancelled)| cancelled)
        {
            page.end_early(slot);
            self.costs.cancelled += 1;
        }
        self.setting.progress.add(self.costs.cancelled - before);
    }
}

/// Events in order of time, and how many of them are past.
struct Queue<E> {
    events: Vec<E>,
    next: usize,
}

/// A planned event.
trait Event {
    fn at(&self) -> Micros;
}

impl Event for PlannedOrder {
    fn at(&self) -> Micros {
        self.at
    }
}

impl Event for PlannedPayment {
    fn at(&self) -> Micros {
        self.at
    }
}

impl<E: Event> Queue<E> {
    fn first(&self) -> Option<Micros> {
        self.events.get(self.next).map(Event::at)
    }

    /// The next events up to and including `until`, one batch at most; `None` if there is none.
    fn take(&mut self, until: Micros) -> Option<Range<usize>> {
        let ahead = self.events[self.next..].iter().take(BATCH);
        let end = self.next + ahead.take_while(|event| event.at() <= until).count();
        let batch = mem::replace(&mut self.next, end)..end;
        (!batch.is_empty()).then_some(batch)
    }
}

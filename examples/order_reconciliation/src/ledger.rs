//! The books: the stock of each item, the state of each order, and the payments. No threads and no
//! timers. `rules.rs` decides.
//!
//! Each producer has one page of the ledger. An item and all of its orders are on one page. So no
//! two producers sell the same item, and the order that gets the last unit does not depend on which
//! thread is faster.
//!
//! | state | event | next state |
//! |---|---|---|
//! | `Planned` | the order is placed | `Pending` or `SoldOut` |
//! | `Pending` | one payment covers it | `PaidEarly`; its check is cancelled |
//! | | its check fires | `Confirmed` if the payments add up to the amount, else `Released` |
//!
//! The other states are final.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::rules::{Payment, Terms, Verdict};

pub(crate) use crate::rules::Item;

/// A duration, or a point in time, in microseconds since the first order.
pub(crate) type Micros = u64;

/// Names an order; a timer's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderRef {
    pub(crate) page: u32,
    pub(crate) slot: u32,
}

/// One page for each producer.
pub(crate) struct Ledger {
    pages: Vec<Mutex<Page>>,
}

impl Ledger {
    pub(crate) fn new(pages: Vec<Page>) -> Self {
        Self { pages: pages.into_iter().map(Mutex::new).collect() }
    }

    pub(crate) fn page(&self, number: u32) -> MutexGuard<'_, Page> {
        // A page is consistent whenever its lock is free, even after a panic elsewhere.
        self.pages[number as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pages at the end of the job: all that checks have taken back is on sale.
    pub(crate) fn into_pages(self) -> impl Iterator<Item = Page> {
        self.pages.into_iter().map(|page| {
            let mut page = page.into_inner().unwrap_or_else(PoisonError::into_inner);
            page.restock(Micros::MAX);
            page
        })
    }
}

/// One producer's items and orders.
#[derive(Clone)]
pub(crate) struct Page {
    check_after: Micros,
    pub(crate) items: Vec<Item>,
    pub(crate) orders: Vec<Order>,
    pub(crate) tally: Tally,
    /// Orders that were released, by the time of their check. Checks may be made ahead of the orders
    /// that come in, so their units are not on sale yet.
    taken_back: BinaryHeap<Reverse<(Micros, u32)>>,
}

/// An order in the books.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) item: u32,
    pub(crate) terms: Terms,
    pub(crate) state: State,
}

impl Order {
    pub(crate) fn planned(item: u32, quantity: u32, amount: u64) -> Self {
        Self { item, terms: Terms::new(quantity, amount, 0), state: State::Planned }
    }
}

/// The state of an order; the module's table has the transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Planned,
    Pending,
    PaidEarly,
    Confirmed,
    Released,
    SoldOut,
}

/// A count and an amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) count: u64,
    /// In cents.
    pub(crate) cents: u128,
}

impl Sum {
    pub(crate) fn add(&mut self, cents: u64) {
        *self += Self { count: 1, cents: u128::from(cents) };
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.cents += other.cents;
    }
}

/// The events on a page, counted as they happen. The audit compares them with the final states of
/// the orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) reserved: Sum,
    pub(crate) counted_payments: Sum,
    pub(crate) returned_payments: Sum,
    pub(crate) checks: u64,
    pub(crate) early_checks: u64,
    /// Checks of orders that had already ended.
    pub(crate) repeated_ends: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.reserved += other.reserved;
        self.counted_payments += other.counted_payments;
        self.returned_payments += other.returned_payments;
        self.checks += other.checks;
        self.early_checks += other.early_checks;
        self.repeated_ends += other.repeated_ends;
    }
}

impl Page {
    pub(crate) fn new(check_after: Micros) -> Self {
        let (items, orders, taken_back) = (Vec::new(), Vec::new(), BinaryHeap::new());
        Self { check_after, items, orders, tally: Tally::default(), taken_back }
    }

    /// Reserves an order's stock and returns when its check is due; `None` if too little stock is
    /// left. Orders are placed in the order of time.
    pub(crate) fn place(&mut self, slot: u32, placed: Micros) -> Option<Micros> {
        self.restock(placed);
        let order = &mut self.orders[slot as usize];
        if !self.items[order.item as usize].reserve(order.terms.quantity) {
            order.state = State::SoldOut;
            return None;
        }
        order.state = State::Pending;
        order.terms.due = placed.saturating_add(self.check_after);
        self.tally.reserved.add(order.terms.amount);
        Some(order.terms.due)
    }

    /// Enters a payment. True if it covers the whole order: then the caller cancels the check.
    pub(crate) fn pay(&mut self, slot: u32, cents: u64, paid_at: Micros) -> bool {
        let order = &mut self.orders[slot as usize];
        let payment = match order.state {
            State::Pending => order.terms.receive(cents, paid_at),
            _ => Payment::Late,
        };
        if payment == Payment::Late {
            self.tally.returned_payments.add(cents);
            return false;
        }
        self.tally.counted_payments.add(cents);
        let in_full = payment == Payment::InFull;
        if in_full {
            self.sell(slot, State::PaidEarly);
        }
        in_full
    }

    /// The check: compares an order with its payments.
    pub(crate) fn check(&mut self, slot: u32, now: Micros) {
        let order = self.orders[slot as usize];
        self.tally.checks += 1;
        self.tally.early_checks += u64::from(now < order.terms.due);
        match (order.state, order.terms.verdict()) {
            (State::Pending, Verdict::Confirmed) => self.sell(slot, State::Confirmed),
            (State::Pending, Verdict::Released) => self.release(slot),
            _ => self.tally.repeated_ends += 1,
        }
    }

    fn sell(&mut self, slot: u32, state: State) {
        let order = &mut self.orders[slot as usize];
        order.state = state;
        self.items[order.item as usize].sell(order.terms.quantity);
    }

    fn release(&mut self, slot: u32) {
        let order = &mut self.orders[slot as usize];
        order.state = State::Released;
        self.taken_back.push(Reverse((order.terms.due, slot)));
    }

    /// Puts on sale what was taken back by checks before `now`.
    fn restock(&mut self, now: Micros) {
        while let Some(&Reverse((_, slot))) = self.taken_back.peek() {
            let Order { item, terms, .. } = self.orders[slot as usize];
            if !terms.is_checked_before(now) {
                return;
            }
            self.taken_back.pop();
            self.items[item as usize].take_back(terms.quantity);
        }
    }
}

//! The books: decides orders, payments and checks, in memory, for one writer.
//!
//! Every decision is entered in [`Changes`] at once. The writer commits them before it answers. If a
//! commit fails, these books are ahead of the store: the program ends, and the next one makes new books from
//! the store. So there is one way to recover, the same as after a crash.
//!
//! Every pending order is in the store, and the nearest ones are in memory (`books/horizon.rs`), where each
//! has one timer. An end takes the order out, and until the store has the end, [`Fresh`] knows it. The
//! writer is one thread. So nothing is decided twice.

mod checks;
mod fresh;
mod horizon;
mod items;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;

use order_reconciliation::rules::{self, Terms, Verdict};
use shardwheel::Key;

use crate::store::{
    Changes, EndState, Ended, Known, Open, Payment, Recovered, Store, StoreError, content, open_key,
};

use checks::Checks;
use fresh::Fresh;
use horizon::Horizon;
use items::Items;

use super::lines::{Answer, NewOrder, NewPayment, Status};

/// What the shop was started with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shop {
    /// Units of each item.
    pub(crate) stock: u64,
    /// In ms.
    pub(crate) check_after: u64,
    /// How many pending orders are in memory, about.
    pub(crate) in_memory: usize,
}

/// The stock of an item, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stock {
    pub(crate) stock: u64,
    pub(crate) reserved: u64,
    pub(crate) sold: u64,
}

/// A pending order in memory.
struct Pending {
    item: u32,
    terms: Terms,
    placed_at: u64,
    /// Its check in the wheel.
    check: Key,
}

/// A check that was made, and how late it was in whole ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) late: u64,
    /// It fell due while the program was not there.
    pub(crate) missed: bool,
}

pub(crate) struct Books {
    shop: Shop,
    /// The number of pending orders, in memory or not.
    pending: usize,
    /// Those in memory.
    open: HashMap<u64, Pending>,
    horizon: Horizon,
    checks: Checks,
    items: Items,
    last_seq: u64,
    /// What ended and what was paid since the last commit; the rest is collected for the commit.
    changes: Changes,
    /// What the changes hold and the store does not yet.
    fresh: Fresh,
}

impl Books {
    /// Reads what is pending and what is sold. `now` is the time of the restart, by the wall clock;
    /// the books' time does not begin before the last commit.
    pub(crate) fn recover(shop: Shop, store: &dyn Store, now: u64) -> Result<Self, StoreError> {
        let Recovered { now: last, last_seq, pending, open, sold, reserved } = store.recover()?;
        let began = now.max(last);
        let mut books = Self {
            shop,
            pending,
            open: HashMap::new(),
            horizon: Horizon::new(pending, began, shop.in_memory),
            checks: Checks::new(began),
            items: Items::new(shop.stock),
            last_seq,
            changes: Changes::default(),
            fresh: Fresh::default(),
        };
        sold.iter().for_each(|(item, units)| books.items.named(item).sold = *units);
        reserved.iter().for_each(|(item, units)| books.items.named(item).reserved = *units);
        open.iter().for_each(|order| books.reopen(order));
        books.read_on(store)?;
        Ok(books)
    }

    /// The time at which these books began, in ms.
    pub(crate) fn began(&self) -> u64 {
        self.checks.began()
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// Enters an order that was pending. It keeps its reservation even if the shop was started with less
    /// stock.
    fn reopen(&mut self, order: &Open) {
        self.pending += 1;
        self.items.named(&order.item).reserved += u64::from(order.quantity);
        self.hold(order);
    }

    /// Takes an order of the store into the memory.
    fn hold(&mut self, order: &Open) {
        let item = self.items.number(&order.item);
        let mut terms = Terms::new(order.quantity, order.amount, order.check_at);
        terms.paid = order.paid;
        self.insert(order.order_id, item, terms, order.placed_at);
    }

    /// Whether there is room in memory for orders after the horizon.
    pub(crate) fn has_room(&self) -> bool {
        self.horizon.has_room(self.open.len())
    }

    /// Takes the next orders after the horizon into the memory.
    pub(crate) fn read_on(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        for order in self.horizon.read_on(store)? {
            let ended = self.fresh.end_of(order.order_id).is_some();
            // What is in memory may be newer.
            if !ended && !self.open.contains_key(&order.order_id) {
                self.hold(&order);
            }
        }
        Ok(())
    }

    /// Lets orders go that are not before the horizon and are in the store as they are.
    fn let_go(&mut self, committed: Vec<u64>) {
        for order_id in committed {
            let Entry::Occupied(pending) = self.open.entry(order_id) else { continue };
            if !self.horizon.is_before(open_key(pending.get().terms.due, order_id)) {
                self.checks.cancel(pending.remove().check);
            }
        }
    }

    fn insert(&mut self, order_id: u64, item: u32, terms: Terms, placed_at: u64) {
        let check = self.checks.enter(order_id, terms.due);
        self.open.insert(order_id, Pending { item, terms, placed_at, check });
    }

    /// Places the orders of one request. The caller makes the checks that were due before `now` first.
    pub(crate) fn place(
        &mut self,
        store: &dyn Store,
        orders: Vec<Result<NewOrder, Answer>>,
        now: u64,
    ) -> Result<Vec<Answer>, StoreError> {
        let answer = |order| match order {
            Ok(order) => self.place_one(store, &order, now),
            Err(invalid) => Ok(invalid),
        };
        orders.into_iter().map(answer).collect()
    }

    /// What is known of an order that was accepted before.
    fn known(&self, store: &dyn Store, order_id: u64) -> Result<Option<Known>, StoreError> {
        let known = self.known_pending(order_id).or_else(|| self.fresh.end_of(order_id));
        if known.is_some() { Ok(known) } else { store.known(order_id) }
    }

    fn known_pending(&self, order_id: u64) -> Option<Known> {
        let Pending { item, terms, .. } = self.open.get(&order_id)?;
        let content = content(self.items.name(*item), terms.quantity, terms.amount);
        Some(Known { check_at: terms.due, content })
    }

    fn place_one(&mut self, store: &dyn Store, order: &NewOrder, now: u64) -> Result<Answer, StoreError> {
        let &NewOrder { order_id, ref item, quantity, amount_cents } = order;
        if let Some(Known { check_at, content: before }) = self.known(store, order_id)? {
            let same = before == content(item, quantity, amount_cents);
            return Ok(if same {
                Answer::of_order(order_id, Status::Duplicate, Some(check_at))
            } else {
                Answer::of_order(order_id, Status::Conflict, None)
            });
        }
        let Some(number) = self.items.reserve(item, quantity) else {
            return Ok(Answer::of_order(order_id, Status::SoldOut, None));
        };
        let check_at = now.saturating_add(self.shop.check_after);
        self.insert(order_id, number, Terms::new(quantity, amount_cents, check_at), now);
        self.pending += 1;
        self.fresh.changed(order_id);
        self.horizon.placed(open_key(check_at, order_id), self.open.len());
        Ok(Answer::of_order(order_id, Status::Placed, Some(check_at)))
    }

    fn record(&self, order_id: u64, pending: &Pending) -> Open {
        let &Pending { item, terms: Terms { quantity, amount, due, paid }, placed_at, .. } = pending;
        let item = self.items.name(item).to_owned();
        Open { order_id, item, quantity, amount, paid, placed_at, check_at: due }
    }

    /// Answers a line of payment.
    pub(crate) fn pay_line(
        &mut self,
        store: &dyn Store,
        line: Result<NewPayment, Answer>,
        now: u64,
    ) -> Result<Answer, StoreError> {
        let payment = match line {
            Ok(payment) => payment,
            Err(invalid) => return Ok(invalid),
        };
        let status = self.pay(store, &payment, now)?;
        let NewPayment { payment_id, order_id, .. } = payment;
        Ok(Answer { payment_id: Some(payment_id), ..Answer::of_order(order_id, status, None) })
    }

    fn pay(&mut self, store: &dyn Store, payment: &NewPayment, now: u64) -> Result<Status, StoreError> {
        let NewPayment { payment_id, order_id, amount_cents, .. } = payment;
        let (id, order, amount) = (payment_id.clone(), *order_id, *amount_cents);
        let new = Payment { payment_id: id, order_id: order, amount };
        if let Some(before) = self.known_payment(store, payment_id)? {
            let same = before == new.content();
            return Ok(if same { Status::Duplicate } else { Status::Conflict });
        }
        if !self.open.contains_key(order_id) {
            self.fetch(store, order, now)?;
        }
        let Some(pending) = self.open.get_mut(order_id) else {
            let known = self.known(store, *order_id)?;
            return Ok(if known.is_some() { Status::Late } else { Status::UnknownOrder });
        };
        let received = pending.terms.receive(*amount_cents, now);
        if received == rules::Payment::Late {
            return Ok(Status::Late);
        }
        self.fresh.paid(payment_id.clone(), new.content());
        self.changes.payments.push(new);
        if received == rules::Payment::InFull {
            self.end(order, EndState::PaidEarly, now);
        } else {
            self.fresh.changed(order);
        }
        Ok(Status::Counted)
    }

    /// Takes an order into the memory that is in the store alone, if it can still be paid.
    fn fetch(&mut self, store: &dyn Store, order_id: u64, now: u64) -> Result<(), StoreError> {
        if self.fresh.end_of(order_id).is_some() {
            return Ok(());
        }
        match store.open(order_id) {
            // It is fresh from now on, for it is either paid in part or ends.
            Ok(Some(order)) if order.check_at >= now => {
                self.hold(&order);
                Ok(())
            }
            found => found.map(drop),
        }
    }

    /// The content of a payment that was counted.
    fn known_payment(&self, store: &dyn Store, payment_id: &str) -> Result<Option<u64>, StoreError> {
        let fresh = self.fresh.payment(payment_id);
        if fresh.is_some() { Ok(fresh) } else { store.payment(payment_id) }
    }

    /// Takes an order out of the books. This is the only place that does.
    fn end(&mut self, order_id: u64, state: EndState, now: u64) {
        let Some(pending) = self.open.remove(&order_id) else { return };
        self.pending -= 1;
        // After a check there is nothing to cancel.
        self.checks.cancel(pending.check);
        let item = self.items.at(pending.item);
        if state == EndState::Released {
            item.take_back(pending.terms.quantity);
        } else {
            item.sell(pending.terms.quantity);
            self.fresh.sold(pending.item);
        }
        self.last_seq += 1;
        let order = self.record(order_id, &pending);
        self.fresh.ended(order_id, order.known());
        self.changes.ended.push(Ended { order, state, decided_at: now, seq: self.last_seq });
    }

    /// Makes checks that fell due since these books began and before `now`, `limit` at most, and passes
    /// each to `done`. True if there may be more.
    pub(crate) fn check(
        &mut self,
        store: &dyn Store,
        now: u64,
        limit: usize,
        mut done: impl FnMut(Checked),
    ) -> Result<bool, StoreError> {
        let mut made = 0;
        loop {
            let due = self.checks.due(now, limit - made);
            made += due.len();
            due.iter().filter_map(|&order_id| self.decide(order_id, now)).for_each(&mut done);
            if made == limit || self.horizon.check_at().is_none_or(|at| at >= now) {
                return Ok(made == limit);
            }
            self.read_on(store)?;
        }
    }

    /// Makes checks that were overdue when these books began, `limit` at most, and passes each to `done`.
    pub(crate) fn catch_up(
        &mut self,
        store: &dyn Store,
        now: u64,
        limit: usize,
        done: impl FnMut(Checked),
    ) -> Result<(), StoreError> {
        let overdue = self.horizon.overdue(store, limit)?;
        let decide = |order: Open| {
            self.hold(&order);
            self.decide(order.order_id, now)
        };
        overdue.into_iter().filter_map(decide).for_each(done);
        Ok(())
    }

    /// Whether there may be checks for [`catch_up`](Self::catch_up).
    pub(crate) fn is_behind(&self) -> bool {
        self.horizon.is_behind()
    }

    /// Takes out the orders in memory whose checks were due before `now`. The caller decides each.
    pub(crate) fn due(&mut self, now: u64) -> Vec<u64> {
        self.checks.due(now, usize::MAX)
    }

    /// Checks an order that was taken out.
    pub(crate) fn decide(&mut self, order_id: u64, now: u64) -> Option<Checked> {
        let terms = self.open.get(&order_id)?.terms;
        let state = match terms.verdict() {
            Verdict::Confirmed => EndState::Confirmed,
            Verdict::Released => EndState::Released,
        };
        self.end(order_id, state, now);
        Some(Checked { late: now.saturating_sub(terms.due + 1), missed: terms.due < self.began() })
    }

    /// When an order in memory is checked.
    pub(crate) fn check_at(&self, order_id: u64) -> Option<u64> {
        self.open.get(&order_id).map(|pending| pending.terms.due)
    }

    /// When [`check`](Self::check) has something to do next, or a little earlier, in ms.
    pub(crate) fn next_check(&self) -> Option<u64> {
        self.checks.next().into_iter().chain(self.horizon.check_at()).min()
    }

    /// What has changed since the last call. The caller commits it, or drops these books; what the
    /// last call returned must be committed by now.
    pub(crate) fn take_changes(&mut self, now: u64) -> Changes {
        let committed = self.fresh.take();
        self.let_go(committed);
        let mut changes = mem::take(&mut self.changes);
        changes.now = now;
        let (open, items) = self.fresh.taken();
        changes.open.extend(open.iter().filter_map(|&order_id| self.order(order_id)));
        changes.sold.extend(items.iter().map(|&number| self.items.sold(number)));
        changes
    }

    pub(crate) fn stock(&self, name: &str) -> Stock {
        self.items.stock(name)
    }

    /// A pending order in memory.
    pub(crate) fn order(&self, order_id: u64) -> Option<Open> {
        self.open.get(&order_id).map(|pending| self.record(order_id, pending))
    }

    /// All pending orders in memory.
    pub(crate) fn orders(&self) -> impl Iterator<Item = Open> {
        self.open.iter().map(|(&order_id, pending)| self.record(order_id, pending))
    }

    /// All items with the units that are sold.
    pub(crate) fn sold(&self) -> impl Iterator<Item = (String, u64)> {
        self.items.all_sold()
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! What has changed and is not yet, or perhaps not yet, in the store.

use std::collections::HashMap;
use std::mem;

use crate::store::Known;

/// The changes since the last commit was taken, and those of that commit, which may be on its way.
#[derive(Default)]
pub(super) struct Fresh {
    new: Part,
    taken: Part,
}

/// What one commit changes.
#[derive(Default)]
struct Part {
    /// Orders that were placed or paid in part. Some may have ended since.
    open: Vec<u64>,
    ended: HashMap<u64, Known>,
    /// Payments, and their contents.
    payments: HashMap<String, u64>,
    /// Items of which units were sold.
    items: Vec<u32>,
}

impl Fresh {
    /// An order was placed, or paid in part.
    pub(super) fn changed(&mut self, order_id: u64) {
        self.new.open.push(order_id);
    }

    pub(super) fn ended(&mut self, order_id: u64, known: Known) {
        self.new.ended.insert(order_id, known);
    }

    pub(super) fn paid(&mut self, payment_id: String, content: u64) {
        self.new.payments.insert(payment_id, content);
    }

    pub(super) fn sold(&mut self, item: u32) {
        self.new.items.push(item);
    }

    /// What is known of an order that has ended.
    pub(super) fn end_of(&self, order_id: u64) -> Option<Known> {
        self.parts().find_map(|part| part.ended.get(&order_id).copied())
    }

    /// The content of a payment.
    pub(super) fn payment(&self, payment_id: &str) -> Option<u64> {
        self.parts().find_map(|part| part.payments.get(payment_id).copied())
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        [&self.new, &self.taken].into_iter()
    }

    /// Begins the next commit; the last one must be in the store by now. Returns the orders that the last one
    /// has changed, and the next one does not.
    pub(super) fn take(&mut self) -> Vec<u64> {
        let last = mem::replace(&mut self.taken, mem::take(&mut self.new));
        let Part { open, items, .. } = &mut self.taken;
        open.sort_unstable();
        open.dedup();
        items.sort_unstable();
        items.dedup();
        last.open.into_iter().filter(|order_id| open.binary_search(order_id).is_err()).collect()
    }

    /// The orders and the items that the commit changes, each once.
    pub(super) fn taken(&self) -> (&[u64], &[u32]) {
        (&self.taken.open, &self.taken.items)
    }
}

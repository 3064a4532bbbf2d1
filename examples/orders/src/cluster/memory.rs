//! What a partition remembers beside its pending orders: the store that stands behind the books of
//! a partition.
//!
//! Nothing here needs a disk. A change is durable before it is decided: it follows from the log of
//! the partition, and a new owner makes it again. So a commit only enters the changes in memory.
//!
//! The memory is bounded by time. What ended, or was paid, longer ago than `remember` is forgotten,
//! by the time of the log, so every owner forgets it at the same message. An order that is sent
//! again after that is a new order.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::store::{Changes, Known, Open, Part, Recovered, Store, StoreError};

/// What is remembered, each with its time, in the order in which it is forgotten.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Past {
    /// Orders that have ended.
    ended: Vec<(u64, u64, Known)>,
    /// Payments that were counted, and their contents.
    payments: Vec<(u64, String, u64)>,
}

/// The store of a partition. One owner uses it, so its lock is always free.
#[derive(Debug)]
pub(crate) struct Memory(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    /// What the books begin with.
    restored: Recovered,
    /// Orders that have ended.
    ended: Recent<u64, Known>,
    /// Payments that were counted, and their contents.
    payments: Recent<Arc<str>, u64>,
    /// How long an order that has ended is remembered, in ms.
    remember: u64,
    /// How long a payment is remembered: longer, as its order was pending for a while.
    remember_payment: u64,
}

impl Memory {
    pub(crate) fn new(restored: Recovered, remember: u64, check_after: u64) -> Self {
        let (ended, payments) = (Recent::default(), Recent::default());
        let remember_payment = remember.saturating_add(check_after);
        Self(Mutex::new(Inner { restored, ended, payments, remember, remember_payment }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters what a snapshot has of the past.
    pub(crate) fn restore(&self, Past { ended, payments }: Past) {
        let mut inner = self.inner();
        ended.into_iter().for_each(|(at, order_id, known)| inner.ended.add(at, order_id, known));
        payments.into_iter().for_each(|(at, id, content)| inner.payments.add(at, id.into(), content));
    }

    /// What is remembered.
    pub(crate) fn past(&self) -> Past {
        let Inner { ended, payments, .. } = &*self.inner();
        let orders = ended.queue.iter().map(|(at, id)| (*at, *id, ended.known[id]));
        let paid = payments.queue.iter().map(|(at, id)| (*at, id.to_string(), payments.known[id]));
        Past { ended: orders.collect(), payments: paid.collect() }
    }

    /// The number of orders and payments that are remembered.
    pub(crate) fn len(&self) -> usize {
        let inner = self.inner();
        inner.ended.queue.len() + inner.payments.queue.len()
    }
}

impl Store for Memory {
    fn recover(&self) -> Result<Recovered, StoreError> {
        Ok(mem::take(&mut self.inner().restored))
    }

    fn commit(&self, changes: &Changes) -> Result<(), StoreError> {
        let mut inner = self.inner();
        for ended in &changes.ended {
            inner.ended.add(changes.now, ended.order.order_id, ended.order.known());
        }
        for payment in &changes.payments {
            inner.payments.add(changes.now, payment.payment_id.as_str().into(), payment.content());
        }
        let (orders, payments) = (inner.remember, inner.remember_payment);
        inner.ended.forget(changes.now.saturating_sub(orders));
        inner.payments.forget(changes.now.saturating_sub(payments));
        Ok(())
    }

    /// All pending orders are in the books.
    fn pending(&self, _: Range<u128>, _: usize) -> Result<Part, StoreError> {
        Ok(Part::default())
    }

    fn open(&self, _: u64) -> Result<Option<Open>, StoreError> {
        Ok(None)
    }

    fn known(&self, order_id: u64) -> Result<Option<Known>, StoreError> {
        Ok(self.inner().ended.known.get(&order_id).copied())
    }

    fn payment(&self, payment_id: &str) -> Result<Option<u64>, StoreError> {
        Ok(self.inner().payments.known.get(payment_id).copied())
    }
}

/// Keys that are forgotten in the order in which they came.
#[derive(Debug)]
struct Recent<K, V> {
    known: HashMap<K, V>,
    queue: VecDeque<(u64, K)>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { known: HashMap::new(), queue: VecDeque::new() }
    }
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    fn add(&mut self, at: u64, key: K, value: V) {
        self.known.insert(key.clone(), value);
        self.queue.push_back((at, key));
    }

    /// Forgets what came before `before`.
    fn forget(&mut self, before: u64) {
        while let Some((_, key)) = self.queue.pop_front_if(|(at, _)| *at < before) {
            self.known.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{EndState, Ended, Payment};

    fn changes(now: u64, order_id: u64) -> Changes {
        let item = "nut".to_owned();
        let order = Open { order_id, item, quantity: 1, amount: 5, paid: 5, placed_at: 0, check_at: 50 };
        let ended = Ended { order, state: EndState::PaidEarly, decided_at: now, seq: order_id };
        let payments = vec![Payment { payment_id: format!("p-{order_id}"), order_id, amount: 5 }];
        Changes { now, ended: vec![ended], payments, ..Changes::default() }
    }

    #[test]
    fn what_ended_is_known_for_a_while() {
        let memory = Memory::new(Recovered::default(), 100, 50);
        memory.commit(&changes(1_000, 1)).unwrap();
        memory.commit(&changes(1_100, 2)).unwrap();
        assert_eq!(
            [1, 2, 3].map(|id| memory.known(id).unwrap().map(|known| known.check_at)),
            [Some(50), Some(50), None]
        );
        memory.commit(&Changes { now: 1_101, ..Changes::default() }).unwrap();
        assert_eq!([1, 2].map(|id| memory.known(id).unwrap().map(|known| known.check_at)), [None, Some(50)]);
        assert!(memory.payment("p-1").unwrap().is_some(), "a payment is known longer");
        memory.commit(&Changes { now: 1_151, ..Changes::default() }).unwrap();
        assert!(memory.payment("p-1").unwrap().is_none() && memory.payment("p-2").unwrap().is_some());
        assert_eq!(memory.len(), 2);
    }
}

//! Follows the results of a cluster line by line, and keeps books of its own: the answers must agree
//! with each other, and the outcomes with the answers.
//!
//! The broker's own time of a result shows that nothing was early: a check's outcome was not there
//! before the check was due, and no payment was refused as late before that. The answers contain the
//! times of each order and its payments, so a replay can decide again, whatever the faults did to the
//! times of the files.

use std::collections::{HashMap, HashSet};

use order_reconciliation::files::Files;
use order_reconciliation::outcomes::{MadePayment, PlacedOrder};

use crate::cluster::{Line, Results};

use super::findings::Findings;
use super::source::Outcome;

/// An order that was answered.
struct Placed {
    check_at: u64,
    paid: u64,
    /// The last payment counted covers the whole order.
    in_full: bool,
    ended: bool,
}

/// The results as the auditor understands them.
pub(crate) struct Walk<'a> {
    files: &'a Files,
    check_after: u64,
    stock: u64,
    /// Payments by their names, as a feed of these files gives them.
    payments: HashMap<String, &'a MadePayment>,
    counted: HashSet<String>,
    placed: HashMap<u64, Placed>,
    sold_out: HashSet<u64>,
    /// Units that are reserved or sold of each item.
    taken: HashMap<&'a str, u64>,
    /// In the order of decision, partition by partition, with numbers of their own.
    pub(crate) outcomes: Vec<Outcome>,
    /// What was placed and paid, with the times that the shop gave it.
    pub(crate) orders: Vec<PlacedOrder>,
    pub(crate) paid: Vec<MadePayment>,
}

impl<'a> Walk<'a> {
    /// Follows all results.
    pub(crate) fn new(files: &'a Files, results: &Results, stock: u64, findings: &mut Findings) -> Self {
        let mut numbers = HashMap::<u64, u32>::new();
        let payments = files.payments.iter().map(|payment| {
            let number = numbers.entry(payment.order_id).or_default();
            *number += 1;
            (format!("{}-{number}", payment.order_id), payment)
        });
        let mut walk = Self {
            files,
            check_after: results.check_after,
            stock,
            payments: payments.collect(),
            counted: HashSet::new(),
            placed: HashMap::new(),
            sold_out: HashSet::new(),
            taken: HashMap::new(),
            outcomes: Vec::new(),
            orders: Vec::new(),
            paid: Vec::new(),
        };
        for lines in &results.partitions {
            let mut last_seq = 0;
            for (stored_at, line) in lines {
                walk.line(*stored_at, line, &mut last_seq, findings);
            }
        }
        walk
    }

    /// How many orders of the file have neither an outcome nor the answer *sold out*.
    pub(crate) fn unfinished(&self) -> usize {
        let open = |order: &&PlacedOrder| match self.placed.get(&order.order_id) {
            Some(placed) => !placed.ended,
            None => !self.sold_out.contains(&order.order_id),
        };
        self.files.orders.iter().filter(open).count()
    }

    fn line(&mut self, stored_at: u64, line: &Line, last_seq: &mut u64, findings: &mut Findings) {
        if line.status.as_deref() == Some("invalid") && !self.is_of_the_files(line) {
            return findings.foreign();
        }
        let agrees = match (line, line.status.as_deref()) {
            (Line { seq: Some(seq), state: Some(state), decided_at_ms: Some(at), .. }, _) => {
                findings.number(std::mem::replace(last_seq, *seq), *seq);
                self.outcome(stored_at, line.order_id, state, *at, findings)
            }
            (Line { payment_id: Some(id), .. }, Some(status)) => self.payment(stored_at, id, status),
            (Line { order_id: Some(id), .. }, Some(status)) => self.order(*id, status, line.check_at_ms),
            _ => None,
        };
        findings.answer(agrees == Some(true), || line.text());
    }

    /// Whether a line answers one of the files.
    fn is_of_the_files(&self, line: &Line) -> bool {
        match (&line.payment_id, line.order_id) {
            (Some(id), _) => self.payments.contains_key(id),
            (None, Some(id)) => self.files.slots.contains_key(&id),
            (None, None) => false,
        }
    }

    /// Whether the answer to an order is possible here.
    fn order(&mut self, order_id: u64, status: &str, check_at: Option<u64>) -> Option<bool> {
        let slot = *self.files.slots.get(&order_id)?;
        let order = &self.files.orders[slot as usize];
        let quantity = u64::from(order.quantity);
        let taken = self.taken.entry(&order.item).or_default();
        match (status, self.placed.get(&order_id)) {
            ("placed", None) => {
                *taken += quantity;
                let placed_at = check_at?.checked_sub(self.check_after)?;
                self.orders.push(PlacedOrder { placed_at, ..order.clone() });
                let placed = Placed { check_at: check_at?, paid: 0, in_full: false, ended: false };
                self.placed.insert(order_id, placed);
                Some(*taken <= self.stock)
            }
            ("duplicate", Some(placed)) => Some(check_at == Some(placed.check_at)),
            ("sold_out", None) => {
                self.sold_out.insert(order_id);
                Some(*taken + quantity > self.stock)
            }
            _ => Some(false),
        }
    }

    /// Whether the answer to a payment is possible here.
    fn payment(&mut self, stored_at: u64, payment_id: &str, status: &str) -> Option<bool> {
        let &MadePayment { order_id, amount, .. } = *self.payments.get(payment_id)?;
        let Some(placed) = self.placed.get_mut(&order_id) else { return Some(status == "unknown_order") };
        let slot = *self.files.slots.get(&order_id)?;
        let placed_at = placed.check_at - self.check_after;
        match status {
            "counted" => {
                placed.in_full = placed.paid == 0 && amount == self.files.orders[slot as usize].amount;
                placed.paid += amount;
                self.paid.push(MadePayment { order_id, amount, paid_at: placed_at });
                Some(self.counted.insert(payment_id.to_owned()) && !placed.ended)
            }
            "duplicate" => Some(self.counted.contains(payment_id)),
            "late" => {
                self.paid.push(MadePayment { order_id, amount, paid_at: placed.check_at + 1 });
                Some(placed.ended || stored_at >= placed.check_at)
            }
            _ => Some(false),
        }
    }

    /// Whether an outcome follows from the answers.
    fn outcome(
        &mut self,
        stored_at: u64,
        order_id: Option<u64>,
        state: &str,
        decided_at: u64,
        findings: &mut Findings,
    ) -> Option<bool> {
        let order_id = order_id?;
        let order = &self.files.orders[*self.files.slots.get(&order_id)? as usize];
        let seq = self.outcomes.len() as u64 + 1;
        self.outcomes.push(Outcome { seq, order_id, state: state.to_owned(), decided_at_ms: decided_at });
        let placed = self.placed.get_mut(&order_id)?;
        let (once, check_at) = (!placed.ended, placed.check_at);
        placed.ended = true;
        let early = if state == "paid_early" {
            decided_at > check_at
        } else {
            decided_at < check_at || stored_at < check_at
        };
        findings.time(!early, || format!("order {order_id}: {state} at {decided_at}, check at {check_at}"));
        let expected = match placed {
            Placed { in_full: true, .. } => "paid_early",
            Placed { paid, .. } if *paid == order.amount => "confirmed",
            Placed { .. } => "released",
        };
        if state == "released" {
            *self.taken.entry(&order.item).or_default() -= u64::from(order.quantity);
        }
        Some(once && state == expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What another client has sent in vain is no difference; one that a worker took is, and so is what no
    /// worker has written. Both are shown as they stand there.
    #[test]
    fn lines_of_other_clients_are_shown_as_they_are() {
        let order =
            |id, status| Line { order_id: id, status: Some(str::to_owned(status)), ..Line::default() };
        let junk = Line { error: Some("junk".to_owned()), ..Line::default() };
        let lines = [order(None, "invalid"), order(Some(9), "invalid"), order(Some(9), "placed"), junk];
        let partitions = vec![lines.into_iter().map(|line| (0, line)).collect()];
        let (results, mut findings) = (Results { check_after: 5, partitions }, Findings::new());
        Walk::new(&Files::default(), &results, 1, &mut findings);
        let mut said = Vec::new();
        findings.print(&mut said).expect("text");
        let said = String::from_utf8(said).expect("text");
        assert_eq!(findings.differences(), 2, "{said}");
        assert!(said.contains("not so: {\"order_id\":9,\"status\":\"placed\"}\n"), "{said}");
        assert!(said.contains("not so: {\"error\":\"junk\"}\n"), "{said}");
        assert!(said.contains("not of these files, and changed nothing: 2\n"), "{said}");
    }
}

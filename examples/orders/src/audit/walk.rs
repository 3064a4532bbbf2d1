//! Reads the results of a cluster line by line: how each order ended, and what was answered.
//!
//! The broker's own time of a result shows that nothing was early: a check's outcome was not there
//! before the check was due, and no payment was refused as late before that. The answers contain the
//! times of each order and its payments, so a replay can decide again, whatever the faults did to the
//! times of the files.

use std::collections::{HashMap, HashSet};

use order_reconciliation::files::Files;
use order_reconciliation::outcomes::{MadePayment, PlacedOrder};

use crate::cluster::{Line, Results};

use super::findings::{Findings, Rule};
use super::source::Outcome;

/// The results as the auditor understands them.
pub(crate) struct Walk<'a> {
    files: &'a Files,
    check_after: u64,
    stock: u64,
    /// Payments by their names, as a feed of these files gives them.
    payments: HashMap<String, &'a MadePayment>,
    /// When the orders that were placed are checked.
    checks: HashMap<u64, u64>,
    /// Orders that have ended, or are sold out.
    ended: HashSet<u64>,
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
            checks: HashMap::new(),
            ended: HashSet::new(),
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
        self.files.orders.iter().filter(|order| !self.ended.contains(&order.order_id)).count()
    }

    fn line(&mut self, stored_at: u64, line: &Line, last_seq: &mut u64, findings: &mut Findings) {
        let possible = match (line, line.status.as_deref()) {
            (Line { seq: Some(seq), state: Some(state), decided_at_ms: Some(at), .. }, _) => {
                let last = std::mem::replace(last_seq, *seq);
                findings.expect(Rule::Numbers, last < *seq, || format!("{seq} follows {last}"));
                self.outcome(stored_at, line.order_id, state, *at, findings)
            }
            // Another client's; it changes nothing.
            (_, Some("invalid")) if !self.is_of_the_files(line) => return,
            (Line { payment_id: Some(id), .. }, Some(status)) => self.payment(stored_at, id, status),
            (Line { order_id: Some(id), .. }, Some(status)) => self.order(*id, status, line.check_at_ms),
            _ => None,
        };
        findings.expect(Rule::Answers, possible == Some(true), || line.text());
    }

    /// Whether a line answers one of the files.
    fn is_of_the_files(&self, line: &Line) -> bool {
        let of_payment = line.payment_id.as_ref().map(|id| self.payments.contains_key(id));
        let of_order = || line.order_id.is_some_and(|id| self.files.slots.contains_key(&id));
        of_payment.unwrap_or_else(of_order)
    }

    /// Whether the answer to an order is possible here.
    fn order(&mut self, order_id: u64, status: &str, check_at: Option<u64>) -> Option<bool> {
        let order = &self.files.orders[*self.files.slots.get(&order_id)? as usize];
        let quantity = u64::from(order.quantity);
        let taken = self.taken.entry(&order.item).or_default();
        match (status, self.checks.get(&order_id)) {
            ("placed", None) => {
                *taken += quantity;
                let placed_at = check_at?.checked_sub(self.check_after)?;
                self.orders.push(PlacedOrder { placed_at, ..order.clone() });
                self.checks.insert(order_id, check_at?);
                Some(*taken <= self.stock)
            }
            ("duplicate", Some(before)) => Some(check_at == Some(*before)),
            ("sold_out", None) => {
                self.ended.insert(order_id);
                Some(*taken + quantity > self.stock)
            }
            _ => Some(false),
        }
    }

    /// Whether the answer to a payment is possible here.
    fn payment(&mut self, stored_at: u64, payment_id: &str, status: &str) -> Option<bool> {
        let &MadePayment { order_id, amount, .. } = *self.payments.get(payment_id)?;
        let Some(&check_at) = self.checks.get(&order_id) else { return Some(status == "unknown_order") };
        let ended = self.ended.contains(&order_id);
        let (paid_at, possible) = match status {
            "counted" => (check_at - self.check_after, !ended),
            "late" => (check_at + 1, ended || stored_at >= check_at),
            other => return Some(other == "duplicate"),
        };
        self.paid.push(MadePayment { order_id, amount, paid_at });
        Some(possible)
    }

    /// Whether an outcome is possible here. Its state is compared with that of a replay.
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
        let check_at = *self.checks.get(&order_id)?;
        let in_time = if state == "paid_early" {
            decided_at <= check_at
        } else {
            decided_at >= check_at && stored_at >= check_at
        };
        findings.expect(Rule::Early, in_time, || {
            format!("order {order_id}: {state} at {decided_at}, check at {check_at}")
        });
        if state == "released" {
            *self.taken.entry(&order.item).or_default() -= u64::from(order.quantity);
        }
        Some(self.ended.insert(order_id))
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
        let (results, mut findings) = (Results { check_after: 5, partitions }, Findings::default());
        Walk::new(&Files::default(), &results, 1, &mut findings);
        let mut said = Vec::new();
        findings.print(&mut said).expect("text");
        let said = String::from_utf8(said).expect("text");
        assert_eq!(findings.differences(), 2, "{said}");
        for line in ["{\"order_id\":9,\"status\":\"placed\"}", "{\"error\":\"junk\"}"] {
            assert!(said.contains(&format!("not so: {line}\n")), "{said}");
        }
    }
}

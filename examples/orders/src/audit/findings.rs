//! What must hold, and where it does not.

use std::collections::HashMap;
use std::io::{self, Write};

use order_reconciliation::files::Files;

use super::source::{Order, Outcome, Stock};

/// Differences of one kind that are shown.
const SHOWN: usize = 5;

/// One thing that must hold.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// How often it was looked at.
    looked_at: u64,
    /// How often it does not hold.
    pub(crate) differences: u64,
    /// The first of them.
    shown: Vec<String>,
}

impl Rule {
    fn new(name: &'static str) -> Self {
        Self { name, looked_at: 0, differences: 0, shown: Vec::new() }
    }

    /// Notes a difference unless `holds`.
    fn expect(&mut self, holds: bool, difference: impl FnOnce() -> String) {
        self.looked_at += 1;
        if holds {
            return;
        }
        self.differences += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(difference());
        }
    }
}

/// All that must hold.
#[derive(Debug)]
pub(crate) struct Findings {
    numbers: Rule,
    once: Rule,
    missing: Rule,
    unexpected: Rule,
    equal: Rule,
    early: Rule,
    orders: Rule,
    sold: Rule,
    reserved: Rule,
    oversold: Rule,
    answers: Rule,
    /// Lines of other clients that were invalid.
    foreign: u64,
}

impl Findings {
    pub(crate) fn new() -> Self {
        Self {
            numbers: Rule::new("the numbers of outcomes strictly increase"),
            once: Rule::new("no order has two outcomes"),
            missing: Rule::new("every order that replay accepts has an outcome"),
            unexpected: Rule::new("no other order has one"),
            equal: Rule::new("every outcome equals that of replay"),
            early: Rule::new("no check is early, and paid early is before the check"),
            orders: Rule::new("every order is that of the file, and agrees with its outcome"),
            sold: Rule::new("units sold are those of the orders that were kept"),
            reserved: Rule::new("no units are reserved"),
            oversold: Rule::new("nothing is oversold"),
            answers: Rule::new(
                "every answer and outcome follows from the answers before it, nothing oversold",
            ),
            foreign: 0,
        }
    }

    pub(crate) fn rules(&self) -> [&Rule; 11] {
        [
            &self.numbers,
            &self.once,
            &self.missing,
            &self.unexpected,
            &self.equal,
            &self.early,
            &self.orders,
            &self.sold,
            &self.reserved,
            &self.oversold,
            &self.answers,
        ]
    }

    pub(crate) fn differences(&self) -> u64 {
        self.rules().iter().map(|rule| rule.differences).sum()
    }

    /// Compares outcomes, in the order in which the server returns them, with what is expected of each
    /// order. Returns the outcome of each.
    pub(crate) fn outcomes<'a>(
        &mut self,
        outcomes: &'a [Outcome],
        expected: impl IntoIterator<Item = (u64, &'static str)>,
    ) -> HashMap<u64, &'a Outcome> {
        for pair in outcomes.windows(2) {
            self.numbers
                .expect(pair[0].seq < pair[1].seq, || format!("{} follows {}", pair[1].seq, pair[0].seq));
        }
        let mut ends = HashMap::with_capacity(outcomes.len());
        for outcome in outcomes {
            let before = ends.insert(outcome.order_id, outcome);
            self.once.expect(before.is_none(), || format!("order {}", outcome.order_id));
        }
        let mut known = 0;
        for (order_id, state) in expected {
            known += u64::from(self.outcome(order_id, state, ends.get(&order_id).copied()));
        }
        let others = ends.len() as u64 - known;
        if others > 0 {
            self.unexpected.differences += others;
            self.unexpected.shown.push(format!("{others} outcomes are for orders that are not in the file"));
        }
        ends
    }

    /// Returns whether there is an outcome.
    fn outcome(&mut self, order_id: u64, state: &str, found: Option<&Outcome>) -> bool {
        match found {
            None => {
                self.missing.expect(state == "sold_out", || format!("order {order_id}: {state} in replay"));
            }
            Some(found) if state == "sold_out" => {
                let found = &found.state;
                self.unexpected
                    .expect(false, || format!("order {order_id}: sold out in replay, here {found}"));
            }
            Some(found) => {
                let found = &found.state;
                self.equal
                    .expect(found == state, || format!("order {order_id}: {state} in replay, here {found}"));
            }
        }
        found.is_some()
    }

    /// Notes the numbers of two outcomes of a partition that follow each other.
    pub(crate) fn number(&mut self, last: u64, seq: u64) {
        self.numbers.expect(last < seq, || format!("{seq} follows {last}"));
    }

    /// Notes whether an outcome's time is right.
    pub(crate) fn time(&mut self, holds: bool, difference: impl FnOnce() -> String) {
        self.early.expect(holds, difference);
    }

    /// Notes whether an answer or an outcome follows from those before it.
    pub(crate) fn answer(&mut self, follows: bool, difference: impl FnOnce() -> String) {
        self.answers.expect(follows, difference);
    }

    /// Notes the answer to an invalid line that is not of the files. It changes nothing.
    pub(crate) fn foreign(&mut self) {
        self.foreign += 1;
    }

    /// Notes orders without an end.
    pub(crate) fn unfinished(&mut self, orders: usize) {
        self.missing.expect(orders == 0, || format!("{orders} orders have neither outcome nor refusal"));
    }

    /// Compares an order with its outcome and with the file.
    pub(crate) fn order(&mut self, outcome: &Outcome, order: Option<&Order>, files: &Files) {
        let Outcome { order_id, ref state, decided_at_ms, .. } = *outcome;
        let Some(order) = order else {
            return self
                .orders
                .expect(false, || format!("order {order_id} has an outcome, and is not there"));
        };
        let check_at = order.check_at_ms;
        let in_time =
            if state == "paid_early" { decided_at_ms <= check_at } else { decided_at_ms >= check_at };
        self.early.expect(in_time, || {
            format!("order {order_id}: {state} at {decided_at_ms}, its check is at {check_at}")
        });
        let agrees = order.state == *state && order.decided_at_ms == Some(decided_at_ms);
        self.orders.expect(agrees, || format!("order {order_id}: {order:?}, but {outcome:?}"));
        if let Some(&slot) = files.slots.get(&order_id) {
            let placed = &files.orders[slot as usize];
            let same = (&*order.item, order.quantity, order.amount_cents)
                == (&*placed.item, placed.quantity, placed.amount);
            self.orders.expect(same, || format!("order {order_id}: {order:?}, but {placed:?}"));
        }
    }

    /// Compares an item's units with those of the orders that were kept.
    pub(crate) fn stock(&mut self, item: &str, found: Stock, kept: u64, stock: u64) {
        let Stock { stock: units, reserved, sold } = found;
        self.sold.expect(sold == kept, || format!("{item}: {sold} are sold, {kept} in the outcomes"));
        self.reserved.expect(reserved == 0, || format!("{item}: {reserved} are reserved"));
        let enough = units == stock && sold + reserved <= stock;
        self.oversold.expect(enough, || format!("{item}: {found:?}, of {stock} units"));
    }

    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| what must hold | differences |\n|---|---|")?;
        let looked_at = |rule: &&Rule| rule.looked_at + rule.differences > 0;
        for rule in self.rules().into_iter().filter(looked_at) {
            writeln!(out, "| {} | {} |", rule.name, rule.differences)?;
        }
        for rule in self.rules() {
            for difference in &rule.shown {
                writeln!(out, "{}: not so: {difference}", rule.name)?;
            }
        }
        if self.foreign > 0 {
            writeln!(
                out,
                "invalid lines that are not of these files, and changed nothing: {}",
                self.foreign
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use order_reconciliation::outcomes::PlacedOrder;

    use super::*;

    fn outcome(seq: u64, order_id: u64, state: &str, decided_at_ms: u64) -> Outcome {
        Outcome { seq, order_id, state: state.to_owned(), decided_at_ms }
    }

    /// The names of the rules that do not hold, and how often.
    fn broken(findings: &Findings) -> Vec<(&'static str, u64)> {
        let broken = findings.rules().into_iter().filter(|rule| rule.differences > 0);
        broken.map(|rule| (rule.name, rule.differences)).collect()
    }

    const EXPECTED: [(u64, &str); 3] = [(1, "paid_early"), (2, "released"), (3, "sold_out")];

    fn compared(outcomes: &[Outcome]) -> Vec<(&'static str, u64)> {
        let mut findings = Findings::new();
        findings.outcomes(outcomes, EXPECTED);
        broken(&findings)
    }

    #[test]
    fn what_is_as_replay_says_has_no_difference() {
        assert_eq!(compared(&[outcome(1, 2, "released", 9), outcome(4, 1, "paid_early", 9)]), []);
    }

    #[test]
    fn each_kind_of_wrong_outcome_is_found() {
        let (first, second) = (outcome(1, 1, "paid_early", 9), outcome(2, 2, "released", 9));
        let with = |more| compared(&[first.clone(), second.clone(), more]);
        assert_eq!(with(outcome(2, 9, "released", 9)).len(), 2, "a number twice, and an unknown order");
        assert_eq!(with(outcome(3, 2, "released", 9)), [("no order has two outcomes", 1)]);
        assert_eq!(with(outcome(3, 3, "confirmed", 9)), [("no other order has one", 1)]);
        assert_eq!(compared(&[first]), [("every order that replay accepts has an outcome", 1)]);
        let wrong = compared(&[outcome(1, 1, "confirmed", 9), second]);
        assert_eq!(wrong, [("every outcome equals that of replay", 1)]);
    }

    #[test]
    fn early_checks_and_orders_that_differ_are_found() {
        let placed =
            PlacedOrder { order_id: 1, item: "nut".to_owned(), quantity: 2, amount: 9, placed_at: 0 };
        let files = Files { orders: vec![placed], slots: [(1, 0)].into(), ..Files::default() };
        let order = |check_at_ms, quantity| Order {
            item: "nut".to_owned(),
            quantity,
            amount_cents: 9,
            state: "released".to_owned(),
            check_at_ms,
            decided_at_ms: Some(100),
        };
        let found = |order: Option<Order>, state| {
            let mut findings = Findings::new();
            findings.order(&outcome(1, 1, state, 100), order.as_ref(), &files);
            [findings.early.differences, findings.orders.differences]
        };
        assert_eq!(found(Some(order(100, 2)), "released"), [0, 0]);
        assert_eq!(found(Some(order(101, 2)), "released"), [1, 0]);
        assert_eq!(found(Some(order(99, 2)), "paid_early"), [1, 1]);
        assert_eq!(found(Some(order(100, 3)), "released"), [0, 1]);
        assert_eq!(found(None, "released"), [0, 1]);
    }

    #[test]
    fn wrong_stock_is_found() {
        let found = |stock, reserved, sold| {
            let mut findings = Findings::new();
            findings.stock("nut", Stock { stock, reserved, sold }, 3, 5);
            [&findings.sold, &findings.reserved, &findings.oversold].map(|rule| rule.differences)
        };
        assert_eq!(found(5, 0, 3), [0, 0, 0]);
        assert_eq!(found(5, 2, 3), [0, 1, 0]);
        assert_eq!(found(5, 0, 6), [1, 0, 1]);
        assert_eq!(found(7, 0, 3), [0, 0, 1]);
    }
}

//! What must hold, and where it does not.

use std::collections::HashMap;
use std::io::{self, Write};

use order_reconciliation::files::Files;

use super::source::{Order, Outcome, Stock};

/// Differences of one kind that are shown.
const SHOWN: usize = 5;

/// What must hold, in the order in which it is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    Numbers,
    Once,
    Missing,
    Unexpected,
    Equal,
    Early,
    Orders,
    Sold,
    Reserved,
    Oversold,
    Answers,
}

const NAMES: [&str; 11] = [
    "the numbers of outcomes strictly increase",
    "no order has two outcomes",
    "every order that replay accepts has an outcome",
    "no other order has one",
    "every outcome equals that of replay",
    "no check is early, and paid early is before the check",
    "every order is that of the file, and agrees with its outcome",
    "units sold are those of the orders that were kept",
    "no units are reserved",
    "nothing is oversold",
    "every answer is possible after the answers before it",
];

/// How often a rule was looked at, how often it does not hold, and the first differences.
#[derive(Debug, Default)]
struct Found {
    looked_at: u64,
    differences: u64,
    shown: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Findings([Found; NAMES.len()]);

impl Findings {
    /// Notes a difference unless `holds`.
    pub(crate) fn expect(&mut self, rule: Rule, holds: bool, difference: impl FnOnce() -> String) {
        let Found { looked_at, differences, shown } = &mut self.0[rule as usize];
        *looked_at += 1;
        *differences += u64::from(!holds);
        if !holds && shown.len() < SHOWN {
            shown.push(difference());
        }
    }

    pub(crate) fn differences(&self) -> u64 {
        self.0.iter().map(|found| found.differences).sum()
    }

    /// Compares outcomes, in the order in which the server returns them, with what is expected of each
    /// order. Returns the outcome of each.
    pub(crate) fn outcomes<'a>(
        &mut self,
        outcomes: &'a [Outcome],
        expected: impl IntoIterator<Item = (u64, &'static str)>,
    ) -> HashMap<u64, &'a Outcome> {
        for pair in outcomes.windows(2) {
            self.expect(Rule::Numbers, pair[0].seq < pair[1].seq, || {
                format!("{} follows {}", pair[1].seq, pair[0].seq)
            });
        }
        let mut ends = HashMap::with_capacity(outcomes.len());
        for outcome in outcomes {
            let before = ends.insert(outcome.order_id, outcome);
            self.expect(Rule::Once, before.is_none(), || format!("order {}", outcome.order_id));
        }
        let mut known = 0;
        for (order_id, state) in expected {
            known += u64::from(self.outcome(order_id, state, ends.get(&order_id).copied()));
        }
        let others = ends.len() as u64 - known;
        self.expect(Rule::Unexpected, others == 0, || {
            format!("{others} outcomes are for orders that are not in the file")
        });
        ends
    }

    /// Returns whether there is an outcome.
    fn outcome(&mut self, order_id: u64, state: &str, found: Option<&Outcome>) -> bool {
        match found {
            None => {
                self.expect(Rule::Missing, state == "sold_out", || {
                    format!("order {order_id}: {state} in replay")
                });
            }
            Some(found) if state == "sold_out" => {
                let found = &found.state;
                self.expect(Rule::Unexpected, false, || {
                    format!("order {order_id}: sold out in replay, here {found}")
                });
            }
            Some(found) => {
                let found = &found.state;
                self.expect(Rule::Equal, found == state, || {
                    format!("order {order_id}: {state} in replay, here {found}")
                });
            }
        }
        found.is_some()
    }

    /// Compares an order with its outcome and with the file.
    pub(crate) fn order(&mut self, outcome: &Outcome, order: Option<&Order>, files: &Files) {
        let Outcome { order_id, ref state, decided_at_ms, .. } = *outcome;
        let Some(order) = order else {
            return self.expect(Rule::Orders, false, || {
                format!("order {order_id} has an outcome, and is not there")
            });
        };
        let check_at = order.check_at_ms;
        let in_time =
            if state == "paid_early" { decided_at_ms <= check_at } else { decided_at_ms >= check_at };
        self.expect(Rule::Early, in_time, || {
            format!("order {order_id}: {state} at {decided_at_ms}, its check is at {check_at}")
        });
        let agrees = order.state == *state && order.decided_at_ms == Some(decided_at_ms);
        self.expect(Rule::Orders, agrees, || format!("order {order_id}: {order:?}, but {outcome:?}"));
        if let Some(&slot) = files.slots.get(&order_id) {
            let placed = &files.orders[slot as usize];
            let same = (&*order.item, order.quantity, order.amount_cents)
                == (&*placed.item, placed.quantity, placed.amount);
            self.expect(Rule::Orders, same, || format!("order {order_id}: {order:?}, but {placed:?}"));
        }
    }

    /// Compares an item's units with those of the orders that were kept.
    pub(crate) fn stock(&mut self, item: &str, found: Stock, kept: u64, stock: u64) {
        let Stock { stock: units, reserved, sold } = found;
        self.expect(Rule::Sold, sold == kept, || format!("{item}: {sold} are sold, {kept} in the outcomes"));
        self.expect(Rule::Reserved, reserved == 0, || format!("{item}: {reserved} are reserved"));
        let enough = units == stock && sold + reserved <= stock;
        self.expect(Rule::Oversold, enough, || format!("{item}: {found:?}, of {stock} units"));
    }

    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| what must hold | differences |\n|---|---|")?;
        let rules = || NAMES.iter().zip(&self.0);
        for (name, found) in rules().filter(|(_, found)| found.looked_at > 0) {
            writeln!(out, "| {name} | {} |", found.differences)?;
        }
        for (name, found) in rules() {
            for difference in &found.shown {
                writeln!(out, "{name}: not so: {difference}")?;
            }
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
        let rules = NAMES.into_iter().zip(findings.0.iter().map(|found| found.differences));
        rules.filter(|(_, differences)| *differences > 0).collect()
    }

    const EXPECTED: [(u64, &str); 3] = [(1, "paid_early"), (2, "released"), (3, "sold_out")];

    fn compared(outcomes: &[Outcome]) -> Vec<(&'static str, u64)> {
        let mut findings = Findings::default();
        findings.outcomes(outcomes, EXPECTED);
        broken(&findings)
    }

    #[test]
    fn each_kind_of_wrong_outcome_is_found() {
        let (first, second) = (outcome(1, 1, "paid_early", 9), outcome(2, 2, "released", 9));
        assert_eq!(compared(&[first.clone(), second.clone()]), []);
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
        let mut files = Files::default();
        (files.orders, files.slots) = (vec![placed], [(1, 0)].into());
        let order = |check_at_ms, quantity| Order {
            item: "nut".to_owned(),
            quantity,
            amount_cents: 9,
            state: "released".to_owned(),
            check_at_ms,
            decided_at_ms: Some(100),
        };
        let found = |order: Option<Order>, state| {
            let mut findings = Findings::default();
            findings.order(&outcome(1, 1, state, 100), order.as_ref(), &files);
            [Rule::Early, Rule::Orders].map(|rule| findings.0[rule as usize].differences)
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
            let mut findings = Findings::default();
            findings.stock("nut", Stock { stock, reserved, sold }, 3, 5);
            [Rule::Sold, Rule::Reserved, Rule::Oversold].map(|rule| findings.0[rule as usize].differences)
        };
        assert_eq!(found(5, 0, 3), [0, 0, 0]);
        assert_eq!(found(5, 2, 3), [0, 1, 0]);
        assert_eq!(found(5, 0, 6), [1, 0, 1]);
        assert_eq!(found(7, 0, 3), [0, 0, 1]);
    }
}

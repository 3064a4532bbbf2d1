//! The audit: the final state of each order, and whether it agrees with the stock, with the counts
//! taken during the run, and with the engine's operations.

use crate::engine::Costs;
use crate::files::Lines;
use crate::ledger::{Ledger, Page, State, Sum, Tally};

/// The totals, and the identities that must hold for them.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    pub(crate) lines: Lines,
    pub(crate) ended: Ended,
    pub(crate) tally: Tally,
    pub(crate) identities: Vec<Identity>,
}

/// A condition that must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: &'static str,
    pub(crate) holds: bool,
}

/// The orders, by final state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) paid_early: Sum,
    pub(crate) confirmed: Sum,
    pub(crate) released: Sum,
    pub(crate) sold_out: Sum,
    /// Not ended.
    pub(crate) open: Sum,
}

/// The stock of all items.
#[derive(Clone, Copy, Debug, Default)]
struct Stock {
    still_reserved: u64,
    oversold: u64,
    /// Items whose sales differ from the sales of their orders.
    unaccounted: u64,
}

impl Audit {
    pub(crate) fn of(ledger: Ledger, lines: Lines, costs: &Costs) -> Self {
        let (mut ended, mut tally, mut stock) = (Ended::default(), Tally::default(), Stock::default());
        for page in ledger.into_pages() {
            page.orders.iter().for_each(|order| ended.entry(order.state).add(order.terms.amount));
            tally += page.tally;
            stock.add(&page);
        }
        let identities = identities(&lines, &ended, &tally, &stock, costs);
        Self { lines, ended, tally, identities }
    }

    /// What does not depend on the engine.
    pub(crate) fn totals(&self) -> impl PartialEq {
        (self.ended, self.tally)
    }
}

impl Ended {
    fn entry(&mut self, state: State) -> &mut Sum {
        match state {
            State::PaidEarly => &mut self.paid_early,
            State::Confirmed => &mut self.confirmed,
            State::Released => &mut self.released,
            State::SoldOut => &mut self.sold_out,
            State::Planned | State::Pending => &mut self.open,
        }
    }

    /// The orders that were accepted and have ended.
    pub(crate) fn accepted(&self) -> Sum {
        let mut sum = self.paid_early;
        sum += self.confirmed;
        sum += self.released;
        sum
    }
}

impl Stock {
    fn add(&mut self, page: &Page) {
        let mut sold = vec![0; page.items.len()];
        for order in &page.orders {
            if matches!(order.state, State::PaidEarly | State::Confirmed) {
                sold[order.item as usize] += u64::from(order.terms.quantity);
            }
        }
        for (item, sold) in page.items.iter().zip(sold) {
            self.still_reserved += item.reserved;
            self.oversold += u64::from(sold > item.stock || item.peak > item.stock);
            self.unaccounted += u64::from(sold != item.sold);
        }
    }
}

fn identities(lines: &Lines, ended: &Ended, tally: &Tally, stock: &Stock, costs: &Costs) -> Vec<Identity> {
    let placed = tally.reserved.count;
    let payments = tally.counted_payments.count + tally.returned_payments.count;
    let list = [
        ("orders read = placed + sold out + bad", {
            lines.orders.read == placed + ended.sold_out.count + lines.orders.bad
        }),
        ("payments read = counted + returned + bad", lines.payments.read == payments + lines.payments.bad),
        ("orders placed = paid early + confirmed + released", placed == ended.accepted().count),
        (
            "money reserved = paid early + confirmed + released",
            tally.reserved.cents == ended.accepted().cents,
        ),
        ("stock reserved is back to zero", stock.still_reserved == 0),
        ("stock sold is that of the orders paid", stock.unaccounted == 0),
        ("no item is oversold", stock.oversold == 0),
        ("no order is checked early", tally.early_checks == 0),
        ("no order is checked or ended twice", tally.repeated_ends == 0),
        ("no order is left unchecked", ended.open.count == 0),
        ("checks scheduled = cancelled + fired", {
            costs.schedule.operations == costs.cancelled + costs.fire.operations
        }),
        ("checks cancelled = paid early", costs.cancelled == ended.paid_early.count),
        ("checks fired = confirmed + released", {
            costs.fire.operations == tally.checks
                && tally.checks == ended.confirmed.count + ended.released.count
        }),
    ];
    list.into_iter().map(|(name, holds)| Identity { name, holds }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Item, Order};

    /// One item with two units, and two orders of one unit each.
    fn page() -> Page {
        let mut page = Page::new(100);
        page.items.push(Item { stock: 2, ..Item::default() });
        page.orders.extend([Order::planned(0, 1, 300), Order::planned(0, 1, 500)]);
        assert!(page.place(0, 0).is_some() && page.place(1, 0).is_some());
        page
    }

    /// The names of the broken identities, if the engine fired `fired` checks.
    fn broken(page: Page, fired: u64) -> Vec<&'static str> {
        let mut lines = Lines::default();
        lines.orders.read = page.orders.len() as u64;
        let mut costs = Costs::default();
        costs.schedule.operations = 2;
        costs.fire.operations = fired;
        let ledger = Ledger::new(vec![page]);
        let audit = Audit::of(ledger, lines, &costs);
        audit.identities.iter().filter(|identity| !identity.holds).map(|identity| identity.name).collect()
    }

    /// A day, how many checks the engine fired on it, and the identities that it breaks.
    type Case = (fn(&mut Page), u64, &'static [&'static str]);

    #[test]
    fn a_broken_identity_is_found() {
        let cases: [Case; 3] = [
            (|page| [0, 1].into_iter().for_each(|slot| page.check(slot, 100)), 2, &[]),
            (
                |page| page.check(0, 100),
                1,
                &[
                    "orders placed = paid early + confirmed + released",
                    "money reserved = paid early + confirmed + released",
                    "stock reserved is back to zero",
                    "no order is left unchecked",
                    "checks scheduled = cancelled + fired",
                ],
            ),
            (
                |page| [(0, 99), (1, 100), (1, 100)].into_iter().for_each(|(slot, at)| page.check(slot, at)),
                3,
                &[
                    "no order is checked early",
                    "no order is checked or ended twice",
                    "checks scheduled = cancelled + fired",
                    "checks fired = confirmed + released",
                ],
            ),
        ];
        for (day, fired, expected) in cases {
            let mut page = page();
            day(&mut page);
            assert_eq!(broken(page, fired), expected);
        }
    }
}

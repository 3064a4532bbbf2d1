//! The report.

use std::fmt;

use crate::PASSES;
use crate::args::Args;
use crate::audit::{Audit, Identity};
use crate::engine::Costs;
use crate::ledger::Sum;

/// The whole report.
pub(crate) struct Report<'a> {
    pub(crate) args: &'a Args,
    /// Two of each pass: shardwheel's and the heap's. Those of the last pass are shown.
    pub(crate) runs: Vec<Run>,
}

/// What one engine did in one pass.
pub(crate) struct Run {
    pub(crate) audit: Audit,
    pub(crate) costs: Costs,
}

impl Report<'_> {
    pub(crate) fn all_hold(&self) -> bool {
        self.identities().all(|identity| identity.holds)
    }

    fn shown(&self) -> &[Run] {
        &self.runs[self.runs.len() - 2..]
    }

    /// What must hold of every run.
    fn identities(&self) -> impl Iterator<Item = Identity> {
        let of_all = |index: usize| {
            let mut identity = self.runs[0].audit.identities[index];
            identity.holds = self.runs.iter().all(|run| run.audit.identities[index].holds);
            identity
        };
        let holds = self.runs.windows(2).all(|runs| runs[0].audit.totals() == runs[1].audit.totals());
        let name = "both engines end all orders alike";
        (0..self.runs[0].audit.identities.len()).map(of_all).chain([Identity { name, holds }])
    }

    fn write_orders(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Audit { lines, ended, tally, .. } = &self.runs[0].audit;
        row(f, "orders read", lines.orders.read, "")?;
        row(f, "  bad lines", lines.orders.bad, "")?;
        row(f, "  sold out", ended.sold_out.count, "")?;
        let reserved = tally.reserved;
        row(f, "  placed", reserved.count, &format!("{} reserved", money(reserved.cents)))?;
        sum(f, "    paid early (cancelled)", ended.paid_early)?;
        sum(f, "    confirmed", ended.confirmed)?;
        sum(f, "    released", ended.released)?;
        row(f, "payments read", lines.payments.read, "")?;
        row(f, "  bad lines", lines.payments.bad, "")?;
        sum(f, "  counted", tally.counted_payments)?;
        sum(f, "  returned", tally.returned_payments)
    }

    fn write_costs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28}{:>14}{:>14}", "", "shardwheel", "heap")?;
        let mut column = |name: &str, cell: &dyn Fn(&Run) -> String, unit: &str| {
            let cells = self.shown().iter().map(|run| format!("{:>14}", cell(run))).collect::<String>();
            writeln!(f, "{}", format!("{name:<28}{cells} {unit}").trim_end())
        };
        column("schedule", &|run| format!("{:.1}", run.costs.schedule.mean_ns()), "ns")?;
        column("cancel", &|run| format!("{:.1}", run.costs.cancel.mean_ns()), "ns")?;
        column("fire", &|run| format!("{:.1}", run.costs.fire.mean_ns()), "ns")?;
        let seconds = |run: &Run| format!("{:.3}", run.costs.total().as_secs_f64());
        column("time in the engine", &seconds, "s, all threads together")?;
        let per_second = |run: &Run| grouped(run.costs.timers_per_second() as u128);
        column("timers per second", &per_second, "of that time")
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (check_after, producers) = (self.args.check_after, self.args.producer_count());
        writeln!(f, "virtual clock, check after {check_after:?}, producers: {producers}")?;
        writeln!(f, "shown is pass {PASSES} of {PASSES}: in the first one, memory is new to the process\n")?;
        self.write_orders(f)?;
        writeln!(f)?;
        self.write_costs(f)?;
        writeln!(f)?;
        for Identity { name, holds } in self.identities() {
            writeln!(f, "{:<8}{name}", if holds { "holds" } else { "BROKEN" })?;
        }
        let [wheel, heap] = [0, 1].map(|engine: usize| self.shown()[engine].costs.total().as_secs_f64());
        writeln!(
            f,
            "\nshardwheel: {wheel:.3} s in the engine; the heap: {heap:.3} s, {:.1} times as long",
            heap / wheel
        )
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, count: u64, note: &str) -> fmt::Result {
    let line = format!("{name:<28}{:>14} {note}", grouped(u128::from(count)));
    writeln!(f, "{}", line.trim_end())
}

fn sum(f: &mut fmt::Formatter<'_>, name: &str, Sum { count, cents }: Sum) -> fmt::Result {
    row(f, name, count, &money(cents))
}

/// Cents as whole units and hundredths.
fn money(cents: u128) -> String {
    format!("{:>18}.{:02}", grouped(cents / 100), cents % 100)
}

/// A number with a comma between thousands.
fn grouped(number: u128) -> String {
    if number < 1_000 {
        return number.to_string();
    }
    format!("{},{:03}", grouped(number / 1_000), number % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1_000, 1_234_007].map(grouped), ["0", "999", "1,000", "1,234,007"]);
        assert_eq!(money(123_456_705).trim_start(), "1,234,567.05");
    }
}

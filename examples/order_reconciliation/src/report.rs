//! The report.

use std::fmt;
use std::fs;
use std::time::Duration;

use crate::args::{Args, EngineKind};
use crate::audit::{Audit, Identity};
use crate::engine::Costs;
use crate::ledger::Sum;

/// The whole report.
pub(crate) struct Report<'a> {
    args: &'a Args,
    passes: usize,
    /// All passes; those of the last pass, one for each engine, come last and are shown.
    runs: Vec<Run>,
    peak_memory_bytes: Option<u64>,
}

/// What one engine did in one pass.
pub(crate) struct Run {
    pub(crate) engine: EngineKind,
    pub(crate) audit: Audit,
    pub(crate) costs: Costs,
    pub(crate) took: Duration,
}

impl<'a> Report<'a> {
    pub(crate) fn new(args: &'a Args, passes: usize, runs: Vec<Run>) -> Self {
        Self { args, passes, runs, peak_memory_bytes: peak_memory() }
    }

    pub(crate) fn all_hold(&self) -> bool {
        self.identities().all(|identity| identity.holds)
    }

    fn shown(&self) -> &[Run] {
        &self.runs[self.runs.len() - self.runs.len() / self.passes..]
    }

    /// What must hold of every run.
    fn identities(&self) -> impl Iterator<Item = Identity> {
        let of_all = |index: usize| {
            let mut identity = self.runs[0].audit.identities[index];
            identity.holds = self.runs.iter().all(|run| run.audit.identities[index].holds);
            identity
        };
        let holds = self.runs.windows(2).all(|runs| runs[0].audit.totals() == runs[1].audit.totals());
        let name = if self.shown().len() > 1 {
            "both engines end all orders alike"
        } else {
            "both passes end all orders alike"
        };
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
        let mut column = |name: &str, cell: &dyn Fn(&Run) -> String, unit: &str| {
            let cells = self.shown().iter().map(|run| format!("{:>14}", cell(run))).collect::<String>();
            writeln!(f, "{}", format!("{name:<28}{cells} {unit}").trim_end())
        };
        column("", &|run| run.engine.name().to_owned(), "")?;
        column("schedule", &|run| format!("{:.1}", run.costs.schedule.mean_ns()), "ns")?;
        column("cancel", &|run| format!("{:.1}", run.costs.cancel.mean_ns()), "ns")?;
        column("fire", &|run| format!("{:.1}", run.costs.fire.mean_ns()), "ns")?;
        let seconds = |run: &Run| format!("{:.3}", run.costs.total().as_secs_f64());
        column("time in the engine", &seconds, "s, all threads together")?;
        let per_second = |run: &Run| grouped(run.costs.timers_per_second() as u128);
        column("timers per second", &per_second, "of that time")?;
        column("time from first to last", &|run| format!("{:.3}", run.took.as_secs_f64()), "s")?;
        match self.peak_memory_bytes {
            Some(bytes) => {
                writeln!(f, "{:<28}{:>14.1} MiB", "peak memory", bytes as f64 / f64::from(1 << 20))
            }
            None => writeln!(f, "{:<28}{:>14}", "peak memory", "n/a"),
        }
    }

    /// The line that compares the engines, if both ran.
    fn write_gain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [wheel, heap] = self.shown() else { return Ok(()) };
        let [wheel, heap] = [wheel, heap].map(|run| run.costs.total().as_secs_f64());
        let times = heap / wheel;
        writeln!(
            f,
            "\nshardwheel: {wheel:.3} s in the engine; the heap: {heap:.3} s, {times:.1} times as long"
        )
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { args, passes, .. } = self;
        let check_after = duration(args.check_after.as_millis() as u64);
        write!(f, "virtual clock, check after {check_after}, producers: {}", args.producer_count())?;
        if self.runs[0].engine == EngineKind::Shardwheel {
            write!(f, ", shards: {}", args.shard_count())?;
        }
        writeln!(
            f,
            "\nshown is pass {passes} of {passes}: in the first one, memory is new to the process\n"
        )?;
        self.write_orders(f)?;
        writeln!(f)?;
        self.write_costs(f)?;
        writeln!(f)?;
        for Identity { name, holds } in self.identities() {
            writeln!(f, "{:<8}{name}", if holds { "holds" } else { "BROKEN" })?;
        }
        self.write_gain(f)
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, count: u64, note: &str) -> fmt::Result {
    let line = format!("{name:<28}{:>14} {note}", grouped(u128::from(count)));
    writeln!(f, "{}", line.trim_end())
}

fn sum(f: &mut fmt::Formatter<'_>, name: &str, Sum { count, cents }: Sum) -> fmt::Result {
    row(f, name, count, &money(cents))
}

/// A duration in the command line's syntax, in the largest unit that divides it.
fn duration(millis: u64) -> String {
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fitting = units.iter().find(|(unit, _)| millis.is_multiple_of(*unit));
    fitting.map_or_else(|| format!("{millis}ms"), |(unit, name)| format!("{}{name}", millis / unit))
}

/// Cents as whole units and hundredths.
fn money(cents: u128) -> String {
    format!("{:>18}.{:02}", grouped(cents / 100), cents % 100)
}

/// A number with a comma between thousands.
fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The process's peak memory in bytes, where the system reports it (Linux).
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(kibibytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_they_were_given() {
        assert_eq!([1_800_000, 10_000, 1_500, 7_200_000].map(duration), ["30m", "10s", "1500ms", "2h"]);
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(money(123_456_705).trim_start(), "1,234,567.05");
    }
}

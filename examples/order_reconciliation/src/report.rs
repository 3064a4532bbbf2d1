//! The report: a table for people, or JSON for programs.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::time::Duration;

use crate::args::{Args, ClockKind, EngineKind};
use crate::audit::{Audit, Identity};
use crate::engine::Costs;
use crate::figures::Figures;
use crate::ledger::{Micros, Sum};

/// The whole report.
pub(crate) struct Report<'a> {
    args: &'a Args,
    /// The pass of each engine that is shown.
    pass: usize,
    /// Of each engine, one at least.
    runs: Vec<Run>,
    peak_memory_bytes: Option<u64>,
}

/// What one engine did.
pub(crate) struct Run {
    pub(crate) engine: EngineKind,
    pub(crate) audit: Audit,
    pub(crate) costs: Costs,
    pub(crate) took: Duration,
    /// How late the checks were; `None` for the virtual clock.
    pub(crate) lateness: Option<Lateness>,
    /// The statistics of a `Timer`, if the engine is one. Its threads both fire and check, so the
    /// costs do not have those of firing.
    pub(crate) timer: Option<Figures>,
}

/// How late the checks were, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lateness {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
    pub(crate) max_ms: f64,
}

impl<'a> Report<'a> {
    pub(crate) fn new(args: &'a Args, pass: usize, runs: Vec<Run>) -> Self {
        Self { args, pass, runs, peak_memory_bytes: peak_memory() }
    }

    pub(crate) fn all_hold(&self) -> bool {
        self.identities().all(|identity| identity.holds)
    }

    /// What must hold of every run.
    fn identities(&self) -> impl Iterator<Item = Identity> {
        let of_all = |index: usize| {
            let mut identity = self.runs[0].audit.identities[index];
            identity.holds = self.runs.iter().all(|run| run.audit.identities[index].holds);
            identity
        };
        let alike = self.runs.windows(2).all(|runs| runs[0].audit.totals() == runs[1].audit.totals());
        let alike = Identity { name: "both engines end all orders alike", holds: alike };
        let alike = (self.runs.len() > 1).then_some(alike);
        (0..self.runs[0].audit.identities.len()).map(of_all).chain(alike)
    }

    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.args.json {
            let runs = self.runs.iter().map(|run| self.json(run)).collect::<Vec<_>>();
            writeln!(out, "[{}]", runs.join(",\n"))?;
        } else {
            write!(out, "{self}")?;
        }
        out.flush()
    }

    fn write_orders(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Audit { lines, ended, tally, .. } = &self.runs[0].audit;
        row(f, "orders read", lines.orders.read, "")?;
        row(f, "  bad lines", lines.orders.bad, "")?;
        row(f, "  sold out", ended.sold_out.count, "")?;
        row(f, "  refused by the engine", ended.refused.count, "")?;
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
            let cells = self.runs.iter().map(|run| format!("{:>14}", cell(run))).collect::<String>();
            writeln!(f, "{}", format!("{name:<28}{cells} {unit}").trim_end())
        };
        column("", &|run| run.engine.name().to_owned(), "")?;
        column("schedule", &|run| format!("{:.1}", run.costs.schedule.mean_ns()), "ns")?;
        column("cancel", &|run| format!("{:.1}", run.costs.cancel.mean_ns()), "ns")?;
        if self.runs.iter().any(|run| run.timer.is_some()) {
            column("fire", &|_| "n/a".to_owned(), "its threads also check")?;
        } else {
            column("fire", &|run| format!("{:.1}", run.costs.fire.mean_ns()), "ns")?;
            let seconds = |run: &Run| format!("{:.3}", run.costs.total().as_secs_f64());
            column("time in the engine", &seconds, "s, all threads together")?;
            let per_second = |run: &Run| grouped(run.costs.timers_per_second() as u128);
            column("timers per second", &per_second, "of that time")?;
        }
        column("time from first to last", &|run| format!("{:.3}", run.took.as_secs_f64()), "s")
    }

    /// What one run did by the real clock.
    fn write_real(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for run in &self.runs {
            if let Some(lateness) = &run.lateness {
                lateness.write(f, "lateness of checks")?;
            }
            if let Some(timer) = &run.timer {
                write!(f, "\n{timer}")?;
            }
        }
        Ok(())
    }

    /// The line that compares the engines, if both ran.
    fn write_gain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [wheel, heap] = &self.runs[..] else { return Ok(()) };
        let [wheel, heap] = [wheel, heap].map(|run| run.costs.total().as_secs_f64());
        let times = heap / wheel;
        writeln!(
            f,
            "\nshardwheel: {wheel:.3} s in the engine; the heap: {heap:.3} s, {times:.1} times as long"
        )
    }

    fn json(&self, run: &Run) -> String {
        let Self { args, pass, peak_memory_bytes, .. } = self;
        let Run { engine, audit: Audit { lines, ended, tally, .. }, costs, took, lateness, timer } = run;
        let driven = |figure: f64| or_null(timer.is_none().then_some(figure));
        let identity =
            |Identity { name, holds }| object(&[("name", text(name)), ("holds", holds.to_string())]);
        object(&[
            ("engine", text(engine.name())),
            ("clock", text(args.clock.name())),
            ("check_after_ms", args.check_after.as_millis().to_string()),
            ("producers", args.producer_count().to_string()),
            ("shards", or_null((*engine == EngineKind::Shardwheel).then(|| args.shard_count()))),
            ("pass", pass.to_string()),
            (
                "orders",
                object(&[
                    ("read", lines.orders.read.to_string()),
                    ("bad", lines.orders.bad.to_string()),
                    ("placed", tally.reserved.count.to_string()),
                    ("sold_out", ended.sold_out.count.to_string()),
                    ("refused", ended.refused.count.to_string()),
                ]),
            ),
            (
                "payments",
                object(&[
                    ("read", lines.payments.read.to_string()),
                    ("bad", lines.payments.bad.to_string()),
                    ("counted", tally.counted_payments.count.to_string()),
                    ("returned", tally.returned_payments.count.to_string()),
                ]),
            ),
            ("paid_early", ended.paid_early.count.to_string()),
            ("confirmed", ended.confirmed.count.to_string()),
            ("released", ended.released.count.to_string()),
            (
                "cents",
                object(&[
                    ("reserved", tally.reserved.cents.to_string()),
                    ("paid_early", ended.paid_early.cents.to_string()),
                    ("confirmed", ended.confirmed.cents.to_string()),
                    ("released", ended.released.cents.to_string()),
                    ("payments_counted", tally.counted_payments.cents.to_string()),
                    ("payments_returned", tally.returned_payments.cents.to_string()),
                ]),
            ),
            ("schedule_ns", costs.schedule.mean_ns().to_string()),
            ("cancel_ns", costs.cancel.mean_ns().to_string()),
            ("fire_ns", driven(costs.fire.mean_ns())),
            ("engine_seconds", driven(costs.total().as_secs_f64())),
            ("timers_per_second", driven(costs.timers_per_second())),
            ("elapsed_seconds", took.as_secs_f64().to_string()),
            ("lateness", or_null(lateness.map(|lateness| lateness.json()))),
            ("timer", or_null(timer.as_ref().map(Figures::json))),
            ("peak_memory_bytes", or_null(*peak_memory_bytes)),
            ("identities", list(self.identities().map(identity))),
        ])
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { args, runs, pass, .. } = self;
        let (clock, check_after) = (args.clock.name(), duration(args.check_after.as_millis() as u64));
        write!(f, "{clock} clock, check after {check_after}, producers: {}", args.producer_count())?;
        if runs[0].engine == EngineKind::Shardwheel {
            write!(f, ", shards: {}", args.shard_count())?;
        }
        if args.clock == ClockKind::Virtual {
            write!(f, "\nshown is pass {pass} of {pass}: in the first one, memory is new to the process")?;
        }
        writeln!(f, "\n")?;
        self.write_orders(f)?;
        writeln!(f)?;
        self.write_costs(f)?;
        match self.peak_memory_bytes {
            Some(bytes) => {
                writeln!(f, "{:<28}{:>14.1} MiB", "peak memory", bytes as f64 / f64::from(1 << 20))?;
            }
            None => writeln!(f, "{:<28}{:>14}", "peak memory", "n/a")?,
        }
        self.write_real(f)?;
        writeln!(f)?;
        for Identity { name, holds } in self.identities() {
            writeln!(f, "{:<8}{name}", if holds { "holds" } else { "BROKEN" })?;
        }
        self.write_gain(f)
    }
}

impl Lateness {
    /// The percentiles; `None` if there were no checks.
    pub(crate) fn of(mut checks: Vec<Micros>) -> Option<Self> {
        checks.sort_unstable();
        let last = checks.len().checked_sub(1)?;
        let quantile = |quantile: f64| checks[(last as f64 * quantile) as usize] as f64 / 1_000.0;
        let [p50_ms, p99_ms, p999_ms, max_ms] = [0.5, 0.99, 0.999, 1.0].map(quantile);
        Some(Self { p50_ms, p99_ms, p999_ms, max_ms })
    }

    /// Writes one row for each figure.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        let Self { p50_ms, p99_ms, p999_ms, max_ms } = self;
        writeln!(f, "{name:<28}{p50_ms:>14.3} ms p50")?;
        for (value, what) in [(p99_ms, "p99"), (p999_ms, "p99.9"), (max_ms, "max")] {
            writeln!(f, "{:<28}{value:>14.3} ms {what}", "")?;
        }
        Ok(())
    }

    pub(crate) fn json(&self) -> String {
        let Self { p50_ms, p99_ms, p999_ms, max_ms } = self;
        let fields = [("p50_ms", p50_ms), ("p99_ms", p99_ms), ("p999_ms", p999_ms), ("max_ms", max_ms)];
        object(&fields.map(|(name, figure)| (name, figure.to_string())))
    }
}

/// An object in JSON. The values are JSON already.
pub(crate) fn object(fields: &[(&str, String)]) -> String {
    let fields = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect::<Vec<_>>();
    format!("{{{}}}", fields.join(","))
}

/// A list in JSON. The values are JSON already.
pub(crate) fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

pub(crate) fn or_null(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

/// A text in JSON. All texts of the report are its own names, and none has a character to escape.
fn text(text: &str) -> String {
    format!("\"{text}\"")
}

pub(crate) fn row(f: &mut fmt::Formatter<'_>, name: &str, count: u64, note: &str) -> fmt::Result {
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

    #[test]
    fn percentiles_are_of_the_sorted_values() {
        let lateness = Lateness::of((0..=1_000).rev().map(|micros| micros * 1_000).collect());
        let Lateness { p50_ms, p99_ms, p999_ms, max_ms } = lateness.expect("there are values");
        assert_eq!([p50_ms, p99_ms, p999_ms, max_ms], [500.0, 990.0, 999.0, 1_000.0]);
        assert!(Lateness::of(Vec::new()).is_none());
    }

    #[test]
    fn json_nests() {
        let list = list([text("a"), or_null(None::<u8>)].into_iter());
        assert_eq!(object(&[("x", list), ("y", object(&[]))]), r#"{"x":["a",null],"y":{}}"#);
    }
}

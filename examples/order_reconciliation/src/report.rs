//! The report: a table for people, or JSON for programs.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use crate::args::{Args, EngineKind};
use crate::audit::{Audit, Identity};
use crate::checker::Measured;
use crate::figures::Figures;
use crate::ledger::{Micros, Sum};

/// The whole report. The field names are the names in the JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    engine: String,
    clock: String,
    check_after_ms: u64,
    producers: u32,
    /// `None` for an engine without shards.
    shards: Option<u32>,
    orders: Orders,
    payments: Payments,
    paid_early: u64,
    confirmed: u64,
    released: u64,
    cents: Cents,
    schedule_ns: f64,
    cancel_ns: f64,
    /// `None` for a `Timer`, as are the next two fields: its threads both fire and check.
    fire_ns: Option<f64>,
    engine_seconds: Option<f64>,
    timers_per_second: Option<f64>,
    elapsed_seconds: f64,
    lateness: Option<Lateness>,
    /// The statistics of a `Timer`, if the engine is one.
    timer: Option<Figures>,
    peak_memory_bytes: Option<u64>,
    identities: Vec<Identity>,
}

#[derive(Debug, Serialize)]
struct Orders {
    read: u64,
    bad: u64,
    placed: u64,
    sold_out: u64,
    refused: u64,
}

#[derive(Debug, Serialize)]
struct Payments {
    read: u64,
    bad: u64,
    counted: u64,
    returned: u64,
}

#[derive(Debug, Serialize)]
struct Cents {
    reserved: u128,
    paid_early: u128,
    confirmed: u128,
    released: u128,
    payments_counted: u128,
    payments_returned: u128,
}

/// How late the checks were, in milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Lateness {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
    pub(crate) max_ms: f64,
}

impl Report {
    pub(crate) fn new(args: &Args, audit: Audit, measured: Measured, took: Duration) -> Self {
        let Measured { costs, lateness, stats } = measured;
        let driven = stats.is_none();
        Self {
            engine: value_name(args.engine),
            clock: value_name(args.clock),
            check_after_ms: args.check_after.as_millis() as u64,
            producers: args.producer_count(),
            shards: (args.engine == EngineKind::Shardwheel).then(|| args.shard_count()),
            orders: Orders::of(&audit),
            payments: Payments::of(&audit),
            paid_early: audit.ended.paid_early.count,
            confirmed: audit.ended.confirmed.count,
            released: audit.ended.released.count,
            cents: Cents::of(&audit),
            schedule_ns: costs.schedule.mean_ns(),
            cancel_ns: costs.cancel.mean_ns(),
            fire_ns: driven.then(|| costs.fire.mean_ns()),
            engine_seconds: driven.then(|| costs.total().as_secs_f64()),
            timers_per_second: driven.then(|| costs.timers_per_second()),
            elapsed_seconds: took.as_secs_f64(),
            lateness: Lateness::of(lateness),
            timer: stats.as_ref().map(Figures::of),
            peak_memory_bytes: peak_memory(),
            identities: audit.identities,
        }
    }

    pub(crate) fn all_hold(&self) -> bool {
        self.identities.iter().all(|identity| identity.holds)
    }

    pub(crate) fn print(&self, json: bool, out: &mut dyn Write) -> io::Result<()> {
        if json {
            serde_json::to_writer_pretty(&mut *out, self)?;
            writeln!(out)?;
        } else {
            write!(out, "{self}")?;
        }
        out.flush()
    }

    fn write_orders(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { orders, cents, .. } = self;
        row(f, "orders read", orders.read, "")?;
        row(f, "  bad lines", orders.bad, "")?;
        row(f, "  sold out", orders.sold_out, "")?;
        row(f, "  refused by the engine", orders.refused, "")?;
        row(f, "  placed", orders.placed, &format!("{} reserved", money(cents.reserved)))?;
        row(f, "    paid early (cancelled)", self.paid_early, &money(cents.paid_early))?;
        row(f, "    confirmed", self.confirmed, &money(cents.confirmed))?;
        row(f, "    released", self.released, &money(cents.released))
    }

    fn write_payments(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { payments, cents, .. } = self;
        row(f, "payments read", payments.read, "")?;
        row(f, "  bad lines", payments.bad, "")?;
        row(f, "  counted", payments.counted, &money(cents.payments_counted))?;
        row(f, "  returned", payments.returned, &money(cents.payments_returned))
    }

    fn write_costs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28}{:>14.1} ns", "schedule", self.schedule_ns)?;
        writeln!(f, "{:<28}{:>14.1} ns", "cancel", self.cancel_ns)?;
        match (self.fire_ns, self.engine_seconds, self.timers_per_second) {
            (Some(fire), Some(seconds), Some(per_second)) => {
                writeln!(f, "{:<28}{fire:>14.1} ns", "fire")?;
                writeln!(f, "{:<28}{seconds:>14.3} s, all threads together", "time in the engine")?;
                row(f, "timers per second", per_second as u64, "of that time")?;
            }
            _ => writeln!(f, "{:<28}{:>14} its threads also check", "fire", "n/a")?,
        }
        writeln!(f, "{:<28}{:>14.3} s", "time from first to last", self.elapsed_seconds)?;
        if let Some(lateness) = &self.lateness {
            lateness.write(f, "lateness of checks")?;
        }
        match self.peak_memory_bytes {
            Some(bytes) => {
                writeln!(f, "{:<28}{:>14.1} MiB", "peak memory", bytes as f64 / f64::from(1 << 20))
            }
            None => writeln!(f, "{:<28}{:>14}", "peak memory", "n/a"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, clock, producers, .. } = self;
        let check_after = duration(self.check_after_ms);
        let shards = self.shards.map_or_else(String::new, |shards| format!(", shards: {shards}"));
        writeln!(f, "{engine}, {clock} clock, check after {check_after}, producers: {producers}{shards}\n")?;
        self.write_orders(f)?;
        self.write_payments(f)?;
        writeln!(f)?;
        self.write_costs(f)?;
        if let Some(timer) = &self.timer {
            write!(f, "\n{timer}")?;
        }
        writeln!(f)?;
        for Identity { name, holds } in &self.identities {
            writeln!(f, "{:<8}{name}", if *holds { "holds" } else { "BROKEN" })?;
        }
        Ok(())
    }
}

impl Orders {
    fn of(audit: &Audit) -> Self {
        Self {
            read: audit.lines.orders.read,
            bad: audit.lines.orders.bad,
            placed: audit.tally.reserved.count,
            sold_out: audit.ended.sold_out.count,
            refused: audit.ended.refused.count,
        }
    }
}

impl Payments {
    fn of(audit: &Audit) -> Self {
        Self {
            read: audit.lines.payments.read,
            bad: audit.lines.payments.bad,
            counted: audit.tally.counted_payments.count,
            returned: audit.tally.returned_payments.count,
        }
    }
}

impl Cents {
    fn of(audit: &Audit) -> Self {
        let cents = |sum: Sum| sum.cents;
        Self {
            reserved: cents(audit.tally.reserved),
            paid_early: cents(audit.ended.paid_early),
            confirmed: cents(audit.ended.confirmed),
            released: cents(audit.ended.released),
            payments_counted: cents(audit.tally.counted_payments),
            payments_returned: cents(audit.tally.returned_payments),
        }
    }
}

impl Lateness {
    /// Writes one row for each figure.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        let Self { p50_ms, p99_ms, p999_ms, max_ms } = self;
        writeln!(f, "{name:<28}{p50_ms:>14.3} ms p50")?;
        for (value, what) in [(p99_ms, "p99"), (p999_ms, "p99.9"), (max_ms, "max")] {
            writeln!(f, "{:<28}{value:>14.3} ms {what}", "")?;
        }
        Ok(())
    }

    /// The percentiles; `None` if there were no checks.
    fn of(mut checks: Vec<Micros>) -> Option<Self> {
        checks.sort_unstable();
        let last = checks.len().checked_sub(1)?;
        let quantile = |quantile: f64| checks[(last as f64 * quantile) as usize] as f64 / 1_000.0;
        let [p50_ms, p99_ms, p999_ms, max_ms] = [0.5, 0.99, 0.999, 1.0].map(quantile);
        Some(Self { p50_ms, p99_ms, p999_ms, max_ms })
    }
}

/// A value's name on the command line.
fn value_name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

pub(crate) fn row(f: &mut fmt::Formatter<'_>, name: &str, count: u64, note: &str) -> fmt::Result {
    let line = format!("{name:<28}{:>14} {note}", grouped(u128::from(count)));
    writeln!(f, "{}", line.trim_end())
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
        let lateness = Lateness::of((0..=1_000).rev().map(|millis| millis * 1_000).collect());
        let Lateness { p50_ms, p99_ms, p999_ms, max_ms } = lateness.expect("there are values");
        assert_eq!([p50_ms, p99_ms, p999_ms, max_ms], [500.0, 990.0, 999.0, 1_000.0]);
        assert!(Lateness::of(Vec::new()).is_none());
    }
}

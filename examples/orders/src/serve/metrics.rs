//! Counts of what the server does, and their text for Prometheus.
//!
//! The writer and the request handlers add; a scrape reads. Nothing is decided by these numbers.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::store::EndState;

use super::books::Checked;
use super::lines::{Answer, OrderAnswer, PaymentAnswer};

/// Upper bounds of the buckets for how late checks are, in ms.
const BOUNDS: [u64; 12] = [1, 2, 3, 5, 10, 25, 50, 100, 250, 1_000, 5_000, 60_000];

/// A number that several threads change.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        // Ordering: Relaxed; a count orders nothing.
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        // Ordering: Relaxed; as above.
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Ordering: Relaxed; as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// What a worker of a cluster has, and what it sees.
#[derive(Debug)]
pub(crate) struct Partitions {
    pub(crate) owned: u64,
    pub(crate) stopped: u64,
    /// How long no owner, of the one that has waited longest, has made progress.
    pub(crate) idle: Duration,
}

impl Partitions {
    /// Lines for Prometheus.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let owned = "Partitions that this worker owns, those that have stopped among them.";
        gauge(out, "orders_partitions_owned", owned, self.owned)?;
        let stopped = "Partitions that have stopped until a person has mended something.";
        gauge(out, "orders_partitions_stopped", stopped, self.stopped)?;
        let idle = "Time since the last progress of an owner, of the owner for which it is longest.";
        age(out, "orders_progress_age_seconds", idle, self.idle.as_millis() as u64)
    }
}

/// All counts of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) ready: Count,
    pub(crate) pending: Count,
    pub(crate) unanswered_millis: Count,
    pub(crate) recoveries: Count,
    pub(crate) recovery_micros: Count,
    pub(crate) commits: Count,
    pub(crate) commit_micros: Count,
    pub(crate) requests_refused: Count,
    pub(crate) set_aside: Count,
    pub(crate) passed_over: Count,
    placed: Count,
    sold_out: Count,
    duplicates: Count,
    conflicts: Count,
    invalid: Count,
    payments_counted: Count,
    payments_duplicate: Count,
    payments_conflict: Count,
    payments_unknown: Count,
    payments_late: Count,
    paid_early: Count,
    confirmed: Count,
    released: Count,
    missed: Count,
    /// Checks by lateness: each bound, and what is beyond the last.
    lateness: [Count; BOUNDS.len() + 1],
    lateness_millis: Count,
}

impl Metrics {
    /// Counts answers that are durable.
    pub(crate) fn answered(&self, answers: &[Answer]) {
        answers.iter().for_each(|answer| self.of_answer(answer).add(1));
    }

    fn of_answer(&self, answer: &Answer) -> &Count {
        match answer {
            Answer::Invalid(_) => &self.invalid,
            Answer::Order { answer, .. } => match answer {
                OrderAnswer::Placed { .. } => &self.placed,
                OrderAnswer::Duplicate { .. } => &self.duplicates,
                OrderAnswer::Conflict => &self.conflicts,
                OrderAnswer::SoldOut => &self.sold_out,
            },
            Answer::Payment { answer, .. } => match answer {
                PaymentAnswer::Counted => &self.payments_counted,
                PaymentAnswer::Duplicate => &self.payments_duplicate,
                PaymentAnswer::Conflict => &self.payments_conflict,
                PaymentAnswer::UnknownOrder => &self.payments_unknown,
                PaymentAnswer::Late => &self.payments_late,
            },
        }
    }

    /// Counts orders that have ended and are durable.
    pub(crate) fn ended(&self, state: EndState, orders: u64) {
        let count = match state {
            EndState::PaidEarly => &self.paid_early,
            EndState::Confirmed => &self.confirmed,
            EndState::Released => &self.released,
        };
        count.add(orders);
    }

    /// Counts a check. What fell due while the program was not there has a count of its own.
    pub(crate) fn checked(&self, Checked { late, missed, .. }: Checked) {
        if missed {
            self.missed.add(1);
            return;
        }
        let bucket = BOUNDS.iter().position(|&bound| late <= bound).unwrap_or(BOUNDS.len());
        self.lateness[bucket].add(1);
        self.lateness_millis.add(late);
    }

    pub(crate) fn committed(&self, took: Duration) {
        self.commits.add(1);
        self.commit_micros.add(took.as_micros() as u64);
    }

    /// The text of `GET /metrics`.
    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(4_096);
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        gauge(out, "orders_ready", "1 while /healthz says that all is well.", self.ready.get())?;
        gauge(out, "orders_pending", "Orders that wait for their check.", self.pending.get())?;
        let help = "How long the oldest message, request or commit waits; 0 if none does.";
        age(out, "orders_unanswered_seconds", help, self.unanswered_millis.get())?;
        seconds(
            out,
            "gauge",
            "orders_recovery_seconds",
            "Time of the last recovery.",
            &self.recovery_micros,
        )?;
        self.write_answers(out)?;
        self.write_ends(out)?;
        counter(out, "orders_commits_total", "Commits.", &[("", &self.commits)])?;
        seconds(out, "counter", "orders_commit_seconds_total", "Time in commits.", &self.commit_micros)?;
        counter(out, "orders_recoveries_total", "Times the store was opened.", &[("", &self.recoveries)])?;
        let help = "Messages of a cluster that cannot be decided; they are in the stream `aside`.";
        counter(out, "orders_set_aside_total", help, &[("", &self.set_aside)])?;
        let help = "Messages of a cluster that were deleted before they were decided.";
        counter(out, "orders_passed_over_total", help, &[("", &self.passed_over)])?;
        let help = "Requests that found the server full or not ready.";
        counter(out, "orders_requests_refused_total", help, &[("", &self.requests_refused)])
    }

    fn write_answers(&self, out: &mut String) -> fmt::Result {
        let orders = [
            ("{status=\"placed\"}", &self.placed),
            ("{status=\"sold_out\"}", &self.sold_out),
            ("{status=\"duplicate\"}", &self.duplicates),
            ("{status=\"conflict\"}", &self.conflicts),
        ];
        counter(out, "orders_answered_total", "Orders by answer.", &orders)?;
        let payments = [
            ("{status=\"counted\"}", &self.payments_counted),
            ("{status=\"duplicate\"}", &self.payments_duplicate),
            ("{status=\"conflict\"}", &self.payments_conflict),
            ("{status=\"unknown_order\"}", &self.payments_unknown),
            ("{status=\"late\"}", &self.payments_late),
        ];
        counter(out, "orders_payments_total", "Payments by answer.", &payments)?;
        counter(out, "orders_invalid_lines_total", "Lines that were not used.", &[("", &self.invalid)])
    }

    fn write_ends(&self, out: &mut String) -> fmt::Result {
        let ends = [
            ("{state=\"paid_early\"}", &self.paid_early),
            ("{state=\"confirmed\"}", &self.confirmed),
            ("{state=\"released\"}", &self.released),
        ];
        counter(out, "orders_decided_total", "Orders by end.", &ends)?;
        let help = "Checks that fell due while the program was not there; they are late.";
        counter(out, "orders_checks_missed_total", help, &[("", &self.missed)])?;
        self.write_lateness(out)
    }

    fn write_lateness(&self, out: &mut String) -> fmt::Result {
        let name = "orders_check_lateness_seconds";
        head(out, name, "How late checks were, those apart that the program missed.", "histogram")?;
        let mut sum = 0;
        for (bound, count) in BOUNDS.iter().zip(&self.lateness) {
            sum += count.get();
            writeln!(out, "{name}_bucket{{le=\"{}\"}} {sum}", *bound as f64 / 1e3)?;
        }
        sum += self.lateness[BOUNDS.len()].get();
        writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {sum}")?;
        writeln!(out, "{name}_sum {}", self.lateness_millis.get() as f64 / 1e3)?;
        writeln!(out, "{name}_count {sum}")
    }
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn gauge(out: &mut String, name: &str, help: &str, value: u64) -> fmt::Result {
    head(out, name, help, "gauge")?;
    writeln!(out, "{name} {value}")
}

fn age(out: &mut String, name: &str, help: &str, millis: u64) -> fmt::Result {
    head(out, name, help, "gauge")?;
    writeln!(out, "{name} {}", millis as f64 / 1e3)
}

fn counter(out: &mut String, name: &str, help: &str, values: &[(&str, &Count)]) -> fmt::Result {
    head(out, name, help, "counter")?;
    values.iter().try_for_each(|(labels, count)| writeln!(out, "{name}{labels} {}", count.get()))
}

fn seconds(out: &mut String, kind: &str, name: &str, help: &str, micros: &Count) -> fmt::Result {
    head(out, name, help, kind)?;
    writeln!(out, "{name} {}", micros.get() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up_and_what_was_missed_is_apart() {
        let metrics = Metrics::default();
        for late in [0, 1, 2, 70_000] {
            metrics.checked(Checked { late, missed: false });
        }
        metrics.checked(Checked { late: 9_000, missed: true });
        let text = metrics.text();
        for line in [
            "orders_check_lateness_seconds_bucket{le=\"0.001\"} 2",
            "orders_check_lateness_seconds_bucket{le=\"60\"} 3",
            "orders_check_lateness_seconds_bucket{le=\"+Inf\"} 4",
            "orders_check_lateness_seconds_count 4",
            "orders_checks_missed_total 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}

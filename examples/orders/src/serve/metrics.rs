//! Counts of what the server does, and their text for Prometheus.
//!
//! The writer, the committer and request handlers add; a scrape reads. Nothing is decided by these numbers.

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

/// What is counted. [`FIGURES`] has the names, in the same order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Figure {
    Ready,
    Pending,
    UnansweredMillis,
    RecoveryMicros,
    Placed,
    SoldOut,
    Duplicate,
    Conflict,
    Counted,
    DuplicatePayment,
    ConflictingPayment,
    UnknownOrder,
    Late,
    Invalid,
    PaidEarly,
    Confirmed,
    Released,
    Missed,
    Commits,
    CommitMicros,
    Recoveries,
    Refused,
}

const GAUGE: &str = "gauge";
const COUNTER: &str = "counter";

/// The name and labels of each figure, its kind and its help (none if the one before has it), and
/// how many of it are one in the unit of the name.
const FIGURES: [(&str, &str, &str, f64); 22] = [
    ("orders_ready", GAUGE, "1 while /healthz says that all is well.", 1.0),
    ("orders_pending", GAUGE, "Orders that wait for their check.", 1.0),
    ("orders_unanswered_seconds", GAUGE, "Age of the oldest request or commit that waits.", 1e3),
    ("orders_recovery_seconds", GAUGE, "Time of the last recovery.", 1e6),
    ("orders_answered_total{status=\"placed\"}", COUNTER, "Orders by answer.", 1.0),
    ("orders_answered_total{status=\"sold_out\"}", COUNTER, "", 1.0),
    ("orders_answered_total{status=\"duplicate\"}", COUNTER, "", 1.0),
    ("orders_answered_total{status=\"conflict\"}", COUNTER, "", 1.0),
    ("orders_payments_total{status=\"counted\"}", COUNTER, "Payments by answer.", 1.0),
    ("orders_payments_total{status=\"duplicate\"}", COUNTER, "", 1.0),
    ("orders_payments_total{status=\"conflict\"}", COUNTER, "", 1.0),
    ("orders_payments_total{status=\"unknown_order\"}", COUNTER, "", 1.0),
    ("orders_payments_total{status=\"late\"}", COUNTER, "", 1.0),
    ("orders_invalid_lines_total", COUNTER, "Lines that were not used.", 1.0),
    ("orders_decided_total{state=\"paid_early\"}", COUNTER, "Orders by end.", 1.0),
    ("orders_decided_total{state=\"confirmed\"}", COUNTER, "", 1.0),
    ("orders_decided_total{state=\"released\"}", COUNTER, "", 1.0),
    ("orders_checks_missed_total", COUNTER, "Checks that fell due while the program was away.", 1.0),
    ("orders_commits_total", COUNTER, "Commits.", 1.0),
    ("orders_commit_seconds_total", COUNTER, "Time in commits.", 1e6),
    ("orders_recoveries_total", COUNTER, "Times the store was opened.", 1.0),
    ("orders_requests_refused_total", COUNTER, "Requests that found the server full or not ready.", 1.0),
];

/// All counts of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    figures: [Count; FIGURES.len()],
    /// Checks by lateness: each bound, and what is beyond the last.
    lateness: [Count; BOUNDS.len() + 1],
    lateness_millis: Count,
}

impl Metrics {
    pub(crate) fn of(&self, figure: Figure) -> &Count {
        &self.figures[figure as usize]
    }

    /// Counts answers that are durable.
    pub(crate) fn answered(&self, answers: &[Answer]) {
        answers.iter().for_each(|answer| self.of(of_answer(answer)).add(1));
    }

    /// Counts orders that have ended and are durable.
    pub(crate) fn ended(&self, states: impl IntoIterator<Item = EndState>) {
        for state in states {
            let figure = match state {
                EndState::PaidEarly => Figure::PaidEarly,
                EndState::Confirmed => Figure::Confirmed,
                EndState::Released => Figure::Released,
            };
            self.of(figure).add(1);
        }
    }

    /// Counts a check. What fell due while the program was not there has a count of its own.
    pub(crate) fn checked(&self, Checked { late, missed, .. }: Checked) {
        if missed {
            self.of(Figure::Missed).add(1);
            return;
        }
        let bucket = BOUNDS.iter().position(|&bound| late <= bound).unwrap_or(BOUNDS.len());
        self.lateness[bucket].add(1);
        self.lateness_millis.add(late);
    }

    pub(crate) fn committed(&self, took: Duration) {
        self.of(Figure::Commits).add(1);
        self.of(Figure::CommitMicros).add(took.as_micros() as u64);
    }

    /// The text of `GET /metrics`.
    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(4_096);
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        for ((name, kind, help, unit), count) in FIGURES.iter().zip(&self.figures) {
            if !help.is_empty() {
                head(out, name.split('{').next().unwrap_or(name), help, kind)?;
            }
            writeln!(out, "{name} {}", count.get() as f64 / unit)?;
        }
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

fn of_answer(answer: &Answer) -> Figure {
    match answer {
        Answer::Invalid(_) => Figure::Invalid,
        Answer::Order { answer, .. } => match answer {
            OrderAnswer::Placed { .. } => Figure::Placed,
            OrderAnswer::Duplicate { .. } => Figure::Duplicate,
            OrderAnswer::Conflict => Figure::Conflict,
            OrderAnswer::SoldOut => Figure::SoldOut,
        },
        Answer::Payment { answer, .. } => match answer {
            PaymentAnswer::Counted => Figure::Counted,
            PaymentAnswer::Duplicate => Figure::DuplicatePayment,
            PaymentAnswer::Conflict => Figure::ConflictingPayment,
            PaymentAnswer::UnknownOrder => Figure::UnknownOrder,
            PaymentAnswer::Late => Figure::Late,
        },
    }
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
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

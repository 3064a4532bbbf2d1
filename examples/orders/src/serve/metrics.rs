//! Counts of what the server does, and their text for Prometheus.
//!
//! The committer adds; a scrape reads. Nothing is decided by these numbers. What was never
//! counted is not there.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::store::EndState;

use super::books::Checked;
use super::lines::Answer;

/// The figures by name, with its labels.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<BTreeMap<String, f64>>);

impl Metrics {
    fn figures(&self) -> MutexGuard<'_, BTreeMap<String, f64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, name: &str, more: f64) {
        *self.figures().entry(name.to_owned()).or_default() += more;
    }

    pub(crate) fn set(&self, name: &str, value: f64) {
        self.figures().insert(name.to_owned(), value);
    }

    /// Counts answers that are durable.
    pub(crate) fn answered(&self, answers: &[Answer]) {
        let statuses = answers.iter().map(|answer| serde_json::json!(answer.status).to_string());
        self.count("orders_answered_total{status", statuses);
    }

    /// Counts orders that have ended and are durable.
    pub(crate) fn ended(&self, states: impl Iterator<Item = EndState>) {
        self.count("orders_decided_total{state", states.map(|state| format!("{:?}", state.name())));
    }

    /// Adds one for each label, which is quoted.
    fn count(&self, begin: &str, labels: impl Iterator<Item = String>) {
        let mut figures = self.figures();
        labels.for_each(|label| *figures.entry(format!("{begin}={label}}}")).or_default() += 1.0);
    }

    /// Counts a check. What fell due while the program was not there has a count of its own.
    pub(crate) fn checked(&self, Checked { late, missed }: Checked) {
        if missed {
            return self.add("orders_checks_missed_total", 1.0);
        }
        self.add("orders_check_lateness_seconds_count", 1.0);
        self.add("orders_check_lateness_seconds_sum", late as f64 / 1e3);
    }

    pub(crate) fn committed(&self, took: Duration) {
        self.add("orders_commits_total", 1.0);
        self.add("orders_commit_seconds_total", took.as_secs_f64());
    }

    /// The text of `GET /metrics`.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &*self.figures() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }
}

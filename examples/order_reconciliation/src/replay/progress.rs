//! The progress bar: on standard error, and only if that is a terminal. `feed` and `audit` have one
//! too.

use indicatif::{ProgressBar, ProgressStyle};

use super::input::Reason;
use super::load::LineCount;

/// Records between two updates of the bar.
const STEP: u64 = 4_096;

/// One stage of the job. Clones are handles of the same bar.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// The stage that reads files; the amount of work is unknown.
    pub(crate) fn reading() -> Self {
        Self { bar: ProgressBar::no_length().with_style(style("reading    {human_pos} lines {per_sec}")) }
    }

    /// The stage that generates a data set: the orders, then about as many payments.
    pub(crate) fn generating(orders: u32) -> Self {
        Self::bar("generating", 2 * u64::from(orders))
    }

    /// The stage that places the orders and ends each of them.
    pub(crate) fn playing(orders: usize) -> Self {
        Self::bar("playing   ", orders as u64)
    }

    /// The stage that sends lines to a server; some were sent before.
    pub(crate) fn feeding(lines: u64, before: u64) -> Self {
        let progress = Self::bar("feeding   ", lines);
        progress.bar.set_position(before);
        progress.bar.reset_eta();
        progress
    }

    /// The stage that asks a server for orders.
    pub(crate) fn auditing(orders: u64) -> Self {
        Self::bar("auditing  ", orders)
    }

    fn bar(stage: &str, length: u64) -> Self {
        let style = style(&format!("{stage} {{wide_bar}} {{human_pos}} of {{human_len}}, {{eta}}"));
        Self { bar: ProgressBar::new(length).with_style(style) }
    }

    pub(crate) fn add(&self, done: u64) {
        self.bar.inc(done);
    }

    /// Runs `print` while the bar is hidden.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Enters records; counts them and those that are refused.
    pub(crate) fn count<T>(
        &self,
        records: impl Iterator<Item = T>,
        mut enter: impl FnMut(T) -> Result<(), Reason>,
    ) -> LineCount {
        let mut count = LineCount::default();
        for record in records {
            count.read += 1;
            count.bad += u64::from(enter(record).is_err());
            if count.read % STEP == 0 {
                self.add(STEP);
            }
        }
        count
    }

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// The templates are constant; a wrong template falls back to the library's default.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
